// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/plan.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "base/units.hpp"
#include "paths/menu.hpp"

namespace artune {
namespace {

constexpr std::size_t kMostSizes = 512;  // a factor of 1.05 over the default span gives 228
constexpr std::int64_t kMostRanks = 1024;
constexpr double kOverlapBudget = 2;     // times the default
constexpr std::int64_t kShortestComputeUs = 200, kLongestComputeUs = 1'000'000;  // ten waves of the load's blocks; a second

Error usage(const std::string& message) { return {Reason::usage, message}; }

/// A whole positive number, spelled with digits only.
std::optional<std::int64_t> positive(const std::string& word) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || value < 1) return std::nullopt;
  return value;
}

/// Every word of `words` as an enumerator, in the order typed, repeats dropped.
template <typename Enum>
Result<std::vector<Enum>> enumerators(const char* what, const std::vector<std::string>& words, std::vector<Enum> fallback) {
  if (words.empty()) return fallback;
  std::vector<Enum> values;
  for (const auto& word : words) {
    const auto value = parse_word<Enum>(word);
    if (!value) return usage(std::string(what) + " '" + word + "': is none of " + word_list<Enum>());
    if (std::find(values.begin(), values.end(), *value) == values.end()) values.push_back(*value);
  }
  return values;
}

/// The wires of every dtype asked for, exact ones first. Only f32 has a lossy one; the others go as they are.
Result<std::vector<Shape>> elements_of(const std::vector<DType>& dtypes, const std::vector<WireWord>& wires, bool decides,
                                       std::vector<std::string>& notes) {
  const auto wanted = [&](WireWord wire) { return std::find(wires.begin(), wires.end(), wire) != wires.end(); };
  const bool exact = decides || wanted(WireWord::native);
  std::vector<Shape> elements;
  std::string exact_only;
  bool lossy = false;
  for (const DType dtype : dtypes) {
    const bool has_lossy = dtype != DType::bf16 && is_wire_of(dtype, DType::bf16);
    if (exact || !has_lossy) elements.push_back({.dtype = dtype, .wire = dtype});
    if (has_lossy && wanted(WireWord::bf16)) elements.push_back({.dtype = dtype, .wire = DType::bf16});
    lossy = lossy || has_lossy;
    if (!has_lossy) exact_only += (exact_only.empty() ? "" : ", ") + std::string(to_string(dtype));
  }
  if (!wanted(WireWord::bf16)) return elements;
  if (!lossy) return usage("wire 'bf16': is for f32 only, and dtype is " + exact_only + "; add f32 to --dtype, or leave out --wire");
  if (!exact_only.empty()) notes.push_back("--wire bf16 is for f32; " + exact_only + " goes over the links as it is");
  if (exact && !wanted(WireWord::native)) notes.push_back("--wire native is measured too: whether bf16 pays is decided against it");
  return elements;
}

