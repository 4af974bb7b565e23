// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "rig_model_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/units.hpp"
#include "machine/model/cost.hpp"
#include "machine/model/fair_share.hpp"
#include "machine/model/nccl.hpp"
#include "machine/rig.hpp"
#include "paths/menu.hpp"
#include "rig_test_boxes.hpp"

namespace artune::test {
namespace {

using model::Group;
using model::Tree;

constexpr std::size_t kKi = 1024;
constexpr std::size_t kMi = 1024 * kKi;

/// A shipped rig and all of its GPUs.
struct Box {
  explicit Box(const std::string& name) : rig(read(name)), tree(rig) {}
  Group group() const {
    Group group{rig, tree, {}};
    for (std::size_t i = 0; i < rig.gpus.size(); ++i) group.gpus.push_back(i);
    return group;
  }
  static Rig read(const std::string& name) {
    Result<Rig> rig = load_rig(name);
    if (!rig) throw std::runtime_error(rig.error().message);
    return std::move(*rig);
  }

  Rig rig;
  Tree tree;
};

struct Best {
  Candidate candidate;
  double us = 0;
};

/// The geometry of the menu that the model likes best, without noise.
Best best_of(const Box& box, const CandidateInfo& info, std::size_t bytes, Mode mode) {
  Shape shape;
  shape.ranks = static_cast<int>(box.rig.gpus.size());
  shape.bytes = bytes;
  shape.mode = mode;
  AdmitFacts facts{.ranks = shape.ranks,
                   .multiprocessors = box.rig.gpus.back().multiprocessors,
                   .bytes = bytes,
                   .peer_access = true,
                   .nccl = true};
  std::optional<Best> best;
  for (const Geometry& geometry : info.geometries(facts)) {
    Candidate candidate{std::string(info.name), geometry};
    const double us = model::call_cost(box.group(), candidate, shape).call_us;
    if (!best || us < best->us) best = Best{std::move(candidate), us};
  }
  return *best;
}

Best best_of(const Box& box, const char* name, std::size_t bytes) {
  return best_of(box, *find_candidate(name), bytes, Mode::graph);
}

std::string error_percent(double model, double published) { return fmt::format("{:+.0f} %", (model / published - 1) * 100); }

/// Root of the mean of squared logarithms: a factor, the same for twice too much and half.
class ErrorFactor {
 public:
  void add(double model, double published) {
    sum_ += std::pow(std::log(model / published), 2);
    ++count_;
  }
  std::string text() const { return fmt::format("{:.2f}", std::exp(std::sqrt(sum_ / count_))); }

