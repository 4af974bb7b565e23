// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Reduces by the tuning profile and checks every element: random sizes, offsets and types, in place and out of place.
//
//   example_all_reduce [--ranks 2] [--ranks-per-gpu 1] [--calls 10000] [--timeout 30] [--profile profile.json] [--nccl libnccl.so.2]
//                      [--bf16-wire 1]      f32 may go over the links as bf16 where the profile says that it pays
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "artune/artune.hpp"

namespace {

struct Options {
  int ranks = 2, ranks_per_gpu = 1, calls = 10000, bf16_wire = 0;
  double timeout_s = 30;
  const char* profile = nullptr;
  const char* nccl = nullptr;
};

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
  std::exit(1);
}
#define CHECK(call) check((call), #call)

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--ranks") options.ranks = std::atoi(argv[i + 1]);
    else if (name == "--ranks-per-gpu") options.ranks_per_gpu = std::atoi(argv[i + 1]);
    else if (name == "--calls") options.calls = std::atoi(argv[i + 1]);
    else if (name == "--bf16-wire") options.bf16_wire = std::atoi(argv[i + 1]);
    else if (name == "--timeout") options.timeout_s = std::atof(argv[i + 1]);
    else if (name == "--profile") options.profile = argv[i + 1];
    else if (name == "--nccl") options.nccl = argv[i + 1];
    else {
      std::fprintf(stderr, "unknown option %s\n", name.c_str());
      std::exit(2);
    }
  }
  return options;
}

std::size_t bytes_of(artuneDataType_t type) { return type == artuneFloat32 ? 4 : 2; }

// Small integers: their sums are exact in every type and order, and over a bf16 wire, so "right" means equal.
float value(int call, int rank, std::size_t index) {
  std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15ULL ^ (static_cast<std::uint64_t>(call) << 8 | static_cast<unsigned>(rank));
  x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<float>(static_cast<int>(x >> 40 & 15) - 8);
}

void store(void* buffer, std::size_t index, artuneDataType_t type, float number) {
  if (type == artuneFloat32) static_cast<float*>(buffer)[index] = number;
  if (type == artuneFloat16) static_cast<__half*>(buffer)[index] = __float2half(number);
  if (type == artuneBfloat16) static_cast<__nv_bfloat16*>(buffer)[index] = __float2bfloat16(number);
}

float load(const void* buffer, std::size_t index, artuneDataType_t type) {
  if (type == artuneFloat32) return static_cast<const float*>(buffer)[index];
  if (type == artuneFloat16) return __half2float(static_cast<const __half*>(buffer)[index]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(buffer)[index]);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<int> devices;
  for (int rank = 0; rank < options.ranks; ++rank) devices.push_back(rank / options.ranks_per_gpu);

  artuneConfig_t config = ARTUNE_CONFIG_INITIALIZER;
  config.profile = options.profile;
  config.timeoutSeconds = options.timeout_s;
  config.ncclLibrary = options.nccl;
  config.bf16Wire = options.bf16_wire;
  config.log = [](int, const char* line, void*) { std::printf("artune: %s\n", line); };
  const artune::Communicators comms(devices, &config);

  constexpr std::size_t kMost = std::size_t{8} << 20;  // bytes
  std::vector<char*> inputs(devices.size()), outputs(devices.size());
  std::vector<cudaStream_t> streams(devices.size());
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    CHECK(cudaSetDevice(devices[rank]));
    CHECK(cudaMalloc(reinterpret_cast<void**>(&inputs[rank]), kMost + 256));
    CHECK(cudaMalloc(reinterpret_cast<void**>(&outputs[rank]), kMost + 256));
    CHECK(cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking));
  }

  std::mt19937 random(1);
  std::vector<char> host(kMost);
  std::map<std::string, int> served;
  long long wrong = 0;
  for (int call = 0; call < options.calls; ++call) {
    constexpr artuneDataType_t kTypes[] = {artuneFloat32, artuneFloat16, artuneBfloat16};
    const artuneDataType_t type = kTypes[random() % 3];
    // Log-uniform sizes: as many of tens of bytes as of megabytes; the large ones are rare so that the check stays quick.
    const double top = call % 50 == 0 ? 23.0 : 17.0;
    const auto bytes = static_cast<std::size_t>(std::exp2(std::uniform_real_distribution<double>(1, top)(random)));
    const std::size_t count = std::max<std::size_t>(bytes / bytes_of(type), 1);
    const std::size_t in_offset = random() % 16 * bytes_of(type), out_offset = random() % 16 * bytes_of(type);
    const bool in_place = random() % 2 == 0;

    std::vector<const void*> send;
    std::vector<void*> receive;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      char* out = outputs[rank] + out_offset;
      char* in = in_place ? out : inputs[rank] + in_offset;
      for (std::size_t i = 0; i < count; ++i) store(host.data(), i, type, value(call, static_cast<int>(rank), i));
      // On the stream: a plain cudaMemcpy from pageable memory may return before its last part has reached the device, and
      // a non-blocking stream does not wait for it.
      CHECK(cudaMemcpyAsync(in, host.data(), count * bytes_of(type), cudaMemcpyHostToDevice, streams[rank]));
      send.push_back(in);
      receive.push_back(out);
    }
    comms.all_reduce(send, receive, count, type, streams);
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
      CHECK(cudaStreamSynchronize(streams[rank]));
      artuneResult_t state = artuneSuccess;
      artune::check(artuneCommGetAsyncError(comms[static_cast<int>(rank)], &state), "artuneCommGetAsyncError");
      if (state != artuneSuccess) {
        std::printf("call %d, %zu elements: %s\n", call, count, artuneGetLastError());
        std::_Exit(1);
      }
      CHECK(cudaMemcpy(host.data(), receive[rank], count * bytes_of(type), cudaMemcpyDeviceToHost));
      for (std::size_t i = 0; i < count; ++i) {
        float expected = 0;
        for (int r = 0; r < options.ranks; ++r) expected += value(call, r, i);
        if (load(host.data(), i, type) == expected) continue;
        if (wrong++ < 5) {
          std::printf("call %d rank %zu element %zu of %zu: got %g, expected %g\n", call, rank, i, count,
                      static_cast<double>(load(host.data(), i, type)), static_cast<double>(expected));
        }
      }
    }
    char why[256];
    artune::check(artuneExplain(comms[0], count * bytes_of(type), type, 0, why, sizeof why), "artuneExplain");
    const std::string line(why);
    const bool lossy = line.find(" as bf16 on the wire") != std::string::npos;
    ++served[line.substr(0, line.find(lossy ? ", numerics" : ","))];
  }
  for (const auto& [what, times] : served) std::printf("%7d by %s\n", times, what.c_str());
  std::printf("%d all-reduces over %d ranks: %lld wrong elements\n", options.calls, options.ranks, wrong);
  return wrong == 0 ? 0 : 1;
}
