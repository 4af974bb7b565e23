// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What fusing is worth: all-reduce, residual add and RMSNorm in one launch, every fused candidate in its best geometry, beside
// the best of all our candidates followed by the norm kernel in its best geometry; a chain of 50 calls in one forked graph.
//
//   gpu_fused_floor [--hidden H] [--dtype f16|bf16] [--rows a,b,…] [ranks …]      default: 7168, bf16, 1 to 256 rows, 2 and 4
//
// Prints a line a number of rows (µs per call), the ratio, and where the fused ones stop winning.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "floor_timing.hpp"
#include "fused/fused_menu.hpp"
#include "fused/norm_arguments.hpp"
#include "gpu_empty_kernel.hpp"

namespace artune {
namespace {

struct Timed {
  double us = 0;
  std::string label;
  bool better_than(const Timed& other) const { return other.us == 0 || us < other.us; }
};

std::string in_text(const Geometry& geometry) { return std::to_string(geometry.blocks) + "x" + std::to_string(geometry.threads); }

/// Geometries beyond those that the tool would try: all members, all useful threads.
std::vector<Geometry> row_geometries(std::uint32_t rows, std::uint32_t hidden, const RowLimits& limits) {
  std::vector<Geometry> geometries;
  for (int each = 1; each <= limits.most_members(); each *= 2) {
    const int blocks = static_cast<int>(rows) * each;
    if (each > 1 && blocks > limits.blocks) break;
    for (const int threads : {128, 256, 512}) {
      const Geometry geometry{.blocks = std::min(blocks, limits.blocks), .threads = threads};
      if (threads > 128 && static_cast<std::uint32_t>(threads / 2 * each * kVectorElements) >= hidden) break;
      geometries.push_back(geometry);
    }
  }
  return geometries;
}

class Bench {
 public:
  Bench(Group& group, std::vector<int> devices, std::size_t bytes, std::uint32_t hidden, DType dtype)
      : group_(group), lanes_(devices, bytes), hidden_(hidden), dtype_(dtype) {
    for (int rank = 0; rank < lanes_.ranks(); ++rank) {
      residuals_.emplace_back(devices[static_cast<std::size_t>(rank)], bytes);
      weights_.emplace_back(devices[static_cast<std::size_t>(rank)], std::size_t{hidden} * 2);
      layer_.push_back({lanes_.inputs[rank].data(), lanes_.outputs[rank].data()});
    }
  }

  double empty() {
    return forked_us(lanes_, kMostCalls, [&] {
      for (const cudaStream_t stream : lanes_.streams) launch_empty_kernel(stream);
    });
  }

  double fused(const Call& call, std::uint32_t rows) {
    return forked_us(lanes_, kMostCalls, [&] {
      for (int rank = 0; rank < lanes_.ranks(); ++rank) {
        group_.enqueue_fused(rank, call, layer_[rank].input, norm(rank), shape(rows), dtype_, lanes_.streams[rank]);
      }
    });
  }

  /// `call` nullptr: the norm alone; `geometry` nullptr: the all-reduce alone.
  double unfused(const Call* call, const Geometry* geometry, std::uint32_t rows) {
    const std::size_t count = std::size_t{rows} * hidden_;
    const int kernels = call == nullptr ? 1 : group_.kernels_per_call(*call, count * 2) + 1;
    const int calls = std::clamp(kMostQueued / (lanes_.ranks() * kernels), 2, kMostCalls);
    return forked_us(lanes_, calls, [&] {
      if (call != nullptr) {
        group_.begin_layer(*call, layer_);
        for (int rank = 0; rank < lanes_.ranks(); ++rank) {
          group_.enqueue(rank, *call, layer_[rank].input, layer_[rank].output, count, dtype_, lanes_.streams[rank]);
        }
        group_.end_layer(*call);
      }
      for (int rank = 0; geometry != nullptr && rank < lanes_.ranks(); ++rank) {
        group_.enqueue_norm(rank, layer_[rank].output, norm(rank), shape(rows), dtype_, lanes_.streams[rank], *geometry);
      }
    });
  }

