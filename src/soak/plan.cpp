// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "soak/plan.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace artune::soak {
namespace {

// Cards of a deck. A call across PCIe or of many kernels takes the time of several others, but 10^7 calls over four
// groups must give each cell 10^4: 3 of about 500 cards give it 1.4 * 10^4.
int weight_of(const CandidateInfo& info) {
  if (info.algorithm == Algorithm::copies || info.algorithm == Algorithm::ring) return 3;
  return info.path == Path::host ? 5 : 10;
}

constexpr std::size_t kKi = 1024;
/// Messages split into more launches than this teach nothing that fewer don't.
constexpr std::size_t kMostPieces = 4;

/// Below this any geometry will do; above it a geometry gives a thread at most kMostUnits units, or one call would take
/// milliseconds.
constexpr std::size_t kAnyGeometryBytes = 16 * kKi;
constexpr std::size_t kMostUnits = 16;

bool matches_any(const std::vector<std::string>& globs, std::string_view name) {
  const std::string text(name);
  return globs.empty() || std::any_of(globs.begin(), globs.end(),
                                      [&](const std::string& glob) { return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0; });
}

bool is_ours(const CandidateInfo& info) { return info.path != Path::nccl; }

}  // namespace

std::string_view form_name(Form form) {
  return form == Form::f32_over_bf16 ? std::string_view("f32-over-bf16") : to_string(user_dtype(form));
}

std::size_t largest_message(const CandidateInfo& info) {
  if (info.path != Path::host) return ~std::size_t{0};
  if (info.algorithm == Algorithm::copies) return 256 * kKi;
  return (info.algorithm == Algorithm::two_shot ? 128 : 64) * kKi;
}

