// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Small sweeps for tests of the decision:
//
//   Sweep sweep = SweepBuilder().row("nccl", 1024, 13.5).row("p2p/one-shot/ll", 1024, 6.1).build();
#pragma once

#include <string>
#include <utility>

#include "paths/menu.hpp"
#include "sweep/sweep.hpp"

namespace artune::test {

/// The geometry that the builder gives a candidate where the test has none in mind.
inline Geometry usual_geometry(const std::string& name) {
  if (name == "nccl") return {.max_ctas = 8};
  if (name == "host/copy-engine") return {.chunk_bytes = 524288};
  if (name == "ce/push" || name == "ce/ring") return {};
  return {.blocks = 8, .threads = 512};
}

class SweepBuilder {
 public:
  SweepBuilder() {
    GpuFacts gpu;
    gpu.name = "NVIDIA Test";
    gpu.multiprocessors = 100;
    sweep_.header.kind = "ar-tune/sweep";
    sweep_.header.tool = "ar-tune test";
    sweep_.header.created = "2026-12-01T04:39:15Z";
    sweep_.header.machine.gpus = {gpu, gpu};
    sweep_.header.machine.gpus[1].index = 1;
    sweep_.header.world = World{.devices = {0, 1}};
    sweep_.fingerprint = "2x-test";
    shape_.ranks = 2;
  }
  /// For the rows that follow.
  SweepBuilder& shape(DType dtype, Mode mode) {
    shape_.dtype = shape_.wire = dtype;
    shape_.mode = mode;
    return *this;
  }
  /// f32 that went over the links as bf16; shape() goes back.
  SweepBuilder& bf16_wire(Mode mode) {
    shape(DType::f32, mode);
    shape_.wire = DType::bf16;
    return *this;
  }
  SweepBuilder& ranks(int ranks) {
    shape_.ranks = ranks;
    return *this;
  }
  SweepBuilder& regime(Regime regime) {
    shape_.regime = regime;
    return *this;
  }
  /// Half the width of the interval of the rows that follow, as a fraction of the median.
  SweepBuilder& spread(double spread) {
    spread_ = spread;
    return *this;
  }
  SweepBuilder& row(const std::string& name, std::size_t bytes, double median_us) {
    return row(name, usual_geometry(name), bytes, median_us);
  }
  SweepBuilder& row(const std::string& name, Geometry geometry, std::size_t bytes, double median_us) {
    SweepRow row;
    row.candidate = {name, geometry};
    row.shape = shape_;
    row.shape.bytes = bytes;
    row.batch = 50;
    row.n = 15;
    row.verified = true;
    row.median_us = median_us;
    row.ci_low_us = row.p5_us = median_us * (1 - spread_);
    row.ci_high_us = row.p95_us = median_us * (1 + spread_);
    row.numerics = numerics_of(*find_candidate(name), shape_.dtype, shape_.wire);
    sweep_.rows.push_back(row);
    return *this;
  }
  /// A row beside a load of 1000 µs, the same in both launch orders.
  SweepBuilder& beside(const std::string& name, std::size_t bytes, double compute_beside_us, double alone_us, double beside_us) {
    row(name, bytes, beside_us);
    SweepRow& row = sweep_.rows.back();
    row.shape.load = Load::overlap;
    for (const LaunchOrder order : {LaunchOrder::compute_first, LaunchOrder::reduction_first}) {
      row.overlap.push_back({.order = order, .compute_idle_us = 1000, .compute_beside_us = compute_beside_us, .reduction_idle_us = alone_us,
                             .reduction_beside_us = beside_us, .completed = static_cast<int>(compute_beside_us / beside_us)});
    }
    return *this;
  }
  SweepBuilder& left_out(const std::string& name, std::size_t bytes, const std::string& reason, const std::string& detail) {
    Shape shape = shape_;
    shape.bytes = bytes;
    sweep_.left_out.push_back({{name, usual_geometry(name)}, shape, reason, detail});
    return *this;
  }
  SweepBuilder& noise(double percent) {
    sweep_.noise_floor_percent = percent;
    return *this;
  }
  Sweep& raw() { return sweep_; }
  Sweep build() const { return sweep_; }

 private:
  Sweep sweep_;
  Shape shape_;
  double spread_ = 0.005;
};

}  // namespace artune::test
