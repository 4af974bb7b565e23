// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "artune/artune.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/version.hpp"
#include "comm/group.hpp"
#include "comm/here.hpp"
#include "comm/self_test.hpp"
#include "dispatch/dispatch_table.hpp"
#include "fused/norm_arguments.hpp"
#include "profile/lookup.hpp"
#include "profile/profile.hpp"
#include "seams/environment.hpp"
#include "seams/nccl_library.hpp"

namespace {

using namespace artune;

enum class State { ready, error, aborted };

/// What the ranks of one process share. Immutable after init, but for the state.
struct SharedGroup {
  SharedGroup(std::unique_ptr<Group> group_, DispatchTable table_) : group(std::move(group_)), table(std::move(table_)) {}

  std::unique_ptr<Group> group;
  DispatchTable table;
  std::string origin;            ///< "profile /etc/…" or "no profile: …"
  bool profile_loaded = false;
  std::atomic<State> state{State::ready};

  /// Error state once any rank failed. Cheap: pinned memory.
  State current() {
    if (state.load(std::memory_order_relaxed) == State::ready && group->failure()) state.store(State::error);
    return state.load();
  }
};

thread_local std::string last_error;

artuneResult_t fail(artuneResult_t code, std::string sentence) {
  last_error = std::move(sentence);
  return code;
}

/// The edge of the ABI: nothing is thrown across it.
template <typename Body>
artuneResult_t guarded(const Body& body) {
  try {
    return body();
  } catch (const Failure& failure) {
    const bool nccl = failure.call().starts_with("nccl");
    return fail(nccl ? artuneCommError : artuneCudaError, failure.what());
  } catch (const std::bad_alloc&) {
    return fail(artuneSystemError, "out of host memory");
  } catch (const std::exception& error) {
    return fail(artuneInternalError, error.what());
  }
}

std::optional<DType> dtype_of(artuneDataType_t type) {
  switch (type) {
    case artuneFloat16: return DType::f16;
    case artuneFloat32: return DType::f32;
    case artuneBfloat16: return DType::bf16;
  }
  return std::nullopt;
}

}  // namespace

struct artuneComm {
  std::shared_ptr<SharedGroup> shared;
  int rank = 0;
  std::atomic<unsigned long long> calls{0}, tuned{0}, bytes{0};
};

namespace {

struct QueuedNorm {
  NormBuffers buffers;
  NormCall shape;
};

struct QueuedCall {
  artuneComm* comm;
  const void* input;
  void* output;
  std::size_t count;
  DType dtype;
  cudaStream_t stream;
  std::optional<QueuedNorm> norm{};
};

/// A thread's open group. The vectors keep their capacity: after the first step of a model nothing is allocated.
struct OpenGroup {
  int depth = 0;
  std::vector<QueuedCall> calls;
  std::vector<std::size_t> layer;    ///< of each call: how many calls of its communicator stand before it
  std::vector<char> issued;
};
thread_local OpenGroup open_group;

Choice choose(const QueuedCall& call) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  ARTUNE_CHECK_CUDA(cudaStreamIsCapturing(call.stream, &capture));
  const Mode mode = capture == cudaStreamCaptureStatusActive ? Mode::graph : Mode::eager;
  return call.comm->shared->table.choose(call.dtype, mode, call.count * element_bytes(call.dtype));
}

/// `staged`: the buffers of the other ranks aren't known to this call.
void issue(const QueuedCall& call, Choice choice, bool staged) {
  artuneComm& comm = *call.comm;
  if (staged) choice.candidate = info_of(choice.candidate).fallback();
  comm.shared->group->enqueue(comm.rank, {choice.candidate, choice.geometry, is_lossy(choice.numerics)}, call.input, call.output, call.count, call.dtype, call.stream);
  comm.calls.fetch_add(1, std::memory_order_relaxed);
  comm.tuned.fetch_add(choice.tuned ? 1 : 0, std::memory_order_relaxed);
  comm.bytes.fetch_add(call.count * element_bytes(call.dtype), std::memory_order_relaxed);
}