Result<Filter> make_filter(const std::vector<std::string>& globs, const std::vector<std::string>& forms) {
  std::string names;
  for (const CandidateInfo& info : menu()) {
    if (is_ours(info)) names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  for (const std::string& glob : globs) {
    const bool known = std::any_of(menu().begin(), menu().end(),
                                   [&](const CandidateInfo& info) { return is_ours(info) && matches_any({glob}, info.name); });
    if (!known) return Error{Reason::usage, "--only '" + glob + "' matches no candidate; there are " + names};
  }
  Filter filter{.only = globs, .forms = {}};
  for (const std::string& word : forms) {
    const auto found = std::find_if(kForms.begin(), kForms.end(), [&](Form form) { return form_name(form) == word; });
    if (found == kForms.end()) return Error{Reason::usage, "--dtype '" + word + "' is none of f32, f16, bf16, f32-over-bf16"};
    filter.forms.push_back(*found);
  }
  return filter;
}

bool admits(const Filter& filter, const CandidateInfo& info, Form form) {
  const bool form_wanted =
      filter.forms.empty() || std::find(filter.forms.begin(), filter.forms.end(), form) != filter.forms.end();
  return is_ours(info) && form_wanted && matches_any(filter.only, info.name);
}

std::vector<Cell> cells_of(const Filter& filter, std::size_t max_bytes, const CellSources& sources) {
  std::vector<Cell> cells;
  for (const CandidateInfo& info : menu()) {
    if (!is_ours(info) || !sources.unavailable(info.id).empty()) continue;
    const std::size_t slab = sources.slab_bytes(info.id);
    const std::size_t in_pieces = slab > max_bytes ? max_bytes : kMostPieces * slab;
    const std::size_t most = std::max<std::size_t>(std::min({max_bytes, largest_message(info), in_pieces}), 4);
    for (const Form form : kForms) {
      if (!admits(filter, info, form) || (form == Form::f32_over_bf16 && !sources.lossy_served(info))) continue;
      cells.push_back({info.id, form, weight_of(info), most});
    }
  }
  return cells;
}

std::uint64_t Dice::next() {
  std::uint64_t x = state_ += 0x9e3779b97f4a7c15ULL;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
  return x ^ x >> 31;
}

CallSource::CallSource(std::vector<Cell> cells, AdmitFacts facts, std::uint64_t seed, std::uint32_t first_number)
    : cells_(std::move(cells)), facts_(facts), dice_(seed), number_(first_number) {}

std::size_t CallSource::deal() {
  if (deck_.empty()) {
    for (std::size_t cell = 0; cell < cells_.size(); ++cell)
      deck_.insert(deck_.end(), static_cast<std::size_t>(cells_[cell].weight), cell);
    for (std::size_t left = deck_.size(); left > 1; --left) std::swap(deck_[left - 1], deck_[dice_.below(left)]);
  }
  const std::size_t cell = deck_.back();
  deck_.pop_back();
  return cell;
}

std::size_t CallSource::draw_count(const Cell& cell) {
  const std::size_t most = cell.most_bytes / element_bytes(user_dtype(cell.form));
  if (dice_.one_in(8)) {
    // The largest message counts as an edge; one that is too long for this cell becomes it.
    const std::size_t edge = dice_.below(kEdgeCounts.size() + 1);
    return edge == kEdgeCounts.size() ? most : std::min(kEdgeCounts[edge], most);
  }
  const double count = std::exp(dice_.unit() * std::log(static_cast<double>(most) + 1));  // [1, most + 1)
  return std::clamp<std::size_t>(static_cast<std::size_t>(count), 1, most);
}

Geometry CallSource::draw_geometry(const CandidateInfo& info, std::size_t bytes) {
  AdmitFacts facts = facts_;
  facts.bytes = bytes;
  const bool offered = dice_.one_in(2);
  if (offered || info.path == Path::ce) {
    const std::vector<Geometry> geometries = info.geometries(facts);
    return geometries[dice_.below(geometries.size())];
  }
  if (info.algorithm == Algorithm::copies) {
    const std::size_t chunks = dice_.between(1, 4);
    return {.chunk_bytes = std::max<std::size_t>(bytes / chunks, 16)};
  }
  const int threads = 32 * static_cast<int>(dice_.between(1, kMostThreads / 32));
  const auto most = static_cast<std::size_t>(most_resident_blocks(facts, threads));
  const std::size_t unit = info.protocol == Protocol::ll ? 8 : 16;
  const std::size_t per_block = unit * static_cast<std::size_t>(threads) * kMostUnits;
  const std::size_t least = bytes <= kAnyGeometryBytes ? 1 : std::min(most, (bytes + per_block - 1) / per_block);
  return {.blocks = static_cast<int>(dice_.between(least, most)), .threads = threads};
}

DrawnCall CallSource::next() {
  DrawnCall call;
  call.number = number_++;
  call.cell = deal();
  const Cell& cell = cells_[call.cell];
  call.count = draw_count(cell);
  call.geometry = draw_geometry(info_of(cell.candidate), call.count * element_bytes(user_dtype(cell.form)));
  call.in_place = dice_.one_in(2);
  call.stream = static_cast<int>(dice_.below(2));
  // Half of the calls aligned on all ranks, a quarter alike on all ranks, a quarter each rank as it likes.
  const std::size_t manner = dice_.below(4);
  const auto offset = [&] { return static_cast<std::uint8_t>(manner < 2 ? 0 : dice_.between(0, kMostOffset)); };
  const std::uint8_t input = offset(), output = offset();
  for (int rank = 0; rank < facts_.ranks; ++rank) {
    call.input_offset[rank] = manner == 3 ? offset() : input;
    call.output_offset[rank] = manner == 3 ? offset() : output;
    if (call.in_place) call.input_offset[rank] = call.output_offset[rank];
  }
  return call;
}

Result<std::uint64_t> parse_calls(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 1) || value > 4e9) {
    return Error{Reason::usage, "--calls '" + std::string(text) + "' is no number from 1 to 4e9; write 10000000 or 1e7"};
  }
  return static_cast<std::uint64_t>(value);
}

}  // namespace artune::soak
