// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// FakeMachine: a Machine whose truth is known. Figures follow a + b * bytes per candidate, plus seeded noise and
// drift; requests cost time on a clock that only they move; faults strike where a test puts them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "paths/menu.hpp"
#include "sweep/clock.hpp"

namespace artune {

class FakeClock final : public Clock {
 public:
  double now_s() const override { return now_s_; }
  void advance(double seconds) { now_s_ += seconds; }

 private:
  double now_s_ = 1000;
};

class FakeMachine final : public Machine {
 public:
  enum class Step { verify, time, overlap };
  struct Request {
    Step step;
    Candidate candidate;
    Shape shape;
    int samples = 0;
  };
  /// Strikes `name` at `bytes` (0 = everywhere) on the `nth` request of that step there (from 1).
  struct Fault {
    std::string name;
    std::size_t bytes;
    Step step;
    OutcomeKind kind;
    int nth = 1;
  };

  explicit FakeMachine(FakeClock& clock) : clock_(clock) {}

  // Truth and manners, set by tests.
  std::function<double(const Candidate&, const Shape&)> us = default_us;
  double noise = 0.005;                        ///< relative standard deviation
  double drift_per_s = 0;                      ///< relative slowdown per second of the clock
  double verify_s = 0.004, time_overhead_s = 0.003;
  double first_use_s = 0;                      ///< extra time of the first request for each candidate name
  std::map<std::string, std::string> unavailable;
  std::vector<Fault> faults;
  DocumentHeader header = default_header();
  std::function<void()> before_request;        ///< e.g. raises an interrupt

  std::vector<Request> log;

  int count(Step step) const {
    return static_cast<int>(std::count_if(log.begin(), log.end(), [&](const Request& request) { return request.step == step; }));
  }

  /// What this machine has of the menu: enough to have winners, losers and limits.
  static bool has(const CandidateInfo& info) {
    constexpr std::string_view names[] = {"nccl", "p2p/one-shot/ll", "p2p/one-shot/flag", "host/one-shot/ll", "host/one-shot/flag",
                                          "host/copy-engine", "ce/push"};
    return std::find(std::begin(names), std::end(names), info.name) != std::end(names);
  }

  static double default_us(const Candidate& candidate, const Shape& shape) {
    struct Line {
      double start_us, us_per_mib;
    };
    static const std::map<std::string, Line> lines = {
        {"nccl", {5.0, 6}},           {"p2p/one-shot/ll", {1.7, 9}},      {"p2p/one-shot/flag", {2.6, 3.6}}, {"host/one-shot/ll", {3.1, 150}},
        {"host/one-shot/flag", {4.8, 90}}, {"host/copy-engine", {40, 45}}, {"ce/push", {2.2, 3.0}}};
    const Line line = lines.at(candidate.name);
    // Each geometry beyond the best guess costs 30 %: 512 threads, 8 CTAs and the small chunk are the right ones.
    const bool other = candidate.geometry.threads == 1024 || candidate.geometry.max_ctas == 32;
    const double eager = shape.mode == Mode::eager ? 2.0 : 0.0;
    return (line.start_us + line.us_per_mib * static_cast<double>(shape.bytes) / 1048576.0 + eager) * (other ? 1.3 : 1.0);
  }

  static DocumentHeader default_header() {
    DocumentHeader header;
    header.kind = "ar-tune/probe";
    header.tool = "ar-tune test";
    header.created = "2026-12-01T00:00:00Z";
    for (int index = 0; index < 2; ++index) {
      GpuFacts gpu;
      gpu.index = index;
      gpu.name = "NVIDIA Test GPU";
      gpu.pci_address = index == 0 ? "0000:01:00.0" : "0000:02:00.0";
      gpu.uuid_sha256 = index == 0 ? "0123456789abcdef" : "fedcba9876543210";
      gpu.compute_capability = "9.0";
      header.machine.gpus.push_back(gpu);
    }
    header.machine.driver = "580.1";
    header.machine.nccl_version = "2.30.7";
    header.world = World{.devices = {0, 1}, .ranks_per_gpu = 1, .launch = Launch::one_thread};
    return header;
  }

  Result<DocumentHeader> describe() override { return header; }

  std::vector<PairVerdict> verdicts() override {
    return {{.from = 0, .to = 1, .path = Path::p2p, .verdict = "usable", .reason = "", .one_way_us = 0.7},
            {.from = 1, .to = 0, .path = Path::p2p, .verdict = "usable", .reason = "", .one_way_us = 0.7}};
  }

