// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The profile's JSON. profiles/schema/profile.schema.json says the same; tests/corpus/profile holds both to it.
#include <algorithm>

#include "paths/menu.hpp"
#include "profile/fields.hpp"
#include "profile/profile.hpp"

namespace artune {
namespace {

constexpr std::string_view kKind = "ar-tune/profile";
constexpr int kNewestVersion = 1;
constexpr std::string_view kThresholdNames[] = {"NCCL_MIN_BYTES", "CE_MIN_BYTES", "ONESHOT_MAX_BYTES"};

Json bytes_or_null(const std::optional<std::size_t>& bytes) { return bytes ? Json(*bytes) : Json(nullptr); }

Json range_to_json(const Range& range) {
  Json json = {{"min_bytes", range.min_bytes},
               {"max_bytes", bytes_or_null(range.max_bytes)},
               {"use", range.use.name},
               {"geometry", geometry_to_json(range.use.geometry)},
               {"numerics", to_string(range.numerics)}};
  if (range.median_us) json["median_us"] = *range.median_us;
  if (range.nccl_us) json["nccl_us"] = *range.nccl_us;
  if (range.gain) json["gain"] = *range.gain;
  json["extrapolated"] = range.extrapolated;
  return json;
}

Json table_to_json(const Table& table) {
  Json json = Json::object();
  append_key(json, table.key);
  json["ranges"] = Json::array();
  for (const Range& range : table.ranges) json["ranges"].push_back(range_to_json(range));
  json["thresholds"] = Json::array();
  for (const Threshold& threshold : table.thresholds) {
    json["thresholds"].push_back({{"name", threshold.name},
                                  {"bytes", bytes_or_null(threshold.bytes)},
                                  {"direction", threshold.direction},
                                  {"regret_percent", threshold.regret_percent}});
  }
  return json;
}

Json rejected_to_json(const Rejected& rejected) {
  Json json = {{"candidate", rejected.candidate.name}, {"geometry", geometry_to_json(rejected.candidate.geometry)}};
  append_key(json, rejected.key);
  json["bytes"] = rejected.bytes;
  json["reason"] = rejected.reason;
  json["detail"] = rejected.detail;
  return json;
}

std::optional<std::size_t> read_bytes_or_null(const JsonReader& value) {
  if (value.is_null()) return std::nullopt;
  return value.bytes();
}

std::optional<double> read_positive(const JsonReader& object, std::string_view key) {
  const auto value = object.find(key);
  if (!value) return std::nullopt;
  const double number = value->number();
  if (number <= 0) value->fail("must be above 0");
  return number;
}

Range read_range(const JsonReader& object, const TableKey& key) {
  object.expect_keys({"min_bytes", "max_bytes", "use", "geometry", "numerics", "median_us", "nccl_us", "gain", "extrapolated"});
  Range range;
  range.min_bytes = object.at("min_bytes").bytes();
  range.max_bytes = read_bytes_or_null(object.at("max_bytes"));
  range.use = read_candidate(object.at("use"), geometry_from_json(object.at("geometry")));
  const CandidateInfo& info = *find_candidate(range.use.name);
  if (key.ranks < info.min_ranks || key.ranks > info.max_ranks) {
    object.at("use").fail(range.use.name + " serves " + std::to_string(info.min_ranks) + " to " + std::to_string(info.max_ranks) +
                          " ranks, the table is for " + std::to_string(key.ranks));
  }
  range.numerics = object.at("numerics").word<Numerics>();
  // Who allows a lossy wire may get an exact sum; never the other way round.
  const Numerics over_wire = wire_refusal(info, key.dtype, key.wire).empty() ? numerics_of(info, key.dtype, key.wire) : info.numerics;
  if (range.numerics != info.numerics && range.numerics != over_wire) {
    const std::string lossy = over_wire == info.numerics ? "" : "' or '" + std::string(to_string(over_wire));
    object.at("numerics")
        .fail("'" + std::string(to_string(range.numerics)) + "' isn't the class of " + range.use.name + ", which is '" +
              std::string(to_string(info.numerics)) + lossy + "'");
  }
  range.median_us = read_positive(object, "median_us");
  range.nccl_us = read_positive(object, "nccl_us");
  range.gain = read_positive(object, "gain");
  range.extrapolated = object.at("extrapolated").boolean();
  return range;
}

/// Sorted, without holes or overlaps, from 1 to infinity: every message has exactly one range.
void check_total(const JsonReader& list, const std::vector<Range>& ranges) {
  if (ranges.empty()) list.fail("holds no range");
  if (ranges.front().min_bytes != 1) {
    list.at(0).at("min_bytes").fail("the first range must start at 1, not " + std::to_string(ranges.front().min_bytes));
  }
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    const JsonReader here = list.at(i);
    const bool last = i + 1 == ranges.size();
    if (!range.max_bytes) {
      if (!last) here.at("max_bytes").fail("only the last range may be open (null)");
      if (!range.extrapolated) here.at("extrapolated").fail("an open range reaches beyond what was measured and must say so");
      continue;
    }
    if (*range.max_bytes <= range.min_bytes) {
      here.at("max_bytes").fail(std::to_string(*range.max_bytes) + " isn't above min_bytes " + std::to_string(range.min_bytes));
    }
    if (last) here.at("max_bytes").fail("the last range must be open (null)");
    const std::size_t next = ranges[i + 1].min_bytes;
    if (next < *range.max_bytes) {
      list.at(i + 1)
          .at("min_bytes")
          .fail(std::to_string(next) + " overlaps the range before, which ends at " + std::to_string(*range.max_bytes));
    }
    if (next > *range.max_bytes) {
      list.at(i + 1).at("min_bytes").fail(std::to_string(next) + " leaves a hole after " + std::to_string(*range.max_bytes));
    }
  }
}

Threshold read_threshold(const JsonReader& object) {
  object.expect_keys({"name", "bytes", "direction", "regret_percent"});
  Threshold threshold;
  threshold.name = read_one_of(object.at("name"), kThresholdNames);
  threshold.bytes = read_bytes_or_null(object.at("bytes"));
  threshold.direction = object.at("direction").string();
  threshold.regret_percent = object.at("regret_percent").number();
  if (threshold.regret_percent < 0) object.at("regret_percent").fail("must be 0 or above");
  return threshold;
}

Table read_table(const JsonReader& object) {
  object.expect_keys({"op", "dtype", "wire", "ranks", "mode", "launch", "load", "ranges", "thresholds"});
  Table table;
  table.key = read_key(object);
  const JsonReader ranges = object.at("ranges");
  for (std::size_t i = 0; i < ranges.size(); ++i) table.ranges.push_back(read_range(ranges.at(i), table.key));
  check_total(ranges, table.ranges);
  const JsonReader thresholds = object.at("thresholds");
  for (std::size_t i = 0; i < thresholds.size(); ++i) {
    Threshold threshold = read_threshold(thresholds.at(i));
    const auto same_name = [&](const Threshold& other) { return other.name == threshold.name; };
    if (std::any_of(table.thresholds.begin(), table.thresholds.end(), same_name)) {
      thresholds.at(i).at("name").fail("'" + threshold.name + "' stands here twice");
    }
    table.thresholds.push_back(std::move(threshold));
  }
  return table;
}

Rejected read_rejected(const JsonReader& object) {
  object.expect_keys(
      {"candidate", "geometry", "op", "dtype", "wire", "ranks", "mode", "launch", "load", "bytes", "reason", "detail"});
  Rejected rejected;
  rejected.candidate = {read_candidate_name(object.at("candidate")), geometry_from_json(object.at("geometry"))};
  rejected.key = read_key(object);
  rejected.bytes = object.at("bytes").bytes();
  rejected.reason = read_one_of(object.at("reason"), kRejectedWords);
  rejected.detail = object.at("detail").string();
  return rejected;
}

VerdictRow read_verdict(const JsonReader& object) {
  object.expect_keys({"from", "to", "path", "verdict", "reason"});
  return {static_cast<int>(object.at("from").integer(0, 4096)), static_cast<int>(object.at("to").integer(0, 4096)),
          object.at("path").word<Path>(), read_one_of(object.at("verdict"), kVerdictWords), object.at("reason").string()};
}

Profile read_document(const JsonReader& document) {
  Profile profile;
  profile.header = header_from_json(document, kKind, kNewestVersion);
  document.expect_keys({ARTUNE_HEADER_KEYS, "fingerprint", "table_abi", "tables", "rejected", "verdicts"});
  expect_group(document, profile.header);
  profile.fingerprint = document.at("fingerprint").string();
  if (profile.fingerprint.empty()) document.at("fingerprint").fail("is empty");
  profile.table_abi = static_cast<int>(document.at("table_abi").integer(1, 1000000));
  const JsonReader tables = document.at("tables");
  if (tables.size() == 0) tables.fail("holds no table");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    Table table = read_table(tables.at(i));
    if (profile.find(table.key) != nullptr) tables.at(i).fail("a second table for the same key");
    profile.tables.push_back(std::move(table));
  }
  const JsonReader rejected = document.at("rejected");
  for (std::size_t i = 0; i < rejected.size(); ++i) profile.rejected.push_back(read_rejected(rejected.at(i)));
  const JsonReader verdicts = document.at("verdicts");
  for (std::size_t i = 0; i < verdicts.size(); ++i) profile.verdicts.push_back(read_verdict(verdicts.at(i)));
  return profile;
}

}  // namespace

Json profile_to_json(const Profile& profile) {
  Json json = header_to_json(profile.header);
  json["fingerprint"] = profile.fingerprint;
  json["table_abi"] = profile.table_abi;
  json["tables"] = Json::array();
  for (const Table& table : profile.tables) json["tables"].push_back(table_to_json(table));
  json["rejected"] = Json::array();
  for (const Rejected& rejected : profile.rejected) json["rejected"].push_back(rejected_to_json(rejected));
  json["verdicts"] = Json::array();
  for (const VerdictRow& row : profile.verdicts) {
    json["verdicts"].push_back(
        {{"from", row.from}, {"to", row.to}, {"path", to_string(row.path)}, {"verdict", row.verdict}, {"reason", row.reason}});
  }
  return json;
}

Result<Profile> profile_from_json(const Json& document, const std::string& name) {
  try {
    return read_document(JsonReader(document, name));
  } catch (const JsonError& error) {
    return Error{Reason::unreadable_input, error.what()};
  }
}

}  // namespace artune
