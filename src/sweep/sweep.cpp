// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The sweep's JSON. profiles/schema/sweep.schema.json says the same; tests/corpus/sweep holds both to it.
#include "sweep/sweep.hpp"

#include "base/file.hpp"
#include "profile/document_text.hpp"
#include "profile/fields.hpp"

namespace artune {
namespace {

constexpr std::string_view kKind = "ar-tune/sweep";
constexpr int kNewestVersion = 1;
constexpr int kMostSamples = 1 << 24;

void append_geometry(Json& row, const Geometry& geometry) {
  const Json fields = geometry_to_json(geometry);
  for (const auto& field : fields.items()) row[field.key()] = field.value();
}

Geometry read_geometry(const JsonReader& row) {
  Json fields = Json::object();
  for (const char* key : {"blocks", "threads", "max_ctas", "chunk_bytes"}) {
    if (const auto field = row.find(key)) fields[key] = field->raw();
  }
  return geometry_from_json(JsonReader(fields, row.path()));
}

void append_shape(Json& row, const Shape& shape) {
  row["op"] = to_string(shape.op);
  row["dtype"] = to_string(shape.dtype);
  row["wire"] = to_string(shape.wire);
  row["ranks"] = shape.ranks;
  row["bytes"] = shape.bytes;
  row["mode"] = to_string(shape.mode);
  row["launch"] = to_string(shape.launch);
  row["load"] = to_string(shape.load);
  row["regime"] = to_string(shape.regime);
}

Shape read_shape(const JsonReader& row) {
  const TableKey key = read_key(row);
  Shape shape{key.op,
              key.dtype,
              key.wire,
              key.ranks,
              row.at("bytes").bytes(),
              key.mode,
              key.launch,
              key.load,
              row.at("regime").word<Regime>()};
  if (shape.bytes % element_bytes(shape.dtype) != 0) {
    row.at("bytes").fail(std::to_string(shape.bytes) + " isn't a whole number of " + std::string(to_string(shape.dtype)) +
                         " elements");
  }
  return shape;
}

Json row_to_json(const SweepRow& row) {
  Json json = {{"candidate", row.candidate.name}};
  append_geometry(json, row.candidate.geometry);
  append_shape(json, row.shape);
  json["batch"] = row.batch;
  json["verified"] = row.verified;
  json["n"] = row.n;
  json["median_us"] = row.median_us;
  json["ci_low_us"] = row.ci_low_us;
  json["ci_high_us"] = row.ci_high_us;
  json["p5_us"] = row.p5_us;
  json["p95_us"] = row.p95_us;
  if (row.isolated_us) json["isolated_us"] = *row.isolated_us;
  if (row.host_us) json["host_us"] = *row.host_us;
  json["algbw_gb_per_s"] = row.algbw_gb_per_s;
  json["busbw_gb_per_s"] = row.busbw_gb_per_s;
  if (row.limit_us) json["limit_us"] = *row.limit_us;
  json["numerics"] = to_string(row.numerics);
  json["samples_us"] = row.samples_us;
  for (const OverlapFigures& figures : row.overlap) {
    json["overlap"].push_back({{"order", to_string(figures.order)},
                               {"compute_idle_us", figures.compute_idle_us},
                               {"compute_beside_us", figures.compute_beside_us},
                               {"reduction_idle_us", figures.reduction_idle_us},
                               {"reduction_beside_us", figures.reduction_beside_us},
                               {"completed", figures.completed}});
  }
  return json;
}

double read_not_negative(const JsonReader& value) {
  const double number = value.number();
  if (number < 0) value.fail("must be 0 or above");
  return number;
}

std::optional<double> read_optional(const JsonReader& row, std::string_view key) {
  const auto value = row.find(key);
  if (!value) return std::nullopt;
  return read_not_negative(*value);
}

double read_above_zero(const JsonReader& value) {
  const double number = value.number();
  if (number <= 0) value.fail("must be above 0");
  return number;
}

std::vector<OverlapFigures> read_overlap(const JsonReader& row, Load load) {
  const auto list = row.find("overlap");
  if (load == Load::idle && list) list->fail("stands in a row whose load is idle");
  if (load == Load::idle) return {};
  const JsonReader orders = row.at("overlap");
  if (orders.size() == 0) orders.fail("is empty");
  std::vector<OverlapFigures> overlap;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const JsonReader object = orders.at(i);
    object.expect_keys({"order", "compute_idle_us", "compute_beside_us", "reduction_idle_us", "reduction_beside_us", "completed"});
    OverlapFigures figures;
    figures.order = object.at("order").word<LaunchOrder>();
    for (const OverlapFigures& other : overlap) {
      if (other.order == figures.order) object.at("order").fail("stands twice");
    }
    figures.compute_idle_us = read_above_zero(object.at("compute_idle_us"));
    figures.compute_beside_us = read_above_zero(object.at("compute_beside_us"));
    figures.reduction_idle_us = read_above_zero(object.at("reduction_idle_us"));
    figures.reduction_beside_us = read_above_zero(object.at("reduction_beside_us"));
    figures.completed = static_cast<int>(object.at("completed").integer(0, kMostSamples));
    overlap.push_back(figures);
  }
  return overlap;
}

SweepRow read_row(const JsonReader& object) {
  object.expect_keys({"candidate",      "blocks",         "threads",  "max_ctas", "chunk_bytes", "op",
                      "dtype",          "wire",           "ranks",    "bytes",    "mode",        "launch",
                      "load",           "regime",         "batch",    "verified", "n",           "median_us",
                      "ci_low_us",      "ci_high_us",     "p5_us",    "p95_us",   "isolated_us", "host_us",
                      "algbw_gb_per_s", "busbw_gb_per_s", "limit_us", "numerics", "samples_us",  "overlap"});
  SweepRow row;
  row.candidate = read_candidate(object.at("candidate"), read_geometry(object));
  row.shape = read_shape(object);
  if (row.shape.bytes == 0) object.at("bytes").fail("0 bytes can't have been timed");
  row.batch = static_cast<int>(object.at("batch").integer(1, kMostSamples));
  row.verified = object.at("verified").boolean();
  row.n = static_cast<int>(object.at("n").integer(1, kMostSamples));
  row.median_us = object.at("median_us").number();
  if (row.median_us <= 0) object.at("median_us").fail("must be above 0");
  row.ci_low_us = read_not_negative(object.at("ci_low_us"));
  row.ci_high_us = read_not_negative(object.at("ci_high_us"));
  if (row.ci_low_us > row.median_us || row.ci_high_us < row.median_us)
    object.at("median_us").fail("lies outside its own interval");
  row.p5_us = read_not_negative(object.at("p5_us"));
  row.p95_us = read_not_negative(object.at("p95_us"));
  row.isolated_us = read_optional(object, "isolated_us");
  row.host_us = read_optional(object, "host_us");
  row.algbw_gb_per_s = read_not_negative(object.at("algbw_gb_per_s"));
  row.busbw_gb_per_s = read_not_negative(object.at("busbw_gb_per_s"));
  row.limit_us = read_optional(object, "limit_us");
  row.numerics = object.at("numerics").word<Numerics>();
  const JsonReader samples = object.at("samples_us");
  for (std::size_t i = 0; i < samples.size(); ++i) row.samples_us.push_back(read_not_negative(samples.at(i)));
  row.overlap = read_overlap(object, row.shape.load);
  // Empty where the raw samples went to a side file.
  if (samples.size() != 0 && samples.size() != static_cast<std::size_t>(row.n)) {
    samples.fail("holds " + std::to_string(samples.size()) + " samples, n says " + std::to_string(row.n));
  }
  return row;
}

Json left_out_to_json(const LeftOut& left_out) {
  Json json = {{"candidate", left_out.candidate.name}};
  append_geometry(json, left_out.candidate.geometry);
  append_shape(json, left_out.shape);
  json["reason"] = left_out.reason;
  json["detail"] = left_out.detail;
  return json;
}

LeftOut read_left_out(const JsonReader& object) {
  object.expect_keys({"candidate", "blocks", "threads", "max_ctas", "chunk_bytes", "op", "dtype", "wire", "ranks", "bytes",
                      "mode", "launch", "load", "regime", "reason", "detail"});
  LeftOut left_out;
  left_out.candidate = {read_candidate_name(object.at("candidate")), read_geometry(object)};
  left_out.shape = read_shape(object);
  left_out.reason = read_one_of(object.at("reason"), kLeftOutWords);
  left_out.detail = object.at("detail").string();
  return left_out;
}

Json verdict_to_json(const PairVerdict& verdict) {
  return {{"from", verdict.from},       {"to", verdict.to},         {"path", to_string(verdict.path)},
          {"verdict", verdict.verdict}, {"reason", verdict.reason}, {"one_way_us", verdict.one_way_us}};
}

PairVerdict read_verdict(const JsonReader& object) {
  object.expect_keys({"from", "to", "path", "verdict", "reason", "one_way_us"});
  PairVerdict verdict;
  verdict.from = static_cast<int>(object.at("from").integer(0, 4096));
  verdict.to = static_cast<int>(object.at("to").integer(0, 4096));
  verdict.path = object.at("path").word<Path>();
  verdict.verdict = read_one_of(object.at("verdict"), kVerdictWords);
  verdict.reason = object.at("reason").string();
  verdict.one_way_us = read_not_negative(object.at("one_way_us"));
  return verdict;
}

std::vector<SmallerGroup> read_smaller_groups(const JsonReader& list, const World& world) {
  const int all_ranks = static_cast<int>(world.devices.size()) * world.ranks_per_gpu;
  std::vector<SmallerGroup> groups;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonReader object = list.at(i);
    object.expect_keys({"ranks", "fingerprint"});
    const int fewest = groups.empty() ? 2 : groups.back().ranks + 1;
    groups.push_back({static_cast<int>(object.at("ranks").integer(fewest, all_ranks - 1)), object.at("fingerprint").string()});
    if (groups.back().fingerprint.empty()) object.at("fingerprint").fail("is empty");
  }
  return groups;
}

