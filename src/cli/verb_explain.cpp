// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_explain.hpp"

#include <fmt/format.h>

#include <ostream>

#include "base/units.hpp"
#include "paths/menu.hpp"
#include "profile/profile.hpp"

namespace artune {
namespace {

struct Words {
  std::string profile, bytes, dtype, mode;
  int ranks = 0;   ///< 0 = any
};

/// What is asked for; an empty filter takes every table.
struct Filter {
  std::optional<DType> dtype;
  std::optional<Mode> mode;
  int ranks = 0;

  bool admits(const TableKey& key) const {
    return (!dtype || key.dtype == *dtype) && (!mode || key.mode == *mode) && (ranks == 0 || key.ranks == ranks);
  }
};

template <typename Enum>
Result<std::optional<Enum>> read_word(const std::string& flag, const std::string& text) {
  if (text.empty()) return std::optional<Enum>();
  if (const auto value = parse_word<Enum>(text)) return std::optional<Enum>(*value);
  return Error{Reason::usage, flag + " '" + text + "': is none of " + word_list<Enum>()};
}

std::string key_text(const TableKey& key) {
  const std::string wire = key.wire == key.dtype ? std::string() : fmt::format(" as {} on the wire", to_string(key.wire));
  return fmt::format("{} {}{}, {} ranks, {}, {}", to_string(key.op), to_string(key.dtype), wire, key.ranks, to_string(key.mode), to_string(key.launch));
}

std::string range_text(const Range& range) {
  return range.max_bytes ? fmt::format("[{}, {})", format_size(range.min_bytes), format_size(*range.max_bytes))
                         : fmt::format("from {} on", format_size(range.min_bytes));
}

std::string evidence_text(const Range& range, bool simulated) {
  if (!range.median_us) return "no figure in this range: it follows its neighbours";
  std::string text = fmt::format("{} {:.2f} µs near the middle of the range", simulated ? "modelled" : "measured", *range.median_us);
  if (range.nccl_us) text += fmt::format(", NCCL's best there {:.2f} µs", *range.nccl_us);
  if (range.gain) text += fmt::format(" (gain {:.2f}x)", *range.gain);
  return text;
}

/// Rejections that speak about this message: of this table, at this size or at every size.
bool concerns(const Rejected& rejected, const Table& table, const Range& range) {
  if (rejected.key != table.key || rejected.candidate == range.use) return false;
  return rejected.bytes == 0 || (rejected.bytes >= range.min_bytes && (!range.max_bytes || rejected.bytes < *range.max_bytes));
}

void print_table(std::ostream& out, const Profile& profile, const Table& table, std::size_t bytes) {
  const Range& range = table.lookup(bytes);
  out << fmt::format("{}: {} is in the range {} -> {}\n", key_text(table.key), format_size(bytes), range_text(range), range.use.label());
  out << "  why: " << evidence_text(range, profile.header.simulated) << "\n";
  if (range.extrapolated) out << "  extrapolated: the range reaches beyond the sizes that were measured\n";
  const bool lossy_key = table.key.wire != table.key.dtype;
  const DType sent = is_lossy(range.numerics) ? table.key.wire : table.key.dtype;
  out << "  numerics: " << to_string(range.numerics) << (lossy_key ? fmt::format(", {} on the wire", to_string(sent)) : "") << "\n";
  for (const Rejected& rejected : profile.rejected) {
    if (!concerns(rejected, table, range)) continue;
    out << fmt::format("  not {}{}: {}{}\n", rejected.candidate.label(), rejected.bytes == 0 ? "" : " at " + format_size(rejected.bytes),
                       rejected.reason, rejected.detail.empty() ? "" : ", " + rejected.detail);
  }
  for (const Threshold& threshold : table.thresholds) {
    out << fmt::format("  {} = {}: {}\n", threshold.name, threshold.bytes ? format_size(*threshold.bytes) : "never", threshold.direction);
  }
}

/// The table's row of profile_to_json, with the one range that answers instead of all.
Json table_json(const Profile& profile, const Json& document, std::size_t index, std::size_t bytes) {
  const Table& table = profile.tables[index];
  const auto range = static_cast<std::size_t>(&table.lookup(bytes) - table.ranges.data());
  Json json = document["tables"][index];
  json["range"] = json["ranges"][range];
  json.erase("ranges");
  json["rejected"] = Json::array();
  for (std::size_t i = 0; i < profile.rejected.size(); ++i) {
    if (concerns(profile.rejected[i], table, table.ranges[range])) json["rejected"].push_back(document["rejected"][i]);
  }
  return json;
}

std::string origin_text(const Profile& profile) {
  std::string text = "profile " + profile.fingerprint + ", " + profile.header.created;
  if (profile.header.simulated) text += "; SIMULATED: its times come from a model, not from a machine";
  if (profile.header.shared_gpu) text += "; ranks shared a GPU: it says nothing about any interconnect";
  return text;
}

std::string tables_text(const Profile& profile) {
  std::string list;
  for (const Table& table : profile.tables) list += (list.empty() ? "" : "; ") + key_text(table.key);
  return list;
}

Status run(const Words& words, CliContext& context) {
  const Result<std::size_t> bytes = parse_size(words.bytes);
  if (!bytes) return bytes.error();
  const auto dtype = read_word<DType>("--dtype", words.dtype);
  if (!dtype) return dtype.error();
  const auto mode = read_word<Mode>("--mode", words.mode);
  if (!mode) return mode.error();
  const Filter filter{*dtype, *mode, words.ranks};

  const Result<Profile> profile = read_profile(words.profile);
  if (!profile) return profile.error();
  const Json document = profile_to_json(*profile);
  Json tables = Json::array();
  context.human() << origin_text(*profile) << "\n";
  for (std::size_t i = 0; i < profile->tables.size(); ++i) {
    if (!filter.admits(profile->tables[i].key)) continue;
    print_table(context.human(), *profile, profile->tables[i], *bytes);
    tables.push_back(table_json(*profile, document, i, *bytes));
  }
  if (tables.empty()) return Error{Reason::usage, words.profile + " has no such table; it has: " + tables_text(*profile)};
  context.print_document({{"kind", "ar-tune/explain"},
                          {"version", 1},
                          {"fingerprint", profile->fingerprint},
                          {"simulated", profile->header.simulated},
                          {"shared_gpu", profile->header.shared_gpu},
                          {"bytes", *bytes},
                          {"tables", tables}});
  return Ok{};
}

std::function<Status()> configure(CLI::App& app, CliContext& context) {
  const auto words = std::make_shared<Words>();
  app.add_option("PROFILE", words->profile, "profile that ar-tune tune has written")->required()->type_name("FILE");
  app.add_option("--bytes", words->bytes, "message size: bytes of one rank's tensor")->required()->type_name("SIZE");
  app.add_option("--dtype", words->dtype, "only tables of this type (" + word_list<DType>() + ")")->type_name("DTYPE");
  app.add_option("--mode", words->mode, "only tables of this mode (" + word_list<Mode>() + ")")->type_name("MODE");
  app.add_option("--ranks", words->ranks, "only tables for this many ranks")->type_name("N")->check(CLI::PositiveNumber);
  return [words, &context] { return run(*words, context); };
}

}  // namespace

const Verb kExplainVerb{"explain", "Say what a profile uses for a message, and why",
                        "ar-tune explain ar-tune-profile.json --bytes 64K --dtype bf16 --mode graph", configure};

}  // namespace artune
