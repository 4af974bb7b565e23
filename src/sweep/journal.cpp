// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/journal.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/file.hpp"
#include "base/json.hpp"

namespace artune {
namespace {

constexpr int kVersion = 1;

Error unwritable(const std::string& path) {
  return {Reason::unwritable_output, "journal '" + path + "': " + std::strerror(errno) + "; choose another place with -o"};
}

/// What must be the same for figures to stand in one document. Idle links train down and clocks differ from day to
/// day: those aren't part of it.
Json machine_identity(const DocumentHeader& header) {
  Json gpus = Json::array();
  for (const GpuFacts& gpu : header.machine.gpus) gpus.push_back({gpu.index, gpu.name, gpu.pci_address, gpu.uuid_sha256});
  Json world = nullptr;
  if (header.world) world = {header.world->devices, header.world->ranks_per_gpu, to_string(header.world->launch)};
  return {{"tool", header.tool},     {"simulated", header.simulated},           {"shared_gpu", header.shared_gpu},
          {"gpus", gpus},            {"driver", header.machine.driver},         {"nccl_version", header.machine.nccl_version},
          {"world", std::move(world)}};
}

Json first_line(const Plan& plan, const DocumentHeader& header) {
  return {{"kind", "ar-tune/journal"}, {"version", kVersion}, {"machine", machine_identity(header)}, {"plan", plan_identity(plan)}};
}

/// The first key at which two objects differ, for people: "plan.seed".
std::string first_difference(const Json& now, const Json& then, const std::string& path) {
  if (now.is_object() && then.is_object()) {
    for (const auto& [key, value] : now.items()) {
      const auto other = then.find(key);
      if (other == then.end()) return path + key;
      if (value != *other) return first_difference(value, *other, path + key + ".");
    }
  }
  return path.empty() ? "everything" : path.substr(0, path.size() - 1);
}

/// A shape's rows and omissions travel as a sweep document of their own, so that there is one reader and one writer.
Json result_line(const ShapeResult& result, const DocumentHeader& header) {
  Sweep part;
  part.header = header;
  part.fingerprint = "journal";  // the whole sweep gets its own; the reader wants one
  part.rows = result.rows;
  part.left_out = result.left_out;
  Json line = {{"index", result.index}};
  if (result.aa_percent) line["aa_percent"] = *result.aa_percent;
  line["sweep"] = sweep_to_json(part);
  return line;
}

Result<ShapeResult> parse_result(const std::string& text, const std::string& name, std::size_t shapes) {
  const auto json = parse_json(text, name);
  if (!json) return json.error();
  try {
    const JsonReader line(*json, name);
    line.expect_keys({"index", "aa_percent", "sweep"});
    ShapeResult result;
    result.index = static_cast<std::size_t>(line.at("index").integer(0, static_cast<std::int64_t>(shapes) - 1));
    if (const auto difference = line.find("aa_percent")) result.aa_percent = difference->number();
    auto part = sweep_from_json(line.at("sweep").raw(), name);
    if (!part) return part.error();
    result.rows = std::move(part->rows);
    result.left_out = std::move(part->left_out);
    return result;
  } catch (const JsonError& error) {
    return Error{Reason::unreadable_input, error.what()};
  }
}

}  // namespace

Status Journal::write_line(const Json& line) {
  const std::string text = line.dump() + "\n";
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0 &&
                       ::fdatasync(::fileno(file_.get())) == 0;
  if (!written) return unwritable(path_);
  return Ok{};
}

Result<Journal> Journal::create(const std::string& path, const Plan& plan, const DocumentHeader& header) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return unwritable(path);
  Journal journal(path, header, file);
  if (const Status written = journal.write_line(first_line(plan, header)); !written) return written.error();
  return journal;
}

Result<Journal> Journal::resume(const std::string& path, const Plan& plan, const DocumentHeader& header) {
  const auto text = read_file(path);
  if (!text) return text.error();
  const auto unreadable = [&](const std::string& why) {
    return Error{Reason::unreadable_input, "journal '" + path + "': " + why + "; leave --resume out to start afresh"};
  };

  std::vector<std::string> lines;
  std::size_t whole = 0;  // bytes up to the end of the last whole line
  for (std::size_t end = text->find('\n'); end != std::string::npos; end = text->find('\n', whole)) {
    lines.push_back(text->substr(whole, end - whole));
    whole = end + 1;
  }
  if (lines.empty()) return unreadable("has no whole line");
  const auto first = parse_json(lines.front(), path + " line 1");
  if (!first) return unreadable("is no journal (" + first.error().message + ")");
  if (!first->is_object() || !first->contains("kind") || first->at("kind") != "ar-tune/journal") return unreadable("is no journal");
  const Json expected = first_line(plan, header);
  if (*first != expected) return unreadable("is of another sweep: " + first_difference(expected, *first, "") + " differs");

  std::vector<ShapeResult> finished;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto result = parse_result(lines[i], path + " line " + std::to_string(i + 1), plan.shapes.size());
    if (!result) return unreadable(result.error().message);
    finished.push_back(std::move(*result));
  }

  std::error_code failed;
  std::filesystem::resize_file(path, whole, failed);  // a line cut short would make the next one unreadable
  std::FILE* file = failed ? nullptr : std::fopen(path.c_str(), "ab");
  if (file == nullptr) return unwritable(path);
  Journal journal(path, header, file);
  journal.finished_ = std::move(finished);
  return journal;
}

Status Journal::append(const ShapeResult& result) { return write_line(result_line(result, header_)); }

}  // namespace artune