Sweep read_document(const JsonReader& document) {
  Sweep sweep;
  sweep.header = header_from_json(document, kKind, kNewestVersion);
  document.expect_keys(
      {ARTUNE_HEADER_KEYS, "fingerprint", "smaller_groups", "complete", "noise_floor_percent", "rows", "left_out", "verdicts"});
  expect_group(document, sweep.header);
  sweep.fingerprint = document.at("fingerprint").string();
  if (sweep.fingerprint.empty()) document.at("fingerprint").fail("is empty");
  if (const auto groups = document.find("smaller_groups"))
    sweep.smaller_groups = read_smaller_groups(*groups, sweep.header.world.value());
  sweep.complete = document.at("complete").boolean();
  sweep.noise_floor_percent = read_not_negative(document.at("noise_floor_percent"));
  const JsonReader rows = document.at("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) sweep.rows.push_back(read_row(rows.at(i)));
  const JsonReader left_out = document.at("left_out");
  for (std::size_t i = 0; i < left_out.size(); ++i) sweep.left_out.push_back(read_left_out(left_out.at(i)));
  const JsonReader verdicts = document.at("verdicts");
  for (std::size_t i = 0; i < verdicts.size(); ++i) sweep.verdicts.push_back(read_verdict(verdicts.at(i)));
  return sweep;
}

}  // namespace