 private:
  NormBuffers norm(int rank) {
    return {residuals_[rank].data(), weights_[rank].data(), lanes_.outputs[rank].data(), residuals_[rank].data()};
  }
  NormCall shape(std::uint32_t rows) const { return {rows, hidden_, 1e-6F, false}; }

  Group& group_;
  Lanes lanes_;
  std::uint32_t hidden_;
  DType dtype_;
  std::vector<DeviceMemory> residuals_, weights_;
  std::vector<RankBuffers> layer_;
};

void stop_if_failed(const Group& group) {
  if (const auto failed = group.failure()) {
    std::printf("\nfailed: %s\n", failed->c_str());
    std::exit(4);
  }
}

void measure(int ranks, std::uint32_t hidden, DType dtype, const std::vector<std::uint32_t>& all_rows) {
  int visible = 0;
  ARTUNE_CHECK_CUDA(cudaGetDeviceCount(&visible));
  GroupOptions options;
  for (int rank = 0; rank < ranks; ++rank) options.devices.push_back(rank * visible / std::max(ranks, visible));
  options.timeout_s = 10;
  options.use_nccl = false;
  options.max_memory_bytes = std::size_t{1} << 30;
  const std::size_t most_bytes = std::size_t{all_rows.back()} * hidden * 2;
  options.largest_message.fill(most_bytes);
  const auto group = Group::create(options);
  Bench bench(*group, options.devices, most_bytes, hidden, dtype);
  const RowLimits limits = group->row_limits();
  std::printf("\nforked graph, %d ranks on %d GPU(s), hidden %u, %s, clusters of up to %d blocks: us per call\n", ranks,
              std::min(ranks, visible), hidden, std::string(to_string(dtype)).c_str(), limits.most_members());
  std::vector<std::uint32_t> wins;
  bool goal = true;
  for (const std::uint32_t rows : all_rows) {
    const std::size_t bytes = std::size_t{rows} * hidden * 2;
    const std::vector<Geometry> geometries = row_geometries(rows, hidden, {static_cast<int>(rows) * 8, limits.clusters});
    Timed norm;
    std::vector<std::pair<double, Geometry>> norms;
    for (const Geometry& geometry : geometries) {
      norms.emplace_back(bench.unfused(nullptr, &geometry, rows), geometry);
      const Timed now{norms.back().first, in_text(geometry)};
      if (now.better_than(norm)) norm = now;
    }
    std::sort(norms.begin(), norms.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::pair<double, Call>> sums;
    for (const CandidateInfo& info : menu()) {
      if (info.path == Path::nccl || !group->unavailable(info.id).empty() || !info.worth_trying(bytes)) continue;
      for (const Geometry& geometry : info.geometries(group->facts(bytes))) {
        const Call call{info.id, geometry};
        sums.emplace_back(bench.unfused(&call, nullptr, rows), call);
        stop_if_failed(*group);
      }
    }
    std::sort(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    // The pair is timed as a pair: the best few of each side, and the norm as the library launches it.
    Timed unfused;
    for (std::size_t s = 0; s < std::min<std::size_t>(sums.size(), 4); ++s) {
      std::vector<Geometry> tried{Geometry{}};
      for (std::size_t n = 0; n < std::min<std::size_t>(norms.size(), 3); ++n) tried.push_back(norms[n].second);
      for (const Geometry& geometry : tried) {
        const Call& call = sums[s].second;
        const Timed now{bench.unfused(&call, &geometry, rows), std::string(info_of(call.candidate).name) + " " +
                                                                   in_text(call.geometry) + " + norm " +
                                                                   (geometry.blocks == 0 ? "as shipped" : in_text(geometry))};
        if (now.better_than(unfused)) unfused = now;
      }
    }
    std::printf("\n%4u rows, %7zu bytes: empty %.2f, norm alone %.2f (%s), all-reduce alone %.2f (%s)\n  unfused %.2f (%s)\n",
                rows, bytes, bench.empty(), norm.us, norm.label.c_str(), sums.front().first,
                std::string(info_of(sums.front().second.candidate).name).c_str(), unfused.us, unfused.label.c_str());
    Timed best;
    for (const CandidateInfo& info : menu()) {
      if (!group->fused_unavailable(info.id, hidden).empty() || !info.worth_trying(bytes)) continue;
      Timed fused;
      std::string all;
      for (const Geometry& geometry : row_geometries(rows, hidden, limits)) {
        const Timed now{bench.fused({info.id, geometry}, rows), name_of({info.id, true}) + " " + in_text(geometry)};
        stop_if_failed(*group);
        all += " " + in_text(geometry) + "=" + std::to_string(now.us).substr(0, 5);
        if (now.better_than(fused)) fused = now;
      }
      std::printf("  %-32s %.2f  ratio %.2f  (%s )\n", fused.label.c_str(), fused.us, fused.us / unfused.us, all.c_str());
      if (fused.better_than(best)) best = fused;
    }
    const double ratio = best.us / unfused.us;
    std::printf("  best fused / best unfused = %.2f / %.2f = %.2f\n", best.us, unfused.us, ratio);
    std::fflush(stdout);
    if (ratio < 1) wins.push_back(rows);
    if (rows <= 8) goal = goal && ratio <= 0.75;
  }
  std::string text;
  for (const std::uint32_t rows : all_rows) {
    text += (text.empty() ? "" : ", ") + std::to_string(rows) +
            (std::find(wins.begin(), wins.end(), rows) != wins.end() ? " fused" : " unfused");
  }
  std::printf("\n%d ranks: fused <= 0.75 of unfused at every number of rows up to 8: %s\n%d ranks: what wins by rows: %s\n",
              ranks, goal ? "yes" : "no", ranks, text.c_str());
}

int usage(const char* word) {
  std::fprintf(stderr,
               "gpu_fused_floor: '%s' isn't understood; [--hidden H] [--dtype f16|bf16] [--rows a,b,...] [ranks 2 to 8 ...]\n",
               word);
  return 2;
}

}  // namespace
}  // namespace artune

int main(int argc, char** argv) {
  using namespace artune;
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // before the first CUDA call: ranks share a GPU here
  int visible = 0;
  if (cudaGetDeviceCount(&visible) != cudaSuccess || visible == 0) {
    std::printf("skipped: no CUDA device\n");
    return 77;
  }
  DType dtype = DType::bf16;
  std::uint32_t hidden = 7168;
  std::vector<std::uint32_t> rows{1, 2, 4, 8, 16, 32, 64, 128, 256};
  std::vector<int> ranks;
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--dtype") == 0 && has_value) {
      const auto word = parse_word<DType>(argv[++i]);
      if (!word || *word == DType::f32) return usage(argv[i]);
      dtype = *word;
    } else if (std::strcmp(argv[i], "--hidden") == 0 && has_value) {
      hidden = static_cast<std::uint32_t>(std::atoi(argv[++i]));
      if (hidden < kLeastHidden || hidden > kMostHidden || hidden % kVectorElements != 0) return usage(argv[i]);
    } else if (std::strcmp(argv[i], "--rows") == 0 && has_value) {
      rows.clear();
      for (const char* at = argv[++i]; *at != '\0';) {
        char* end = nullptr;
        rows.push_back(static_cast<std::uint32_t>(std::strtoul(at, &end, 10)));
        if (end == at || rows.back() == 0) return usage(argv[i]);
        at = *end == ',' ? end + 1 : end;
      }
      std::sort(rows.begin(), rows.end());
    } else {
      ranks.push_back(std::atoi(argv[i]));
      if (ranks.back() < 2 || ranks.back() > 8) return usage(argv[i]);
    }
  }
  if (rows.empty()) return usage("--rows");
  if (ranks.empty()) ranks = {2, 4};
  try {
    for (const int n : ranks) measure(n, hidden, dtype, rows);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "gpu_fused_floor: %s\n", failure.what());
    return 3;
  }
  return 0;
}
