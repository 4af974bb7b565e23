// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Random fused calls, pairs of all-reduce and norm, and plain all-reduces between them, in graphs and eager, back to back; every
// normed output and updated residual is checked on the device, bit by bit. Ranks share GPUs where there are fewer.
//
//   gpu_fused_soak [--calls 100000] [--seed 1] [ranks …]       default: 2, 3, 4 and 8; exit 4 on a wrong bit or a hang
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "fused/fused_menu.hpp"
#include "fused/norm_arguments.hpp"
#include "fused_soak_device.hpp"

namespace artune {
namespace {

constexpr std::size_t kMostBytes = std::size_t{512} << 10;  // of a tensor: twice a slab, so the longest calls are two launches
constexpr int kMostQueued = 800;                            // see Group::kernels_per_call
constexpr int kReplays = 20;

enum class Kind : std::uint8_t { fused, pair, plain };

struct Drawn {
  Kind kind;
  Call call;
  std::uint32_t rows, hidden, number;
  DType dtype;
  bool in_place, one_plus;
};

class Soak {
 public:
  Soak(int ranks, std::uint64_t seed) : random_(seed * 1000 + static_cast<std::uint64_t>(ranks)) {
    int visible = 0;
    ARTUNE_CHECK_CUDA(cudaGetDeviceCount(&visible));
    GroupOptions options;
    for (int rank = 0; rank < ranks; ++rank) options.devices.push_back(rank * visible / std::max(ranks, visible));
    options.timeout_s = 10;
    options.use_nccl = false;
    options.max_memory_bytes = std::size_t{1} << 30;
    for (const CandidateInfo& info : menu()) {
      if (!fused_served(info)) continue;
      options.largest_message[static_cast<std::size_t>(info.id)] = kMostBytes / 2;
    }
    group_ = Group::create(options);
    for (const CandidateInfo& info : menu()) {
      if (group_->fused_unavailable(info.id, kMostHidden).empty()) candidates_.push_back(info.id);
    }
    if (candidates_.empty()) throw Failure("soak", "no fused candidate can be had", 0);
    for (const int device : options.devices) {
      const DeviceGuard guard(device);
      Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>());
      for (DeviceMemory& tensor : lane.tensors) tensor = DeviceMemory(device, kMostBytes);
      lane.state = DeviceMemory(device, 256);
      ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
    }
    // What is loaded while others wait could wait for them.
    const Drawn small{Kind::fused, {candidates_[0], {.blocks = 1, .threads = 32}}, 1, kLeastHidden, 0, DType::bf16, false, false};
    for (int rank = 0; rank < ranks; ++rank) {
      launch_soak_fill(checked(small, rank), replay(rank), lanes_[rank]->stream);
      launch_soak_check(checked(small, rank), replay(rank), record(rank), lanes_[rank]->stream);
      launch_soak_next(replay(rank), lanes_[rank]->stream);
      ARTUNE_CHECK_CUDA(cudaStreamSynchronize(lanes_[rank]->stream));
      ARTUNE_CHECK_CUDA(cudaMemset(lanes_[rank]->state.data(), 0, 256));
    }
  }

