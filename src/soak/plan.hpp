// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a soak does next: random legal calls, the same ones for the same seed. No CUDA header.
//
//   const std::vector<Cell> cells = cells_of(filter, max_bytes, sources);
//   CallSource source(cells, facts, seed);
//   const DrawnCall call = source.next();     // candidate, form, count, geometry, offsets of every rank
//
// Cells (a candidate with a form) are dealt from a shuffled deck, so that none falls behind by bad luck; counts are
// log-uniform with a share of edge counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/candidate.hpp"
#include "base/result.hpp"
#include "paths/menu.hpp"
#include "protocol/arguments.hpp"
#include "protocol/elements.cuh"

namespace artune::soak {

inline constexpr std::array<Form, 4> kForms = {Form::f32, Form::f16, Form::bf16, Form::f32_over_bf16};
/// "f32", "f16", "bf16", "f32-over-bf16": f32 elements that go over the link as bf16.
std::string_view form_name(Form form);

/// A candidate with a form: what is counted by itself.
struct Cell {
  CandidateId candidate;
  Form form;
  int weight;              ///< cards in a deck
  std::size_t most_bytes;  ///< of a message
};

struct Filter {
  std::vector<std::string> only;  ///< globs of candidate names; empty = all
  std::vector<Form> forms;        ///< empty = all
};

/// A glob that names nothing we could soak is an error that lists what there is.
Result<Filter> make_filter(const std::vector<std::string>& globs, const std::vector<std::string>& forms);
bool admits(const Filter& filter, const CandidateInfo& info, Form form);

struct CellSources {
  std::function<std::string(CandidateId)> unavailable;  ///< empty = may be enqueued
  std::function<bool(const CandidateInfo&)> lossy_served;
  std::function<std::size_t(CandidateId)> slab_bytes;  ///< the largest message of one launch
};

/// The largest message that a candidate is soaked with: what crosses PCIe takes long.
std::size_t largest_message(const CandidateInfo& info);

/// In the menu's order. NCCL is never among them.
std::vector<Cell> cells_of(const Filter& filter, std::size_t max_bytes, const CellSources& sources);

/// Small, whole, deterministic on every platform: splitmix64.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  /// 0 .. sides - 1. The remainder's bias is beyond notice for dice this small.
  std::size_t below(std::size_t sides) { return next() % sides; }
  std::size_t between(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  bool one_in(std::size_t sides) { return below(sides) == 0; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  ///< [0, 1)

 private:
  std::uint64_t state_;
};

inline constexpr int kMostOffset = 16;  ///< elements

struct DrawnCall {
  std::uint32_t number = 0;  ///< of this soak, never twice
  std::size_t cell = 0;      ///< index into the cells
  std::size_t count = 1;
  Geometry geometry;
  bool in_place = false;
  int stream = 0;                                                       ///< of two, where the call is eager
  std::array<std::uint8_t, kMaxRanks> input_offset{}, output_offset{};  ///< elements, of every rank; equal in place
};

/// Element counts that are drawn more often than chance would: where units, vectors and shards are ragged or empty.
inline constexpr std::array<std::size_t, 22> kEdgeCounts = {1,  2,  3,   4,   5,   7,    8,    9,    15,   16,    17,
                                                            31, 33, 127, 255, 257, 1021, 2048, 4093, 8191, 16381, 65521};

class CallSource {
 public:
  /// `facts` of the group, whatever their bytes. `first_number` of the calls.
  CallSource(std::vector<Cell> cells, AdmitFacts facts, std::uint64_t seed, std::uint32_t first_number = 0);

  const std::vector<Cell>& cells() const { return cells_; }
  std::uint32_t next_number() const { return number_; }
  DrawnCall next();
  Dice& dice() { return dice_; }

 private:
  std::size_t deal();
  std::size_t draw_count(const Cell& cell);
  Geometry draw_geometry(const CandidateInfo& info, std::size_t bytes);

  std::vector<Cell> cells_;
  AdmitFacts facts_;
  Dice dice_;
  std::uint32_t number_;
  std::vector<std::size_t> deck_;
};

/// "10000000", "1e7", "2.5e6". Errors are Reason::usage.
Result<std::uint64_t> parse_calls(std::string_view text);

}  // namespace artune::soak
