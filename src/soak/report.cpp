// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "soak/report.hpp"

#include <fmt/format.h>

#include <bit>

#include "base/float_bits.hpp"
#include "base/version.hpp"
#include "cli/exit_status.hpp"

namespace artune::soak {
namespace {

float value_of(Form form, std::uint32_t bits) {
  switch (user_dtype(form)) {
    case DType::f32:
      return std::bit_cast<float>(bits);
    case DType::f16:
      return f16_to_float(static_cast<std::uint16_t>(bits));
    case DType::bf16:
      break;
  }
  return bf16_to_float(static_cast<std::uint16_t>(bits));
}

std::string where(const Wrong& wrong) {
  switch (wrong.what) {
    case Wrong::What::element:
      return fmt::format("element {} is {:.9g} ({:#x}), not {:.9g} ({:#x})", wrong.index, value_of(wrong.form, wrong.got),
                         wrong.got, value_of(wrong.form, wrong.expected), wrong.expected);
    case Wrong::What::guard_before:
      return fmt::format("byte {} before the output was overwritten with {:#x}", wrong.index, wrong.got);
    case Wrong::What::guard_after:
      break;
  }
  return fmt::format("byte {} after the output was overwritten with {:#x}", wrong.index, wrong.got);
}

double rate(std::uint64_t calls, double seconds) { return seconds > 0 ? static_cast<double>(calls) / seconds : 0; }

}  // namespace

Calls Tally::total(int ranks_) const {
  Calls sum;
  for (const auto& [cell, of_ranks] : calls) {
    if (const auto found = of_ranks.find(ranks_); found != of_ranks.end()) sum += found->second;
  }
  return sum;
}

Calls Tally::total() const {
  Calls sum;
  for (const int n : ranks) sum += total(n);
  return sum;
}

std::string tally_text(const Tally& tally, const std::optional<Error>& error) {
  constexpr int kName = 38, kColumn = 20;
  std::string text = fmt::format("{:<{}}", "calls: graph + eager", kName);
  for (const int n : tally.ranks) text += fmt::format("{:>{}}", fmt::format("{} ranks", n), kColumn);
  text += '\n';
  std::string short_of;
  for (const auto& [cell, of_ranks] : tally.calls) {
    const std::string name = fmt::format("{} {}", info_of(cell.first).name, form_name(cell.second));
    text += fmt::format("{:<{}}", name, kName);
    for (const int n : tally.ranks) {
      const auto found = of_ranks.find(n);
      text += fmt::format(
          "{:>{}}", found == of_ranks.end() ? "-" : fmt::format("{} + {}", found->second.graph, found->second.eager), kColumn);
      if (found != of_ranks.end() && found->second.all() < kEnoughCalls)
        short_of += fmt::format("\n  {} on {} ranks: {}", name, n, found->second.all());
    }
    text += '\n';
  }
  text += fmt::format("{:<{}}", "all", kName);
  for (const int n : tally.ranks)
    text += fmt::format("{:>{}}", fmt::format("{} + {}", tally.total(n).graph, tally.total(n).eager), kColumn);
  text += fmt::format("\n{:<{}}", "calls/s", kName);
  double seconds = 0;
  for (const int n : tally.ranks) {
    const double spent = tally.seconds.contains(n) ? tally.seconds.at(n) : 0;
    seconds += spent;
    text += fmt::format("{:>{}}", fmt::format("{:.0f}", rate(tally.total(n).all(), spent)), kColumn);
  }
  text += '\n';
  for (const auto& [n, reasons] : tally.unavailable) {
    for (const auto& [id, why] : reasons) text += fmt::format("not on {} ranks: {}: {}\n", n, info_of(id).name, why);
  }
  const Calls total = tally.total();
  if (tally.complete && total.all() >= kFullRun && !short_of.empty())
    text += fmt::format("fewer than {} calls:{}\n", kEnoughCalls, short_of);
  text += fmt::format(
      "{} calls in {:.1f} s, {:.0f} calls/s, {:.0f} % eager, seed {}: {}\n", total.all(), seconds, rate(total.all(), seconds),
      total.all() == 0 ? 0.0 : 100.0 * static_cast<double>(total.eager) / static_cast<double>(total.all()), tally.seed,
      !error                                 ? "nothing wrong"
      : error->reason == Reason::interrupted ? "nothing wrong so far, interrupted"
                                             : error->message);
  return text;
}

Json tally_json(const Tally& tally, const std::optional<Error>& error) {
  Json rows = Json::array();
  for (const auto& [cell, of_ranks] : tally.calls) {
    for (const auto& [n, calls] : of_ranks) {
      rows.push_back({{"candidate", info_of(cell.first).name},
                      {"dtype", form_name(cell.second)},
                      {"ranks", n},
                      {"graph", calls.graph},
                      {"eager", calls.eager}});
    }
  }
  Json groups = Json::array();
  for (const int n : tally.ranks) {
    Json unavailable = Json::array();
    if (const auto found = tally.unavailable.find(n); found != tally.unavailable.end()) {
      for (const auto& [id, why] : found->second) unavailable.push_back({{"candidate", info_of(id).name}, {"why", why}});
    }
    const double spent = tally.seconds.contains(n) ? tally.seconds.at(n) : 0;
    const Calls calls = tally.total(n);
    groups.push_back(
        {{"ranks", n}, {"graph", calls.graph}, {"eager", calls.eager}, {"seconds", spent}, {"unavailable", unavailable}});
  }
  const Calls total = tally.total();
  Json document = {{"kind", "artune-soak/result"},
                   {"version", 1},
                   {"artune", kVersion},
                   {"seed", tally.seed},
                   {"complete", tally.complete},
                   {"calls", total.all()},
                   {"graph", total.graph},
                   {"eager", total.eager},
                   {"groups", groups},
                   {"rows", rows}};
  if (error) {
    const ReasonRow& row = row_of(error->reason);
    document["info"] = {{"exit", {{"reason", row.word}, {"exit_status", row.exit_status}, {"message", error->message}}}};
  }
  return document;
}

std::string wrong_text(const Wrong& wrong) {
  const std::size_t rank = static_cast<std::size_t>(wrong.rank);
  const Candidate candidate{wrong.candidate, wrong.call.geometry};
  return fmt::format(
      "wrong sum: {} {}, {} ranks, rank {}: {}\n"
      "  call {}, {}, count {}, offsets in {} out {} elements, {}; {} wrong elements or bytes on this rank until it was noticed\n"
      "  to repeat: artune-soak --seed {} --ranks {} and what else this run was given\n"
      "  only such calls: artune-soak --seed {} --ranks {} --only '{}' --dtype {}\n",
      candidate.label(), form_name(wrong.form), wrong.ranks, wrong.rank, where(wrong), wrong.call.number,
      wrong.graph ? fmt::format("graph replay {}", wrong.replay) : std::string("eager"), wrong.call.count,
      wrong.call.input_offset[rank], wrong.call.output_offset[rank], wrong.call.in_place ? "in place" : "out of place",
      wrong.count, wrong.seed, wrong.ranks, wrong.seed, wrong.ranks, wrong.candidate, form_name(wrong.form));
}

}  // namespace artune::soak