  /// False: something was wrong, and has been printed.
  bool run(std::uint64_t calls) {
    const int at_once = std::max(kMostQueued / (5 * group_->ranks()), 4);
    std::uint64_t made = 0;
    while (made < calls) {
      std::vector<Drawn> captured(static_cast<std::size_t>(at_once));
      for (Drawn& drawn : captured) drawn = draw();
      const std::vector<cudaGraphExec_t> graphs = capture(captured);
      bool right = true;
      for (int replay = 0; right && replay < kReplays && made < calls; ++replay) {
        for (int rank = 0; rank < group_->ranks(); ++rank) {
          const DeviceGuard guard(group_->device(rank));
          ARTUNE_CHECK_CUDA(cudaGraphLaunch(graphs[rank], lanes_[rank]->stream));
        }
        std::vector<Drawn> eager(static_cast<std::size_t>(at_once) / 4);
        for (Drawn& drawn : eager) issue(drawn = draw());
        for (const auto* calls_of : {&captured, &eager}) {
          for (const Drawn& drawn : *calls_of) {
            ++counts_[{drawn.call.candidate, drawn.kind}];
            checks_ += drawn.kind == Kind::plain ? 0 : 1;
          }
        }
        right = look(captured, eager);
        made += captured.size() + eager.size();
      }
      for (const cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
      if (!right) return false;
    }
    std::printf("%d ranks, %llu calls, all right:", group_->ranks(), static_cast<unsigned long long>(made));
    for (const auto& [what, count] : counts_) {
      const char* kind = what.second == Kind::fused ? "fused/" : what.second == Kind::pair ? "pair " : "plain ";
      std::printf(" %s%s %llu", kind, std::string(info_of(what.first).name).c_str(), static_cast<unsigned long long>(count));
    }
    std::printf("\n");
    std::fflush(stdout);
    return true;
  }

 private:
  struct Lane {
    std::array<DeviceMemory, 5> tensors;  // input, residual, weight, output, updated residual
    DeviceMemory state;                   // replay, then from byte 128 on the record
    cudaStream_t stream = nullptr;
    ~Lane() {
      if (stream != nullptr) cudaStreamDestroy(stream);
    }
  };

  std::uint32_t* replay(int rank) { return reinterpret_cast<std::uint32_t*>(lanes_[rank]->state.data()); }
  SoakRecord* record(int rank) { return reinterpret_cast<SoakRecord*>(lanes_[rank]->state.data() + 128); }
  std::uint32_t below(std::uint32_t sides) { return static_cast<std::uint32_t>(random_() % sides); }

  Drawn draw() {
    constexpr std::array<std::uint32_t, 6> kUsual = {64, 72, 4096, 5120, 7168, 16384};
    Drawn drawn{};
    drawn.kind = below(10) < 7 ? Kind::fused : below(3) < 2 ? Kind::pair : Kind::plain;
    drawn.hidden =
        below(2) == 0 ? kUsual[below(kUsual.size())] : kLeastHidden + kVectorElements * below(kMostHidden / kVectorElements - 7);
    const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(kMostBytes / 2 / drawn.hidden, 40));
    drawn.rows = below(4) == 0 ? 1 : 1 + below(most);
    drawn.number = ++number_;
    drawn.dtype = below(2) == 0 ? DType::f16 : DType::bf16;
    drawn.in_place = below(2) == 0;
    drawn.one_plus = below(2) == 0;
    drawn.call.candidate = candidates_[below(static_cast<std::uint32_t>(candidates_.size()))];
    const std::vector<Geometry> offered = fused_geometries(group_->row_limits(), drawn.rows, drawn.hidden);
    drawn.call.geometry = below(2) == 0 ? offered[below(static_cast<std::uint32_t>(offered.size()))]
                                        : Geometry{.blocks = static_cast<int>(1 + below(8 * drawn.rows)),
                                                   .threads = static_cast<int>(32 * (1 + below(16)))};
    return drawn;
  }

  SoakCall checked(const Drawn& drawn, int rank) const {
    const auto& tensors = lanes_[static_cast<std::size_t>(rank)]->tensors;
    const auto at = [&](std::size_t which) { return const_cast<char*>(tensors[which].data()); };
    return {{at(0), at(1), at(2), at(drawn.in_place ? 0 : 3), at(drawn.in_place ? 1 : 4)},
            drawn.rows,
            drawn.hidden,
            drawn.number,
            rank,
            group_->ranks(),
            1e-6F,
            drawn.one_plus,
            drawn.dtype};
  }

  void issue(const Drawn& drawn) {
    const NormCall shape{drawn.rows, drawn.hidden, 1e-6F, drawn.one_plus};
    const std::size_t count = std::size_t{drawn.rows} * drawn.hidden;
    for (int rank = 0; rank < group_->ranks(); ++rank) {
      const DeviceGuard guard(group_->device(rank));
      const SoakCall call = checked(drawn, rank);
      const cudaStream_t stream = lanes_[rank]->stream;
      void* const output = const_cast<void*>(call.tensors.output);
      const NormBuffers norm{call.tensors.residual, call.tensors.weight, output, const_cast<void*>(call.tensors.residual_out)};
      launch_soak_fill(call, replay(rank), stream);
      if (drawn.kind == Kind::fused) {
        group_->enqueue_fused(rank, drawn.call, call.tensors.input, norm, shape, drawn.dtype, stream);
      } else {
        group_->enqueue(rank, drawn.call, call.tensors.input, output, count, drawn.dtype, stream);
        if (drawn.kind == Kind::plain) continue;  // artune-soak looks at those
        group_->enqueue_norm(rank, output, norm, shape, drawn.dtype, stream);
      }
      launch_soak_check(call, replay(rank), record(rank), stream);
    }
  }

