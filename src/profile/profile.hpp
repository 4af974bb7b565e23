// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The profile: what `ar-tune tune` writes and every runtime reads. JSON kind "ar-tune/profile", schema in
// profiles/schema/profile.schema.json. No CUDA header here or below: libartune links this folder.
//
//   Result<Profile> profile = read_profile("profile.json");
//   const Range* range = profile->find(key)->lookup(bytes);
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/candidate.hpp"
#include "base/document.hpp"
#include "base/result.hpp"
#include "base/words.hpp"

namespace artune {

/// Raised whenever a kernel changes so that old figures no longer describe it. A profile of another
/// table ABI is refused by the runtime, and compared without prejudice by `compare`.
inline constexpr int kTableAbi = 1;

struct TableKey {
  Op op = Op::all_reduce;
  DType dtype = DType::bf16;
  DType wire = DType::bf16;
  int ranks = 2;
  Mode mode = Mode::graph;
  Launch launch = Launch::one_thread;
  Load load = Load::idle;
  auto operator<=>(const TableKey&) const = default;
};

/// [min_bytes, max_bytes), the last range of a table open. Ranges of a table are sorted and total over [1, inf).
struct Range {
  std::size_t min_bytes = 0;
  std::optional<std::size_t> max_bytes;  ///< nullopt = open
  Candidate use;
  Numerics numerics = Numerics::nccl;
  std::optional<double> median_us;  ///< at the measured size nearest the geometric middle of the range
  std::optional<double> nccl_us;    ///< NCCL's best figure at that size; nullopt = no NCCL
  std::optional<double> gain;       ///< nccl_us / median_us
  bool extrapolated = false;        ///< reaches beyond the measured sizes
};

/// A single number in a consumer's words. Half-open: `direction` says which side the bytes themselves fall on.
struct Threshold {
  std::string name;                  ///< NCCL_MIN_BYTES, CE_MIN_BYTES, ONESHOT_MAX_BYTES
  std::optional<std::size_t> bytes;  ///< nullopt = never
  std::string direction;             ///< "nccl when bytes >= this"
  double regret_percent = 0;         ///< weighted loss against the table where ranges are not monotone
};

struct Table {
  TableKey key;
  std::vector<Range> ranges;
  std::vector<Threshold> thresholds;

  /// The range that holds `bytes` (0 counts as 1).
  const Range& lookup(std::size_t bytes) const;
};

struct Rejected {
  Candidate candidate;
  TableKey key;
  std::size_t bytes = 0;  ///< 0 = at every size
  std::string reason;     ///< reason word: "slower", "wrong-sum", "hang", "crash", "unavailable"
  std::string detail;
};

struct VerdictRow {
  int from = 0, to = 0;
  Path path = Path::p2p;
  std::string verdict, reason;
};

struct Profile {
  DocumentHeader header;
  std::string fingerprint;  ///< of the ordered group: see fingerprint.hpp
  int table_abi = kTableAbi;
  std::vector<Table> tables;
  std::vector<Rejected> rejected;
  std::vector<VerdictRow> verdicts;

  const Table* find(const TableKey& key) const;
};

Json profile_to_json(const Profile& profile);
/// Strict: unknown keys, holes, overlaps, unknown candidates are errors that carry the JSON path.
Result<Profile> profile_from_json(const Json& document, const std::string& name);
Result<Profile> read_profile(const std::string& path);
/// One range per line, so that diffs read well.
std::string profile_to_text(const Profile& profile);

}  // namespace artune