Result<std::vector<int>> ranks_of(const std::vector<std::string>& words, int world_ranks) {
  std::vector<int> all;
  for (const auto& word : words) {
    const auto value = positive(word);
    if (!value || *value > kMostRanks) return usage("ranks '" + word + "': write whole numbers from 2 to " + std::to_string(world_ranks));
    if (*value < 2) return usage("ranks '" + word + "': one rank has nothing to reduce, write 2 or more");
    if (*value > world_ranks) {
      return usage("ranks '" + word + "': there are " + std::to_string(world_ranks) +
                   " ranks; name more GPUs with --devices, or let them share with --ranks-per-gpu");
    }
    all.push_back(static_cast<int>(*value));
  }
  if (words.empty()) {
    if (world_ranks < 2) {
      return usage("ranks '" + std::to_string(world_ranks) +
                   "': one rank has nothing to reduce; name more GPUs with --devices, or rehearse on one with --ranks-per-gpu 2");
    }
    all.push_back(world_ranks);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

Result<std::size_t> whole_elements(const std::string& what, std::size_t bytes, DType dtype) {
  const std::size_t whole = bytes / element_bytes(dtype) * element_bytes(dtype);
  if (whole == 0) {
    return usage(what + ": is no whole element of " + std::string(to_string(dtype)) + " (" + std::to_string(element_bytes(dtype)) +
                 " bytes); write at least that");
  }
  return whole;
}

Result<std::vector<std::size_t>> listed_sizes(const std::vector<std::string>& words, DType dtype) {
  std::vector<std::size_t> sizes;
  for (const auto& word : words) {
    const auto bytes = parse_size(word);
    if (!bytes) return bytes.error();
    const auto whole = whole_elements("size '" + word + "'", *bytes, dtype);
    if (!whole) return whole.error();
    sizes.push_back(*whole);
  }
  return sizes;
}

Result<std::vector<std::size_t>> token_sizes(const std::string& hidden_word, const std::vector<std::string>& tokens, DType dtype) {
  const auto hidden = positive(hidden_word);
  constexpr std::int64_t kMost = std::int64_t{1} << 24;  // keeps the product of the three far below 2^63
  if (!hidden || *hidden > kMost) return usage("hidden '" + hidden_word + "': write a whole number of elements, e.g. 5120");
  std::vector<std::size_t> sizes;
  for (const auto& word : tokens) {
    const auto count = positive(word);
    if (!count || *count > kMost) return usage("tokens '" + word + "': write whole numbers, e.g. 1,2,4,8,512");
    sizes.push_back(static_cast<std::size_t>(*hidden * *count) * element_bytes(dtype));
  }
  return sizes;
}

Result<double> factor_of(const std::string& word) {
  double factor = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), factor, std::chars_format::fixed);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || !std::isfinite(factor)) {
    return usage("factor '" + word + "': write a decimal number above 1, e.g. 2 or 1.5");
  }
  if (factor <= 1) return usage("factor '" + word + "': sizes would never grow, write a number above 1");
  return factor;
}

Result<std::vector<std::size_t>> spanned_sizes(const PlanWords& words, DType dtype) {
  const std::string min_word = words.min.value_or("1K");
  const std::string max_word = words.max.value_or("64M");
  const std::string factor_word = words.factor.value_or("2");
  const auto min = parse_size(min_word);
  if (!min) return min.error();
  const auto max = parse_size(max_word);
  if (!max) return max.error();
  const auto factor = factor_of(factor_word);
  if (!factor) return factor.error();
  if (*min > *max) return usage("min '" + min_word + "': is above max '" + max_word + "'; swap them, or raise --max");
  if (*min == 0) return usage("min '" + min_word + "': multiples of nothing are nothing, write 1 or more");
  std::vector<std::size_t> sizes;
  for (double exact = static_cast<double>(*min); exact <= static_cast<double>(*max); exact *= *factor) {
    const auto whole = whole_elements("min '" + min_word + "'", static_cast<std::size_t>(exact), dtype);
    if (!whole) return whole.error();
    if (sizes.empty() || *whole != sizes.back()) sizes.push_back(*whole);
    if (sizes.size() > kMostSizes) {
      return usage("factor '" + factor_word + "': gives more than " + std::to_string(kMostSizes) + " sizes between " + min_word + " and " +
                   max_word + "; write a larger one");
    }
  }
  return sizes;
}

/// Ascending, without repeats, in whole elements of `dtype`.
Result<std::vector<std::size_t>> sizes_of(const PlanWords& words, DType dtype) {
  auto sizes = !words.sizes.empty() ? listed_sizes(words.sizes, dtype)
               : words.hidden       ? token_sizes(*words.hidden, words.tokens, dtype)
                                    : spanned_sizes(words, dtype);
  if (!sizes) return sizes;
  std::sort(sizes->begin(), sizes->end());
  sizes->erase(std::unique(sizes->begin(), sizes->end()), sizes->end());
  return sizes;
}

Result<std::vector<std::size_t>> overlap_sizes_of(const PlanWords& words, DType dtype) {
  const bool said = words.min || words.max || words.factor || !words.sizes.empty() || words.hidden;
  return said ? sizes_of(words, dtype) : listed_sizes(words.overlap_sizes, dtype);
}