/// Where the norm follows the sum in a launch of its own. After end_layer(), which is when NCCL issues the sum.
void issue_norm(const QueuedCall& call) {
  if (!call.norm) return;
  call.comm->shared->group->enqueue_norm(call.comm->rank, call.output, call.norm->buffers, call.norm->shape, call.dtype, call.stream);
}

/// All calls of call `first`'s layer and group. NCCL wants them bracketed; the direct candidates want all ranks' buffers.
void issue_layer(OpenGroup& open, std::size_t first) {
  SharedGroup& shared = *open.calls[first].comm->shared;
  const Choice choice = choose(open.calls[first]);
  const auto mine = [&](std::size_t i) {
    return i >= first && open.layer[i] == open.layer[first] && !open.issued[i] && open.calls[i].comm->shared.get() == &shared;
  };
  std::array<RankBuffers, kMaxRanks> buffers{};
  int known = 0;
  bool alike = true;  // ranks that call otherwise than the first are no layer to be taken in one
  for (std::size_t i = first; i < open.calls.size(); ++i) {
    if (!mine(i)) continue;
    const QueuedCall& call = open.calls[i];
    buffers[static_cast<std::size_t>(call.comm->rank)] = {call.input, call.output};
    ++known;
    alike = alike && call.count == open.calls[first].count && call.dtype == open.calls[first].dtype &&
            call.norm.has_value() == open.calls[first].norm.has_value();
  }
  const bool whole = alike && known == shared.group->ranks();
  const Call layer{choice.candidate, choice.geometry, is_lossy(choice.numerics)};
  shared.group->begin_layer(layer, whole ? std::span(buffers.data(), static_cast<std::size_t>(known)) : std::span<const RankBuffers>());
  for (std::size_t i = first; i < open.calls.size(); ++i) {
    if (!mine(i)) continue;
    issue(open.calls[i], alike ? choice : choose(open.calls[i]), !whole);
  }
  shared.group->end_layer(layer);
  for (std::size_t i = first; i < open.calls.size(); ++i) {
    if (!mine(i)) continue;
    issue_norm(open.calls[i]);
    open.issued[i] = true;
  }
}

/// Call by call over the ranks, not rank by rank: a launch queue is about a thousand deep, and a rank that fills it
/// while its kernels wait for a rank that isn't issued yet would wait for ever.
void flush(OpenGroup& open) {
  open.layer.assign(open.calls.size(), 0);
  open.issued.assign(open.calls.size(), 0);
  std::size_t layers = 0;
  for (std::size_t i = 0; i < open.calls.size(); ++i) {
    for (std::size_t before = i; before-- > 0;) {
      if (open.calls[before].comm == open.calls[i].comm) {
        open.layer[i] = open.layer[before] + 1;
        break;
      }
    }
    layers = std::max(layers, open.layer[i] + 1);
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (std::size_t i = 0; i < open.calls.size(); ++i) {
      if (open.layer[i] == layer && !open.issued[i]) issue_layer(open, i);
    }
  }
}

/// The log of one initialisation: the callback, and standard error where ARTUNE_LOG asks for it.
class Log {
 public:
  Log(const artuneConfig_t& config, bool to_stderr) : function_(config.log), user_(config.logUser), to_stderr_(to_stderr) {}
  void operator()(int level, const std::string& line) const {
    if (function_ != nullptr) function_(level, line.c_str(), user_);
    if (to_stderr_) std::fprintf(stderr, "artune: %s\n", line.c_str());
  }

 private:
  artuneLogFunction_t function_;
  void* user_;
  bool to_stderr_;
};

struct LoadedProfile {
  std::optional<Profile> profile;
  std::string path;
  bool peer_rests = false;     ///< boot state changed: p2p and ce wait for a check
};

