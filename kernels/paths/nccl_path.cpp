// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "paths/nccl_path.hpp"

#include <algorithm>
#include <climits>
#include <memory>
#include <set>
#include <utility>

#include "base/failure.hpp"
#include "comm/cuda_check.hpp"

namespace artune {
namespace {

// Facts of NCCL's C ABI, unchanged since 2.18: opaque communicators, a 128-byte unique id, enumerators by number, and a
// configuration struct that says its own size and version, of which newer libraries read just that much.
using Communicator = void*;
struct UniqueId {
  char bytes[128];
};
struct Config218 {
  std::size_t size = sizeof(Config218);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = INT_MIN;  // INT_MIN: not set
  int cga_cluster_size = INT_MIN;
  int min_ctas = INT_MIN;
  int max_ctas = INT_MIN;
  const char* net_name = nullptr;
  int split_share = INT_MIN;
};
constexpr int kSuccess = 0;
constexpr int kInProgress = 7;
constexpr int kSum = 0;
constexpr int kSharedGpuCtas = 8;
constexpr int kFirstWithSharedGpus = 23000;

int nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return 6;
    case DType::f32: return 7;
    case DType::bf16: return 9;
  }
  return -1;
}

}  // namespace

struct NcclFunctions {
  int (*get_unique_id)(UniqueId*);
  int (*comm_init_rank_config)(Communicator*, int ranks, UniqueId, int rank, Config218*);
  int (*comm_destroy)(Communicator);
  int (*comm_abort)(Communicator);
  int (*comm_get_async_error)(Communicator, int*);
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, Communicator, cudaStream_t);
  int (*group_start)();
  int (*group_end)();
  const char* (*get_error_string)(int);
  const char* (*get_last_error)(Communicator);
};

namespace {

template <typename Function>
bool resolve(const NcclLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.symbol(name));
  return function != nullptr;
}

/// The functions of the one NCCL that a process may load; null when a symbol is missing.
const NcclFunctions* load_functions(const NcclLibrary& library, std::string& missing) {
  auto functions = std::make_unique<NcclFunctions>();
  const auto need = [&](const char* name, auto& function) {
    if (!resolve(library, name, function) && missing.empty()) missing = name;
  };
  need("ncclGetUniqueId", functions->get_unique_id);
  need("ncclCommInitRankConfig", functions->comm_init_rank_config);
  need("ncclCommDestroy", functions->comm_destroy);
  need("ncclCommAbort", functions->comm_abort);
  need("ncclCommGetAsyncError", functions->comm_get_async_error);
  need("ncclAllReduce", functions->all_reduce);
  need("ncclGroupStart", functions->group_start);
  need("ncclGroupEnd", functions->group_end);
  need("ncclGetErrorString", functions->get_error_string);
  need("ncclGetLastError", functions->get_last_error);
  // Kept for the life of the process, as the library itself is: communicators may outlive any owner here.
  return missing.empty() ? functions.release() : nullptr;
}

}  // namespace

void NcclPath::check(int status, const char* call) const {
  if (status == kSuccess || status == kInProgress) return;
  throw Failure(call, std::string(functions_->get_error_string(status)) + ": " + functions_->get_last_error(nullptr), status);
}

Result<NcclPath> NcclPath::create(const NcclLibrary& library, const std::vector<int>& devices, const std::vector<int>& limits) {
  const bool shared = std::set<int>(devices.begin(), devices.end()).size() < devices.size();
  if (shared && library.version() < kFirstWithSharedGpus) {
    return Error{Reason::unavailable, "NCCL " + library.version_text() + " (" + library.file() +
                                          ") doesn't let ranks share a GPU; 2.30 or newer does, name one with --nccl FILE"};
  }
  NcclPath path;
  std::string missing;
  path.functions_ = load_functions(library, missing);
  if (path.functions_ == nullptr) return Error{Reason::unavailable, library.file() + " lacks " + missing + "; NCCL 2.18 or newer has it"};
  path.version_ = library.version_text();
  path.file_ = library.file();
  const NcclFunctions& nccl = *path.functions_;
  try {
    for (const int limit : limits) {
      UniqueId id;
      path.check(nccl.get_unique_id(&id), "ncclGetUniqueId");
      Config218 config;
      config.blocking = 1;
      // NCCL's own choice counts on a GPU of its own: four ranks that share one never ended on an H200 (NCCL 2.30.7).
      if (limit > 0 || shared) config.max_ctas = limit > 0 ? limit : kSharedGpuCtas;
      CommunicatorSet set{limit, std::vector<Communicator>(devices.size(), nullptr)};
      path.check(nccl.group_start(), "ncclGroupStart");
      for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        const DeviceGuard guard(devices[rank]);
        path.check(nccl.comm_init_rank_config(&set.of_rank[rank], static_cast<int>(devices.size()), id, static_cast<int>(rank), &config),
                   "ncclCommInitRankConfig");
      }
      path.check(nccl.group_end(), "ncclGroupEnd");
      path.sets_.push_back(std::move(set));
    }
  } catch (const Failure& failure) {
    return Error{Reason::unavailable, "NCCL " + path.version_ + " can't make a communicator: " + failure.what()};
  }
  return path;
}

NcclPath::NcclPath(NcclPath&& other) noexcept
    : functions_(other.functions_), version_(std::move(other.version_)), file_(std::move(other.file_)), sets_(std::exchange(other.sets_, {})) {}

NcclPath::~NcclPath() {
  for (const CommunicatorSet& set : sets_) {
    for (const Communicator communicator : set.of_rank) functions_->comm_destroy(communicator);
  }
}

void NcclPath::group_start() const { check(functions_->group_start(), "ncclGroupStart"); }
void NcclPath::group_end() const { check(functions_->group_end(), "ncclGroupEnd"); }

void NcclPath::all_reduce(int rank, int max_ctas, const void* input, void* output, std::size_t count, DType dtype,
                          cudaStream_t stream) const {
  const auto exact = std::find_if(sets_.begin(), sets_.end(), [&](const CommunicatorSet& set) { return set.max_ctas == max_ctas; });
  const CommunicatorSet& set = exact == sets_.end() ? sets_.front() : *exact;
  check(functions_->all_reduce(input, output, count, nccl_type(dtype), kSum, set.of_rank[rank], stream), "ncclAllReduce");
}

std::string NcclPath::async_error() const {
  for (const CommunicatorSet& set : sets_) {
    for (const Communicator communicator : set.of_rank) {
      int state = kSuccess;
      functions_->comm_get_async_error(communicator, &state);
      if (state != kSuccess && state != kInProgress) return functions_->get_error_string(state);
    }
  }
  return {};
}

void NcclPath::abort() {
  for (const CommunicatorSet& set : std::exchange(sets_, {})) {
    for (const Communicator communicator : set.of_rank) functions_->comm_abort(communicator);
  }
}

}  // namespace artune