Status read_overlap_words(const PlanWords& words, Plan& plan) {
  if (words.overlap && !words.budget) plan.budget_s *= kOverlapBudget;
  if (!words.compute_us) return Ok{};
  if (!words.overlap) return usage("compute-us '" + *words.compute_us + "': is the load of --overlap; add that, or leave it out");
  const auto us = positive(*words.compute_us);
  if (!us || *us < kShortestComputeUs || *us > kLongestComputeUs) {
    return usage("compute-us '" + *words.compute_us + "': write microseconds from " + std::to_string(kShortestComputeUs) + " to " +
                 std::to_string(kLongestComputeUs));
  }
  plan.compute_us = static_cast<double>(*us);
  return Ok{};
}

Status one_way_to_say_sizes(const PlanWords& words) {
  const bool span = words.min || words.max || words.factor;
  const bool list = !words.sizes.empty();
  const bool model = words.hidden || !words.tokens.empty();
  if (span + list + model > 1) {
    return usage("sizes given in two ways; write one of --min/--max/--factor, --sizes, or --hidden with --tokens");
  }
  if (words.hidden && words.tokens.empty()) return usage("hidden '" + *words.hidden + "': also needs --tokens, e.g. --tokens 1,2,4,8,512");
  if (!words.hidden && !words.tokens.empty()) return usage("tokens '" + words.tokens.front() + "': also needs --hidden, e.g. --hidden 5120");
  return Ok{};
}

}  // namespace

Result<Plan> make_plan(const PlanWords& words, const PlanWorld& world) {
  if (const auto said = one_way_to_say_sizes(words); !said) return said.error();
  const auto ops = enumerators<Op>("op", words.ops, {Op::all_reduce});
  if (!ops) return ops.error();
  const auto dtypes = enumerators<DType>("dtype", words.dtypes, {DType::bf16});
  if (!dtypes) return dtypes.error();
  const auto wires = enumerators<WireWord>("wire", words.wires, {WireWord::native});
  if (!wires) return wires.error();
  const auto modes = enumerators<Mode>("mode", words.modes, {Mode::graph, Mode::eager});
  if (!modes) return modes.error();
  const auto ranks = ranks_of(words.ranks, world.ranks);
  if (!ranks) return ranks.error();
  auto filter = make_filter(words.paths, words.candidates);
  if (!filter) return filter.error();

  Plan plan;
  plan.filter = std::move(*filter);
  plan.seed = words.seed;
  if (words.budget) {
    const auto seconds = parse_duration(*words.budget);
    if (!seconds) return seconds.error();
    if (!(*seconds > 0)) return usage("budget '" + *words.budget + "': nothing can be measured in no time, write e.g. 50s");
    plan.budget_s = *seconds;
  }
  if (const auto overlap = read_overlap_words(words, plan); !overlap) return overlap.error();
  const auto elements = elements_of(*dtypes, *wires, words.decides, plan.notes);
  if (!elements) return elements.error();
  for (const Load load : {Load::idle, Load::overlap}) {
    if (load == Load::overlap && !words.overlap) continue;
    for (const int rank_count : *ranks) {
      for (const Op op : *ops) {
        for (const Shape& element : *elements) {
          const auto sizes = load == Load::overlap ? overlap_sizes_of(words, element.dtype) : sizes_of(words, element.dtype);
          if (!sizes) return sizes.error();
          for (const std::size_t bytes : *sizes) {
            for (const Mode mode : *modes) {
              plan.shapes.push_back({.op = op, .dtype = element.dtype, .wire = element.wire, .ranks = rank_count, .bytes = bytes,
                                     .mode = mode, .launch = world.launch, .load = load});
            }
          }
        }
      }
    }
  }
  return plan;
}

Json plan_identity(const Plan& plan) {
  Json shapes = Json::array();
  for (const Shape& shape : plan.shapes) {
    shapes.push_back({to_string(shape.op), to_string(shape.dtype), to_string(shape.wire), shape.ranks, shape.bytes, to_string(shape.mode),
                      to_string(shape.launch), to_string(shape.load), to_string(shape.regime)});
  }
  return {{"seed", plan.seed}, {"paths", plan.filter.paths}, {"candidates", plan.filter.globs}, {"compute_us", plan.compute_us},
          {"shapes", std::move(shapes)}};
}

}  // namespace artune