/// The profile for this group, or nothing with one log line. An explicitly named one that can't be used is an error.
Result<LoadedProfile> load_profile(const artuneConfig_t& config, const Environment& environment, const std::vector<int>& devices,
                                   int ranks_per_gpu, const std::string& nccl_version, const Log& log) {
  LoadedProfile loaded;
  auto here = look_here(devices, ranks_per_gpu, nccl_version);
  const bool named = config.profile != nullptr;
  if (!here) {
    if (named) return Error{Reason::foreign_profile, "the profile can't be matched with this machine: " + here.error().message};
    log(1, "no profile: the machine can't be described (" + here.error().message + ")");
    return loaded;
  }
  const ProfilePlaces places{.named = named ? config.profile : "", .environment = environment.profile, .config_home = environment.config_home};
  const std::string kind = fingerprint(here->group);
  const auto found = find_profile(places, kind);
  if (!found) {
    log(1, "no profile for this group (" + kind + "); run: ar-tune tune");
    return loaded;
  }
  auto profile = read_profile(found->path);
  if (!profile) {
    if (named) return profile.error();
    log(1, "profile not used: " + profile.error().message);
    return loaded;
  }
  const Match match = match_profile(*profile, here->group, here->machine);
  if (!match.usable()) {
    if (named) return Error{match.reason, found->path + ": " + match.refusal()};
    log(1, "profile " + found->path + " not used: " + match.refusal());
    return loaded;
  }
  for (const std::string& warning : match.warnings()) log(1, found->path + ": " + warning);
  loaded.peer_rests = !match.boot_state_changed.empty();
  loaded.path = found->path;
  loaded.profile = std::move(*profile);
  return loaded;
}

/// Tests every pair of different GPUs; empty, or the first reason why p2p and ce are off for all.
std::string self_test(const std::vector<int>& devices) {
  const std::set<int> distinct(devices.begin(), devices.end());
  unsigned nonce = 0x5eed;
  for (const int from : distinct) {
    for (const int to : distinct) {
      if (from == to) continue;
      const PairTestResult result = test_pair(from, to, nonce++);
      const std::string& fault = result.store_fault.empty() ? result.copy_fault : result.store_fault;
      if (!fault.empty()) return "CUDA device " + std::to_string(from) + " to " + std::to_string(to) + ": " + fault;
    }
  }
  return {};
}