  std::vector<Offer> candidates(const Shape& shape) override {
    std::vector<Offer> offers;
    const AdmitFacts facts{.ranks = shape.ranks, .ranks_per_gpu = 1, .multiprocessors = 132, .bytes = shape.bytes, .peer_access = true, .nccl = true};
    for (const CandidateInfo& info : menu()) {
      const std::string name(info.name);
      if (!has(info)) continue;
      if (const auto refused = unavailable.find(name); refused != unavailable.end()) {
        offers.push_back({{name, {}}, refused->second});
      } else if (std::string why = refusal(info, facts); !why.empty()) {
        offers.push_back({{name, {}}, why});
      } else {
        for (const Geometry& geometry : info.geometries(facts)) offers.push_back({{name, geometry}, ""});
      }
    }
    return offers;
  }

  Verification verify(const Candidate& candidate, const Shape& shape) override {
    begin({Step::verify, candidate, shape}, verify_s);
    Verification verification;
    verification.outcome = outcome(Step::verify, candidate, shape);
    verification.numerics = find_candidate(candidate.name)->numerics;
    return verification;
  }

  Timing time(const Candidate& candidate, const Shape& shape, const TimeRequest& request) override {
    const double true_us = us(candidate, shape);
    const int batch = request.batch > 0 ? request.batch : std::clamp(static_cast<int>(1000 / true_us), 1, 50);
    begin({Step::time, candidate, shape, request.samples}, time_overhead_s + true_us * 1e-6 * batch * (request.samples + 1));
    Timing timing;
    timing.outcome = outcome(Step::time, candidate, shape);
    if (!timing.outcome.ok()) return timing;
    timing.batch = batch;
    for (int sample = 0; sample < request.samples; ++sample) {
      const double drifted = true_us * (1 + drift_per_s * (clock_.now_s() - 1000));
      const double slowest = drifted * (1 + noise * std::abs(gauss()));
      std::vector<double> ranks(static_cast<std::size_t>(shape.ranks), slowest * 0.9);
      ranks[random_() % ranks.size()] = slowest;
      timing.samples_us.push_back(ranks);
    }
    if (request.isolated) timing.isolated_us = {true_us + 5, true_us + 6, true_us + 7};
    timing.host_us = 1.5;
    return timing;
  }

  /// Waiting blocks cost compute a share, copies cost the reduction a tenth; `nccl` is starved where compute comes first.
  OverlapTiming time_overlap(const Candidate& candidate, const Shape& shape, const OverlapRequest& request) override {
    begin({Step::overlap, candidate, shape, request.samples}, 0.03);
    OverlapTiming timing;
    timing.outcome = outcome(Step::overlap, candidate, shape);
    if (!timing.outcome.ok()) return timing;
    OverlapSample sample{.compute_idle_us = request.compute_us, .compute_beside_us = request.compute_us * 1.01, .reduction_idle_us = us(candidate, shape)};
    sample.reduction_beside_us = sample.reduction_idle_us * 1.1;
    if (candidate.geometry.threads > 0) sample.compute_beside_us = request.compute_us * (1 + candidate.geometry.blocks / 264.0);
    if (candidate.name == "nccl" && request.order == LaunchOrder::compute_first) {
      sample.reduction_beside_us = request.compute_us + sample.reduction_idle_us;
    }
    sample.completed = static_cast<int>(sample.compute_beside_us / sample.reduction_beside_us);
    timing.batch = 2 * sample.completed + 1;
    timing.samples.assign(static_cast<std::size_t>(request.samples), sample);
    return timing;
  }

  double limit_us(const Shape&) override { return 0; }

 private:
  void begin(const Request& request, double seconds) {
    if (before_request) before_request();
    if (first_use_s > 0 && std::none_of(log.begin(), log.end(), [&](const Request& other) { return other.candidate.name == request.candidate.name; })) {
      seconds += first_use_s;
    }
    log.push_back(request);
    clock_.advance(seconds);
  }

  Outcome outcome(Step step, const Candidate& candidate, const Shape& shape) {
    for (const Fault& fault : faults) {
      if (fault.step != step || fault.name != candidate.name || (fault.bytes != 0 && fault.bytes != shape.bytes)) continue;
      const auto nth = std::count_if(log.begin(), log.end(), [&](const Request& request) {
        return request.step == step && request.candidate == candidate && request.shape == shape;
      });
      if (nth != fault.nth) continue;
      if (fault.kind == OutcomeKind::hang) clock_.advance(10);
      return {fault.kind, "put there by the test"};
    }
    return {};
  }

  /// Box-Muller: the same figures with every standard library.
  double gauss() {
    const double u = (static_cast<double>(random_() >> 11) + 1) / 9007199254740993.0;
    const double v = static_cast<double>(random_() >> 11) / 9007199254740992.0;
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }

  FakeClock& clock_;
  std::mt19937_64 random_{7};
};

}  // namespace artune
