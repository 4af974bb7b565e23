// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The project's words as types: what is reduced, how it is launched, how it is measured.
// Every enumerator has exactly one spelling in documents and on the command line:
//
//   to_string(DType::bf16)          -> "bf16"
//   parse_word<DType>("bf16")       -> DType::bf16
//   parse_word<DType>("float")      -> nullopt
//
// No CUDA header may be included here: the runtime, the tool and tests without a GPU share this file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace artune {

enum class Op : std::uint8_t { all_reduce };
enum class DType : std::uint8_t { f32, f16, bf16 };
/// How calls reach the GPU: replayed from a CUDA graph, or enqueued one by one.
enum class Mode : std::uint8_t { graph, eager };
/// Which host threads issue the calls of the ranks.
enum class Launch : std::uint8_t { one_thread, thread_per_rank, process_per_rank };
/// What runs beside the reduction.
enum class Load : std::uint8_t { idle, overlap };
/// Same buffers every call, or rotated over more than the L2 cache.
enum class Regime : std::uint8_t { warm, cold };
/// What carries the bytes.
enum class Path : std::uint8_t { nccl, host, p2p, ce };
/// Candidates of one class give identical bits for identical inputs.
enum class Numerics : std::uint8_t { rank_order_fp32, nccl, hierarchical_fp32, ring, wire_bf16_in, wire_bf16_in_out };

template <typename Enum>
struct WordTable;  // specialised below: `entries`, an array of {value, spelling}

template <typename Enum>
struct Word {
  Enum value;
  std::string_view spelling;
};

template <>
struct WordTable<Op> {
  static constexpr std::array<Word<Op>, 1> entries{{{Op::all_reduce, "all_reduce"}}};
};
template <>
struct WordTable<DType> {
  static constexpr std::array<Word<DType>, 3> entries{{{DType::f32, "f32"}, {DType::f16, "f16"}, {DType::bf16, "bf16"}}};
};
template <>
struct WordTable<Mode> {
  static constexpr std::array<Word<Mode>, 2> entries{{{Mode::graph, "graph"}, {Mode::eager, "eager"}}};
};
template <>
struct WordTable<Launch> {
  static constexpr std::array<Word<Launch>, 3> entries{{{Launch::one_thread, "one-thread"},
                                                        {Launch::thread_per_rank, "thread-per-rank"},
                                                        {Launch::process_per_rank, "process-per-rank"}}};
};
template <>
struct WordTable<Load> {
  static constexpr std::array<Word<Load>, 2> entries{{{Load::idle, "idle"}, {Load::overlap, "overlap"}}};
};
template <>
struct WordTable<Regime> {
  static constexpr std::array<Word<Regime>, 2> entries{{{Regime::warm, "warm"}, {Regime::cold, "cold"}}};
};
template <>
struct WordTable<Path> {
  static constexpr std::array<Word<Path>, 4> entries{
      {{Path::nccl, "nccl"}, {Path::host, "host"}, {Path::p2p, "p2p"}, {Path::ce, "ce"}}};
};
template <>
struct WordTable<Numerics> {
  static constexpr std::array<Word<Numerics>, 6> entries{{{Numerics::rank_order_fp32, "rank-order-fp32"},
                                                          {Numerics::nccl, "nccl"},
                                                          {Numerics::hierarchical_fp32, "hierarchical-fp32"},
                                                          {Numerics::ring, "ring"},
                                                          {Numerics::wire_bf16_in, "wire-bf16-in"},
                                                          {Numerics::wire_bf16_in_out, "wire-bf16-in-out"}}};
};

template <typename Enum>
constexpr std::string_view to_string(Enum value) {
  for (const auto& entry : WordTable<Enum>::entries) {
    if (entry.value == value) return entry.spelling;
  }
  return "?";
}

/// The enumerator spelled `text`, or nullopt: spelling is exact, there are no abbreviations.
template <typename Enum>
constexpr std::optional<Enum> parse_word(std::string_view text) {
  for (const auto& entry : WordTable<Enum>::entries) {
    if (entry.spelling == text) return entry.value;
  }
  return std::nullopt;
}

/// "f32, f16, bf16": for error messages that name the way out.
template <typename Enum>
std::string word_list() {
  std::string list;
  for (const auto& entry : WordTable<Enum>::entries) {
    if (!list.empty()) list += ", ";
    list += entry.spelling;
  }
  return list;
}

constexpr std::size_t element_bytes(DType type) { return type == DType::f32 ? 4 : 2; }

}  // namespace artune