artuneResult_t init_all(artuneComm_t* comms, int nranks, const int* devices, const artuneConfig_t* given) {
  if (comms == nullptr) return fail(artuneInvalidArgument, "comms is NULL");
  if (nranks < 2 || nranks > kMaxRanks) {
    return fail(artuneInvalidArgument, "nranks is " + std::to_string(nranks) + "; 2 to " + std::to_string(kMaxRanks) + " ranks are served");
  }
  artuneConfig_t config{};
  if (given != nullptr) {
    if (given->size < sizeof(size_t) || given->size > 4096) {
      return fail(artuneInvalidArgument, "config->size is " + std::to_string(given->size) + "; start from ARTUNE_CONFIG_INITIALIZER");
    }
    std::memcpy(&config, given, std::min(given->size, sizeof config));
  }
  if (config.load != artuneLoadIdle && config.load != artuneLoadOverlap) {
    return fail(artuneInvalidArgument, "config->load is " + std::to_string(static_cast<int>(config.load)) + "; write artuneLoadIdle or artuneLoadOverlap");
  }
  const Load load = config.load == artuneLoadOverlap ? Load::overlap : Load::idle;
  const Environment environment = Environment::of_process();
  const Log log(config, environment.log);
  for (const std::string& problem : environment.problems) log(1, problem);

  GroupOptions options;
  int visible = 0;
  ARTUNE_CHECK_CUDA(cudaGetDeviceCount(&visible));
  std::map<int, int> on_device;
  for (int rank = 0; rank < nranks; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    if (device < 0 || device >= visible) {
      return fail(artuneInvalidArgument,
                  "rank " + std::to_string(rank) + ": there is no CUDA device " + std::to_string(device) + ", only " + std::to_string(visible));
    }
    options.devices.push_back(device);
    ++on_device[device];
  }
  int ranks_per_gpu = 1;
  for (const auto& [device, ranks_on_it] : on_device) ranks_per_gpu = std::max(ranks_per_gpu, ranks_on_it);
  options.max_memory_bytes = config.maxMemoryBytes > 0 ? config.maxMemoryBytes : kDefaultMaxMemoryBytes;
  options.timeout_s = config.timeoutSeconds > 0 ? config.timeoutSeconds : config.timeoutSeconds < 0 ? 0 : environment.timeout_s.value_or(600);
  options.nccl_file = config.ncclLibrary != nullptr ? config.ncclLibrary : "";

  const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (ranks_per_gpu > 1 && (connections == nullptr || std::atoi(connections) < 4 * ranks_per_gpu)) {
    log(1, "ranks share a GPU, and CUDA_DEVICE_MAX_CONNECTIONS is not large: set it to 32 before the first CUDA call, or one rank's "
           "kernels may queue behind another's and wait for ever");
  }
  DispatchSwitches switches = make_switches(environment.disable, environment.paths);
  switches.bf16_wire = config.bf16Wire != 0;
  const auto nccl = NcclLibrary::open(options.nccl_file, environment.nccl_lib);
  auto loaded = load_profile(config, environment, options.devices, ranks_per_gpu, nccl ? nccl->version_text() : "", log);
  if (!loaded) return fail(artuneProfileError, loaded.error().message);
  if (switches.bf16_wire && loaded->profile &&
      std::none_of(loaded->profile->tables.begin(), loaded->profile->tables.end(),
                   [&](const Table& table) { return table.key.ranks == nranks && table.key.wire != table.key.dtype; })) {
    log(0, "bf16Wire is set, and the profile has no table for it: f32 travels as it is; run: ar-tune tune --dtype f32 --wire native,bf16");
  }
  if (loaded->peer_rests) {
    switches.forbid(Path::p2p);
    switches.forbid(Path::ce);
  }

  int multiprocessors = 0;
  ARTUNE_CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options.devices.front()));
  const AdmitFacts facts{.ranks = nranks, .ranks_per_gpu = ranks_per_gpu, .multiprocessors = multiprocessors, .bytes = 0,
                         .peer_access = true, .nccl = true};
  if (load == Load::overlap && loaded->profile && std::none_of(loaded->profile->tables.begin(), loaded->profile->tables.end(), [](const Table& table) {
        return table.key.load == Load::overlap;
      })) {
    log(1, "the profile has no tables for load `overlap`: ar-tune tune --overlap makes them; its default serves everything");
  }
  const auto table_now = [&] {
    return loaded->profile ? DispatchTable::from_profile(*loaded->profile, nranks, Launch::one_thread, load, switches)
                           : DispatchTable::untuned(facts, switches);
  };
  // First what the table would like, then a group that can do it, then a table without what the group can't have.
  DispatchTable wish = table_now();
  std::set<int> limits;
  bool wants_peers = false;
  for (const Use& use : wish.uses()) {
    std::size_t& largest = options.largest_message[static_cast<std::size_t>(use.candidate)];
    largest = std::max(largest, use.max_bytes);
    std::size_t& instead = options.largest_message[static_cast<std::size_t>(info_of(use.candidate).fallback())];
    instead = std::max(instead, use.max_bytes);
    if (use.candidate == CandidateId::nccl) limits.insert(use.geometry.max_ctas);
    wants_peers = wants_peers || info_of(use.candidate).needs_peer_access();
  }
  // Whatever happens to the other paths, host memory must be able to serve.
  for (const CandidateId id : {CandidateId::host_one_shot_ll, CandidateId::host_one_shot_flag, CandidateId::host_copy_engine}) {
    std::size_t& largest = options.largest_message[static_cast<std::size_t>(id)];
    largest = std::max(largest, std::size_t{1} << 20);
  }
  options.nccl_max_ctas.assign(limits.begin(), limits.end());
  if (options.nccl_max_ctas.empty()) options.nccl_max_ctas = {0};
  options.use_nccl = switches.allows(Path::nccl);
  auto group = Group::create(options);
  if (wants_peers && group->facts(0).peer_access) {
    if (const std::string fault = self_test(options.devices); !fault.empty()) {
      log(1, "p2p and ce are off: the self-test failed: " + fault);
      switches.forbid(Path::p2p);
      switches.forbid(Path::ce);
    }
  }
  for (const Use& use : wish.uses()) {
    const std::string why = group->unavailable(use.candidate);
    if (why.empty() || !switches.allows(info_of(use.candidate).path)) continue;
    log(1, std::string(info_of(use.candidate).name) + " is off: " + why);
    switches.forbid(info_of(use.candidate).path);
  }
  DispatchTable table = table_now();
  if (const Status usable = table.usable(); !usable) return fail(artuneUnavailable, usable.error().message);

  auto shared = std::make_shared<SharedGroup>(std::move(group), std::move(table));
  shared->profile_loaded = loaded->profile.has_value();
  shared->origin = loaded->profile ? "profile " + loaded->path : "no profile";
  log(0, shared->origin + "; " + std::to_string(nranks) + " ranks" + (environment.disable ? "; ARTUNE_DISABLE is set" : ""));
  std::vector<std::unique_ptr<artuneComm>> made;
  for (int rank = 0; rank < nranks; ++rank) {
    made.push_back(std::make_unique<artuneComm>());
    made.back()->shared = shared;
    made.back()->rank = rank;
  }
  for (int rank = 0; rank < nranks; ++rank) comms[rank] = made[static_cast<std::size_t>(rank)].release();
  return artuneSuccess;
}