  std::vector<cudaGraphExec_t> capture(const std::vector<Drawn>& calls) {
    for (const auto& lane : lanes_) ARTUNE_CHECK_CUDA(cudaStreamBeginCapture(lane->stream, cudaStreamCaptureModeRelaxed));
    for (const Drawn& drawn : calls) issue(drawn);
    std::vector<cudaGraphExec_t> graphs;
    for (int rank = 0; rank < group_->ranks(); ++rank) {
      const DeviceGuard guard(group_->device(rank));
      launch_soak_next(replay(rank), lanes_[rank]->stream);
      cudaGraph_t graph = nullptr;
      ARTUNE_CHECK_CUDA(cudaStreamEndCapture(lanes_[rank]->stream, &graph));
      ARTUNE_CHECK_CUDA(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
      ARTUNE_CHECK_CUDA(cudaGraphDestroy(graph));
      ARTUNE_CHECK_CUDA(cudaGraphUpload(graphs.back(), lanes_[rank]->stream));
    }
    for (const auto& lane : lanes_) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(lane->stream));
    return graphs;
  }

  bool look(const std::vector<Drawn>& captured, const std::vector<Drawn>& eager) {
    for (const auto& lane : lanes_) ARTUNE_CHECK_CUDA(cudaStreamSynchronize(lane->stream));
    if (const auto failed = group_->failure()) {
      std::printf("%d ranks: %s\n", group_->ranks(), failed->c_str());
      return false;
    }
    bool right = true;
    for (int rank = 0; rank < group_->ranks(); ++rank) {
      SoakRecord found{};
      ARTUNE_CHECK_CUDA(cudaMemcpy(&found, record(rank), sizeof found, cudaMemcpyDeviceToHost));
      if (found.wrong == 0 && found.checked == checks_) continue;
      right = false;
      std::printf("%d ranks, rank %d: %u of %u calls looked at\n", group_->ranks(), rank, found.checked, checks_);
      if (found.wrong == 0) continue;
      std::printf("%d ranks, rank %d: %u wrong elements, first: call %u, replay %u, %s, element %u: got %04x, expected %04x\n",
                  group_->ranks(), rank, found.wrong, found.call, found.replay, found.what == 1 ? "output" : "updated residual",
                  found.index, found.got, found.expected);
      for (const auto* calls : {&captured, &eager}) {
        for (const Drawn& drawn : *calls) {
          if (drawn.number != found.call) continue;
          std::printf("  %s%s %dx%d, %s, %u rows of %u, in place %d, one plus %d, %s\n",
                      drawn.kind == Kind::fused ? "fused/" : "pair ", std::string(info_of(drawn.call.candidate).name).c_str(),
                      drawn.call.geometry.blocks, drawn.call.geometry.threads, std::string(to_string(drawn.dtype)).c_str(),
                      drawn.rows, drawn.hidden, drawn.in_place ? 1 : 0, drawn.one_plus ? 1 : 0,
                      calls == &captured ? "in a graph" : "eager");
        }
      }
    }
    return right;
  }

  std::mt19937_64 random_;
  std::unique_ptr<Group> group_;
  std::vector<CandidateId> candidates_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<std::pair<CandidateId, Kind>, std::uint64_t> counts_;
  std::uint32_t number_ = 0, checks_ = 0;  ///< checks: modulo 2^32, as the device counts them
};

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
  std::uint64_t calls = 100'000, seed = 1;
  std::vector<int> ranks;
  for (int i = 1; i < argc; ++i) {
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (std::strcmp(argv[i], "--calls") == 0 && std::atof(value) >= 1) {
      calls = static_cast<std::uint64_t>(std::atof(value));
      ++i;
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(value, nullptr, 10);
      ++i;
    } else if (std::atoi(argv[i]) >= 2 && std::atoi(argv[i]) <= 8) {
      ranks.push_back(std::atoi(argv[i]));
    } else {
      std::fprintf(stderr, "gpu_fused_soak: '%s' isn't understood; [--calls N] [--seed N] [ranks 2 to 8 ...]\n", argv[i]);
      return 2;
    }
  }
  if (ranks.empty()) ranks = {2, 3, 4, 8};
  try {
    for (const int n : ranks) {
      if (!Soak(n, seed).run(calls)) return 4;
    }
  } catch (const Failure& failure) {
    std::fprintf(stderr, "gpu_fused_soak: %s\n", failure.what());
    return 3;
  }
  return 0;
}