 private:
  double sum_ = 0;
  int count_ = 0;
};

double mean_staggered_gb_per_s(const Rig& rig, std::size_t shift) {
  const Tree tree(rig);
  std::vector<model::Flow> flows;
  for (std::size_t i = 0; i < rig.gpus.size(); ++i) flows.push_back(tree.between(i, (i + shift) % rig.gpus.size(), 1));
  const std::vector<double> rates = model::fair_rates(tree.capacities(1), flows);
  return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
}

double all_to_all_gb_per_s(const Rig& rig) {
  const Tree tree(rig);
  std::vector<model::Flow> flows;
  for (std::size_t from = 0; from < rig.gpus.size(); ++from) {
    for (std::size_t to = 0; to < rig.gpus.size(); ++to) {
      if (from != to) flows.push_back(tree.between(from, to, 1e6));
    }
  }
  return static_cast<double>(flows.size()) * 1e6 / (model::last_completion_us(tree.capacities(1), flows) * 1e3);
}

std::string fair_share_section() {
  std::string text =
      "### Sharing of links alone, GB/s\n\n"
      "Eight GPUs, every link 52 GB/s; nothing is fitted.\n\n"
      "| traffic | model | published | error |\n|---|---|---|---|\n";
  const auto row = [&](const std::string& what, double model, double published) {
    text += fmt::format("| {} | {:.1f} | {:.1f} | {} |\n", what, model, published, error_percent(model, published));
  };
  row("all to all, two switches x 4 GPUs, sum", all_to_all_gb_per_s(switch_box(2, 4, 52)), 189);
  row("all to all, four virtual switches x 2 GPUs, sum", all_to_all_gb_per_s(switch_box(4, 2, 52)), 254);
  const std::vector<double> published = {50.13, 38.15, 25.67, 12.75, 25.57, 37.96, 50.04};
  for (std::size_t shift = 1; shift <= published.size(); ++shift) {
    row(fmt::format("GPU i to i+{}, two switches x 4 GPUs, mean", shift), mean_staggered_gb_per_s(switch_box(2, 4, 52), shift),
        published[shift - 1]);
  }
  return text + "\n";
}

std::string floor_section() {
  struct Row {
    std::size_t ranks;
    const char* published;
  };
  std::string text =
      "### NCCL's floor for small messages, µs\n\n"
      "Published constants only (LL, 6.6 + 2(n-1) x 1.0).\n\n"
      "| ranks | model | published |\n|---|---|---|\n";
  for (const Row& row :
       {Row{2, "8.25 to 8.6 (2x 4090, through host memory)"}, Row{4, "13.5 (4x RTX PRO 6000); 32.3 on an untuned WRX90"},
        Row{8, "17.3 to 27.1 (switch boxes); 42 and more without P2P or untuned"}, Row{16, "36.1"}}) {
    text += fmt::format("| {} | {:.1f} | {} |\n", row.ranks,
                        model::nccl_floor_us(row.ranks, model::NcclProtocol::ll, model::kPublishedNccl), row.published);
  }
  return text + "\n";
}

std::string rtx_pro_section() {
  struct Row {
    std::size_t bytes;
    double one_shot_us, nccl_us;
  };
  constexpr double kAnomalyUs = 71.2;
  const std::vector<Row> published = {{1 * kKi, 6.1, 13.5},    {4 * kKi, 6.5, 13.2},    {8 * kKi, 6.4, 13.9},
                                      {16 * kKi, 7.7, 14.7},   {32 * kKi, 9.2, 15.6},   {64 * kKi, 11.8, kAnomalyUs},
                                      {128 * kKi, 17.6, 24.7}, {256 * kKi, 28.7, 40.9}, {512 * kKi, 51.0, 71.7},
                                      {1 * kMi, 95.6, 85.2}};
  const Box box("4x-rtx-pro-6000-switch");
  std::string text =
      "### Rig 4x-rtx-pro-6000-switch, µs\n\n"
      "| bytes | published one-shot | model p2p/one-shot/flag | error | published NCCL | model NCCL | error | NCCL by published "
      "constants | "
      "error |\n|---|---|---|---|---|---|---|---|---|\n";
  ErrorFactor one_shot, rig_constants, published_constants;
  for (const Row& row : published) {
    const double flag = best_of(box, "p2p/one-shot/flag", row.bytes).us;
    const double nccl = best_of(box, "nccl", row.bytes).us;
    const double by_book = model::nccl_cost(box.group(), static_cast<double>(row.bytes), 0, model::kPublishedNccl).us;
    one_shot.add(flag, row.one_shot_us);
    if (row.nccl_us != kAnomalyUs) {
      rig_constants.add(nccl, row.nccl_us);
      published_constants.add(by_book, row.nccl_us);
    }
    text += fmt::format("| {} | {:.1f} | {:.1f} | {} | {:.1f} | {:.1f} | {} | {:.1f} | {} |\n", format_size(row.bytes),
                        row.one_shot_us, flag, error_percent(flag, row.one_shot_us), row.nccl_us, nccl,
                        error_percent(nccl, row.nccl_us), by_book, error_percent(by_book, row.nccl_us));
  }
  return text +
         fmt::format(
             "\nTypical error as a factor: one-shot {}, NCCL {} (by published constants {}), the 64K row of NCCL left out.\n\n",
             one_shot.text(), rig_constants.text(), published_constants.text());
}

std::string x4_section() {
  // 5120 values, the hidden size of the models that fit 24 GB: an assumption, the trace doesn't give its message size.
  constexpr std::size_t kBf16Bytes = 5120 * 2;
  constexpr std::size_t kF32Bytes = 5120 * 4;
  const Box box("rtx4070-rtx3060-x4");
  std::string text =
      "### Rig rtx4070-rtx3060-x4, µs\n\n"
      "| reduction of one token | published | model | error |\n|---|---|---|---|\n";
  const auto row = [&](const std::string& what, double published, double model) {
    text += fmt::format("| {} | {:.0f} | {:.1f} | {} |\n", what, published, model, error_percent(model, published));
  };
  row("p2p kernel, 10 KiB bf16", 10, best_of(box, "p2p/one-shot/flag", kBf16Bytes).us);
  row("host kernel, 10 KiB bf16", 17, best_of(box, "host/one-shot/flag", kBf16Bytes).us);
  row("NCCL without P2P, 20 KiB f32", 41, best_of(box, "nccl", kF32Bytes).us);
  row("NCCL by published constants, 20 KiB f32", 41,
      model::nccl_cost(box.group(), static_cast<double>(kF32Bytes), 0, model::kPublishedNccl).us);
  return text + "\n";
}

std::string winners_section() {
  std::string text = "### Who wins by the model (CUDA graph), µs\n\n| bytes |";
  const std::vector<std::string> names = {"4x-rtx-pro-6000-switch", "rtx4070-rtx3060-x4"};
  std::vector<Box> boxes;
  for (const std::string& name : names) {
    boxes.emplace_back(name);
    text += fmt::format(" {} | µs | limit | NCCL |", name);
  }
  text += "\n|---|---|---|---|---|---|---|---|---|\n";
  for (std::size_t bytes = 1 * kKi; bytes <= 64 * kMi; bytes *= 4) {
    text += fmt::format("| {} |", format_size(bytes));
    for (const Box& box : boxes) {
      std::optional<Best> winner;
      for (const CandidateInfo& info : menu()) {
        if (info.worth_up_to_bytes != 0 && bytes > info.worth_up_to_bytes) continue;
        Best best = best_of(box, info, bytes, Mode::graph);
        if (!winner || best.us < winner->us) winner = std::move(best);
      }
      text += fmt::format(" {} | {:.1f} | {:.1f} | {:.1f} |", winner->candidate.label(), winner->us,
                          model::limit_us(box.group(), static_cast<double>(bytes)), best_of(box, "nccl", bytes).us);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string model_report() {
  return fair_share_section() + floor_section() + rtx_pro_section() + x4_section() + winners_section();
}

}  // namespace artune::test