/// A call whose arguments are right: issued now, or with its group.
artuneResult_t enqueue_or_queue(const QueuedCall& call) {
  switch (call.comm->shared->current()) {
    case State::ready: break;
    case State::error: return fail(artuneCommError, call.comm->shared->group->failure().value_or("an earlier call failed"));
    case State::aborted: return fail(artuneInvalidUsage, "the communicator was aborted; destroy it");
  }
  return guarded([&] {
    if (open_group.depth > 0) {
      open_group.calls.push_back(call);
      return artuneSuccess;
    }
    issue(call, choose(call), /*staged=*/true);
    issue_norm(call);
    return artuneSuccess;
  });
}

}  // namespace

artuneResult_t artuneGetVersion(int* version) {
  if (version == nullptr) return fail(artuneInvalidArgument, "version is NULL");
  int major = 0, minor = 0, patch = 0;
  std::sscanf(kVersion, "%d.%d.%d", &major, &minor, &patch);
  *version = major * 10000 + minor * 100 + patch;
  return artuneSuccess;
}

const char* artuneGetErrorString(artuneResult_t result) {
  switch (result) {
    case artuneSuccess: return "no error";
    case artuneCudaError: return "CUDA error";
    case artuneSystemError: return "system error";
    case artuneInternalError: return "internal error";
    case artuneInvalidArgument: return "invalid argument";
    case artuneInvalidUsage: return "invalid usage";
    case artuneUnavailable: return "no path can serve this";
    case artuneCommError: return "the communicator is in error";
    case artuneProfileError: return "the profile can't be used";
  }
  return "unknown result code";
}

const char* artuneGetLastError(void) { return last_error.c_str(); }

artuneResult_t artuneCommInitAll(artuneComm_t* comms, int nranks, const int* devices, const artuneConfig_t* config) {
  return guarded([&] { return init_all(comms, nranks, devices, config); });
}

