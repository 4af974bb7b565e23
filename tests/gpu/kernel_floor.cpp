// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// How far every kernel is from the floor: time per call of each candidate (its best geometry) beside a chain of empty
// kernels that is timed the same way, in the two forms that graphs of several ranks come in:
//   forked     one graph: the stream of rank 0 forks to all ranks' streams, 50 calls each, join
//   per rank   a graph a rank, launched one after the other, as serving stacks do; the slowest rank counts
//
//   gpu_floor [ranks …]            prints a table a form and a number of ranks, times in µs and as multiples of the chain
//   gpu_floor --dtype f32 2 4
//   gpu_floor --candidate p2p/one-shot/ll --sizes 256,8192 --groups 8 2
//                                  that one alone, each geometry in 8 groups made anew: median (lowest to highest)
//
// gpu_floor_unguarded is the same over kernels without bounds, ticket and overlap check: what safety costs. Its blocks
// count their calls themselves, so a group serves one geometry only, and it knows the form of --candidate only.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "floor_timing.hpp"
#include "gpu_empty_kernel.hpp"

namespace artune {
namespace {

struct Best {
  double us = 0;
  Geometry geometry;
};

GroupOptions options_for(int ranks, std::size_t largest) {
  int visible = 0;
  ARTUNE_CHECK_CUDA(cudaGetDeviceCount(&visible));
  GroupOptions options;
  for (int rank = 0; rank < ranks; ++rank) options.devices.push_back(rank * visible / std::max(ranks, visible));
  options.timeout_s = 10;
  options.use_nccl = false;
  options.max_memory_bytes = std::size_t{1} << 30;
  options.largest_message.fill(largest);
  return options;
}

std::vector<RankBuffers> buffers_of(const Lanes& lanes) {
  std::vector<RankBuffers> buffers;
  for (int rank = 0; rank < lanes.ranks(); ++rank) buffers.push_back({lanes.inputs[rank].data(), lanes.outputs[rank].data()});
  return buffers;
}

/// µs per call of all ranks.
double time_call(Group& group, Lanes& lanes, bool forked, const Call& call, std::size_t bytes, DType dtype) {
  const std::vector<RankBuffers> buffers = buffers_of(lanes);
  const int calls = std::clamp(kMostQueued / (group.ranks() * group.kernels_per_call(call, bytes)), 2, kMostCalls);
  const auto issue = [&] {
    group.begin_layer(call, buffers);
    for (int rank = 0; rank < group.ranks(); ++rank) {
      group.enqueue(rank, call, buffers[rank].input, buffers[rank].output, bytes / element_bytes(dtype), dtype, lanes.streams[rank]);
    }
    group.end_layer(call);
  };
  const double us = forked ? forked_us(lanes, calls, issue) : per_rank_us(lanes, calls, issue);
  if (const auto failed = group.failure()) {
    std::printf("\nfailed: %s\n", failed->c_str());
    std::exit(4);
  }
  return us;
}

double time_empty(Lanes& lanes, bool forked) {
  const auto issue = [&] {
    for (const cudaStream_t stream : lanes.streams) launch_empty_kernel(stream);
  };
  return forked ? forked_us(lanes, kMostCalls, issue) : per_rank_us(lanes, kMostCalls, issue);
}

void measure_all(int ranks, DType dtype, const std::vector<std::size_t>& sizes) {
  const GroupOptions options = options_for(ranks, sizes.back());
  const auto group = Group::create(options);
  Lanes lanes(options.devices, sizes.back() * 2);
  for (const bool forked : {true, false}) {
    std::printf("\n%s, %d ranks on %zu GPU(s), %s: us per call (times the chain of empty kernels)\n%-24s", forked ? "forked graph" : "graph per rank",
                ranks, std::set<int>(options.devices.begin(), options.devices.end()).size(), std::string(to_string(dtype)).c_str(), "");
    for (const std::size_t bytes : sizes) std::printf(" %14zu", bytes);
    std::map<std::size_t, double> floor;
    std::printf("\n%-24s", "empty kernels");
    for (const std::size_t bytes : sizes) std::printf(" %14.2f", floor[bytes] = time_empty(lanes, forked));
    std::printf("\n");
    std::map<std::size_t, double> best_of_all;
    for (const CandidateInfo& info : menu()) {
      if (info.path == Path::nccl || !group->unavailable(info.id).empty()) continue;
      std::printf("%-24s", std::string(info.name).c_str());
      for (const std::size_t bytes : sizes) {
        if (!info.worth_trying(bytes)) {
          std::printf(" %14s", "-");
          continue;
        }
        Best best;
        for (const Geometry& geometry : info.geometries(group->facts(bytes))) {
          const double us = time_call(*group, lanes, forked, {info.id, geometry}, bytes, dtype);
          if (best.us == 0 || us < best.us) best = {us, geometry};
        }
        char cell[64];
        std::snprintf(cell, sizeof cell, "%.2f(%.1f)%dx%d", best.us, best.us / floor[bytes], best.geometry.blocks, best.geometry.threads);
        std::printf(" %14s", cell);
        if (best_of_all[bytes] == 0 || best.us < best_of_all[bytes]) best_of_all[bytes] = best.us;
      }
      std::printf("\n");
      std::fflush(stdout);
    }
    std::printf("%-24s", "best, times the chain");
    for (const std::size_t bytes : sizes) std::printf(" %14.2f", best_of_all[bytes] / floor[bytes]);
    std::printf("\n");
  }
}

/// One candidate, forked graphs: each geometry in groups made anew, whose slabs lie elsewhere.
void measure_one(int ranks, DType dtype, const CandidateInfo& info, const std::vector<std::size_t>& sizes, int groups) {
  Lanes lanes(options_for(ranks, 0).devices, *std::max_element(sizes.begin(), sizes.end()) * 2);
  for (const std::size_t bytes : sizes) {
    GroupOptions options = options_for(ranks, 0);
    options.largest_message[static_cast<std::size_t>(info.id)] = bytes;
    const double floor = time_empty(lanes, true);
    std::vector<Geometry> geometries;
    {
      const auto group = Group::create(options);
      if (const std::string why = group->unavailable(info.id); !why.empty()) throw Failure(std::string(info.name), why, 0);
      geometries = info.geometries(group->facts(bytes));
    }
    for (const Geometry& geometry : geometries) {
      std::vector<std::unique_ptr<Group>> kept;  // so that none gets the memory of the one before
      std::vector<double> times;
      for (int g = 0; g < groups; ++g) {
        times.push_back(time_call(*kept.emplace_back(Group::create(options)), lanes, true, {info.id, geometry}, bytes, dtype));
      }
      const auto [low, high] = std::minmax_element(times.begin(), times.end());
      std::printf("%-24s %d ranks %9zu bytes %3dx%-3d %7.3f us (%.3f to %.3f in %d groups), chain of empty kernels %.3f\n",
                  std::string(info.name).c_str(), ranks, bytes, geometry.blocks, geometry.threads, median(times), *low, *high, groups, floor);
    }
  }
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
  std::vector<int> ranks;
  const CandidateInfo* one = nullptr;
  std::vector<std::size_t> sizes = {256, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20};
  int groups = 1;
  const auto refuse = [](const char* what, const char* word) {
    std::fprintf(stderr, "gpu_floor: '%s' is no %s\n", word, what);
    return 2;
  };
  for (int i = 1; i < argc; ++i) {
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (std::strcmp(argv[i], "--dtype") == 0) {
      const auto word = parse_word<DType>(value);
      if (!word) return refuse("dtype", value);
      dtype = *word;
      ++i;
    } else if (std::strcmp(argv[i], "--candidate") == 0) {
      one = find_candidate(value);
      if (one == nullptr || one->path == Path::nccl) return refuse("candidate of libartune", value);
      ++i;
    } else if (std::strcmp(argv[i], "--sizes") == 0) {
      sizes.clear();
      char* rest = nullptr;
      for (const char* at = value; *at != 0; at = *rest == ',' ? rest + 1 : rest) {
        sizes.push_back(std::strtoull(at, &rest, 10));
        if (rest == at || sizes.back() == 0) return refuse("list of sizes in bytes", value);
      }
      if (sizes.empty()) return refuse("list of sizes in bytes", value);
      ++i;
    } else if (std::strcmp(argv[i], "--groups") == 0) {
      groups = std::atoi(value);
      if (groups < 1) return refuse("number of groups", value);
      ++i;
    } else {
      ranks.push_back(std::atoi(argv[i]));
      if (ranks.back() < 2 || ranks.back() > 8) return refuse("number of ranks from 2 to 8", argv[i]);
    }
  }
  if (ranks.empty()) ranks = {2, 4};
#if defined(ARTUNE_UNGUARDED)
  if (one == nullptr) return refuse("candidate (this build needs --candidate)", "");
#endif
  try {
    for (const int n : ranks) {
      if (one == nullptr) {
        measure_all(n, dtype, sizes);
      } else {
        measure_one(n, dtype, *one, sizes, groups);
      }
    }
  } catch (const Failure& failure) {
    std::fprintf(stderr, "gpu_floor: %s\n", failure.what());
    return 3;
  }
  return 0;
}