Json sweep_to_json(const Sweep& sweep) {
  Json json = header_to_json(sweep.header);
  json["fingerprint"] = sweep.fingerprint;
  for (const SmallerGroup& group : sweep.smaller_groups)
    json["smaller_groups"].push_back({{"ranks", group.ranks}, {"fingerprint", group.fingerprint}});
  json["complete"] = sweep.complete;
  json["noise_floor_percent"] = sweep.noise_floor_percent;
  json["rows"] = Json::array();
  for (const SweepRow& row : sweep.rows) json["rows"].push_back(row_to_json(row));
  json["left_out"] = Json::array();
  for (const LeftOut& left_out : sweep.left_out) json["left_out"].push_back(left_out_to_json(left_out));
  json["verdicts"] = Json::array();
  for (const PairVerdict& verdict : sweep.verdicts) json["verdicts"].push_back(verdict_to_json(verdict));
  return json;
}

Result<Sweep> sweep_from_json(const Json& document, const std::string& name) {
  try {
    return read_document(JsonReader(document, name));
  } catch (const JsonError& error) {
    return Error{Reason::unreadable_input, error.what()};
  }
}

Result<Sweep> read_sweep(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const Result<Json> document = parse_json(*text, path);
  if (!document) return document.error();
  return sweep_from_json(*document, path);
}

std::string sweep_to_text(const Sweep& sweep) { return document_text(sweep_to_json(sweep)); }

}  // namespace artune