artuneResult_t artuneAllReduce(const void* sendbuff, void* recvbuff, size_t count, artuneDataType_t datatype, artuneRedOp_t op,
                               artuneComm_t comm, cudaStream_t stream) {
  if (comm == nullptr) return fail(artuneInvalidArgument, "comm is NULL");
  if (op != artuneSum) return fail(artuneInvalidArgument, "op " + std::to_string(static_cast<int>(op)) + " is reserved; only artuneSum is served");
  const auto dtype = dtype_of(datatype);
  if (!dtype) {
    return fail(artuneInvalidArgument, "datatype " + std::to_string(static_cast<int>(datatype)) + " is reserved; float16, float32 and bfloat16 are served");
  }
  if (count == 0) return artuneSuccess;
  if (sendbuff == nullptr || recvbuff == nullptr) return fail(artuneInvalidArgument, "a buffer is NULL");
  const auto misaligned = [&](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % element_bytes(*dtype) != 0; };
  if (misaligned(sendbuff) || misaligned(recvbuff)) return fail(artuneInvalidArgument, "a buffer is not aligned to its element");
  return enqueue_or_queue({comm, sendbuff, recvbuff, count, *dtype, stream});
}

artuneResult_t artuneAllReduceRMSNorm(const void* input, const void* residual, const void* weight, void* output, void* residualOut,
                                      size_t rows, size_t hidden, float eps, unsigned flags, artuneDataType_t datatype, artuneComm_t comm,
                                      cudaStream_t stream) {
  if (comm == nullptr) return fail(artuneInvalidArgument, "comm is NULL");
  const auto dtype = dtype_of(datatype);
  if (!dtype || *dtype == DType::f32) {
    return fail(artuneInvalidArgument, "datatype " + std::to_string(static_cast<int>(datatype)) + " is not served here; float16 and bfloat16 are");
  }
  if (hidden < kLeastHidden || hidden > kMostHidden || hidden % kVectorElements != 0) {
    return fail(artuneInvalidArgument, "hidden is " + std::to_string(hidden) + "; multiples of " + std::to_string(kVectorElements) + " from " +
                                           std::to_string(kLeastHidden) + " to " + std::to_string(kMostHidden) + " are served");
  }
  if (!(eps >= 0) || std::isinf(eps)) return fail(artuneInvalidArgument, "eps is " + std::to_string(eps) + "; it must be finite and not negative");
  if ((flags & ~static_cast<unsigned>(artuneNormOnePlusWeight)) != 0) {
    return fail(artuneInvalidArgument, "flags " + std::to_string(flags) + " has bits that are reserved; artuneNormOnePlusWeight is served");
  }
  if (rows == 0) return artuneSuccess;
  if (rows > std::numeric_limits<std::uint32_t>::max() / kMostHidden) {
    return fail(artuneInvalidArgument, "rows is " + std::to_string(rows) + "; up to " +
                                           std::to_string(std::numeric_limits<std::uint32_t>::max() / kMostHidden) + " are served");
  }
  const std::pair<const char*, const void*> buffers[] = {
      {"input", input}, {"residual", residual}, {"weight", weight}, {"output", output}, {"residualOut", residualOut}};
  for (const auto& [name, buffer] : buffers) {
    if (buffer == nullptr) return fail(artuneInvalidArgument, std::string(name) + " is NULL");
    if (reinterpret_cast<std::uintptr_t>(buffer) % kRowVectorBytes != 0) {
      return fail(artuneInvalidArgument, std::string(name) + " is not aligned to " + std::to_string(kRowVectorBytes) + " bytes");
    }
  }
  if (output == residual || output == residualOut || residualOut == input || output == weight || residualOut == weight) {
    return fail(artuneInvalidArgument, "output may be input and residualOut may be residual; no other buffers may be the same");
  }
  const NormCall shape{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(hidden), eps, (flags & artuneNormOnePlusWeight) != 0};
  return enqueue_or_queue({comm, input, output, rows * hidden, *dtype, stream, QueuedNorm{{residual, weight, output, residualOut}, shape}});
}

artuneResult_t artuneGroupStart(void) {
  ++open_group.depth;
  return artuneSuccess;
}

artuneResult_t artuneGroupEnd(void) {
  if (open_group.depth == 0) return fail(artuneInvalidUsage, "artuneGroupEnd without artuneGroupStart");
  if (--open_group.depth > 0) return artuneSuccess;
  const artuneResult_t result = guarded([&] {
    flush(open_group);
    return artuneSuccess;
  });
  open_group.calls.clear();
  return result;
}

artuneResult_t artuneCommGetAsyncError(artuneComm_t comm, artuneResult_t* asyncError) {
  if (comm == nullptr || asyncError == nullptr) return fail(artuneInvalidArgument, "an argument is NULL");
  return guarded([&] {
    *asyncError = artuneSuccess;
    if (comm->shared->current() != State::ready) {
      *asyncError = artuneCommError;
      last_error = comm->shared->group->failure().value_or("the communicator was aborted");
    }
    return artuneSuccess;
  });
}

artuneResult_t artuneCommCount(artuneComm_t comm, int* count) {
  if (comm == nullptr || count == nullptr) return fail(artuneInvalidArgument, "an argument is NULL");
  *count = comm->shared->group->ranks();
  return artuneSuccess;
}

artuneResult_t artuneCommUserRank(artuneComm_t comm, int* rank) {
  if (comm == nullptr || rank == nullptr) return fail(artuneInvalidArgument, "an argument is NULL");
  *rank = comm->rank;
  return artuneSuccess;
}

artuneResult_t artuneCommStats(artuneComm_t comm, artuneStats_t* stats) {
  if (comm == nullptr || stats == nullptr) return fail(artuneInvalidArgument, "an argument is NULL");
  artuneStats_t now{};
  now.size = stats->size;
  now.calls = comm->calls.load();
  now.tuned = comm->tuned.load();
  now.bytes = comm->bytes.load();
  for (const CandidateInfo& info : menu()) {
    const int ranks = comm->shared->group->ranks();
    now.deviceMemoryBytes += slab_layout(info.id, comm->shared->group->max_bytes(info.id), ranks).device_bytes;
  }
  now.profileLoaded = comm->shared->profile_loaded ? 1 : 0;
  std::memcpy(stats, &now, std::min(stats->size, sizeof now));
  return artuneSuccess;
}

artuneResult_t artuneExplain(artuneComm_t comm, size_t bytes, artuneDataType_t datatype, int capturing, char* text, size_t size) {
  const auto dtype = dtype_of(datatype);
  if (comm == nullptr || text == nullptr || size == 0 || !dtype) return fail(artuneInvalidArgument, "an argument is NULL, empty or reserved");
  return guarded([&] {
    const Choice choice = comm->shared->table.choose(*dtype, capturing != 0 ? Mode::graph : Mode::eager, bytes);
    const Candidate candidate{std::string(info_of(choice.candidate).name), choice.geometry};
    const std::string wire = is_lossy(choice.numerics) ? "f32 as bf16" : std::string(to_string(*dtype));
    const std::string line = candidate.label() + ", " + wire + " on the wire, numerics " + std::string(to_string(choice.numerics)) + ", " +
                             (choice.tuned ? "by " + comm->shared->origin : "default (" + comm->shared->origin + ")");
    std::snprintf(text, size, "%s", line.c_str());
    return artuneSuccess;
  });
}

artuneResult_t artuneCommAbort(artuneComm_t comm) {
  if (comm == nullptr) return fail(artuneInvalidArgument, "comm is NULL");
  return guarded([&] {
    if (comm->shared->state.exchange(State::aborted) != State::aborted) comm->shared->group->abort();
    return artuneSuccess;
  });
}

artuneResult_t artuneCommDestroy(artuneComm_t comm) {
  if (comm == nullptr) return artuneSuccess;
  return guarded([&] {
    delete comm;
    return artuneSuccess;
  });
}
