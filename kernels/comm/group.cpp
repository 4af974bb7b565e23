// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/group.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "paths/launches.hpp"
#include "protocol/failure_text.hpp"
#include "protocol/memory.cuh"
#include "seams/environment.hpp"
#include "seams/nccl_library.hpp"

namespace artune {
namespace {

constexpr std::size_t kReportBytes = 128;  // one line a rank: no two ranks' reports share one
static_assert(sizeof(FailureReport) <= kReportBytes);

std::size_t index_of(CandidateId id) { return static_cast<std::size_t>(id); }

class Event {
 public:
  Event() { ARTUNE_CHECK_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  operator cudaEvent_t() const { return event_; }  // NOLINT(google-explicit-constructor): an owner of the handle

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  Stream() { ARTUNE_CHECK_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(Stream&&) = delete;
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor): an owner of the handle

 private:
  cudaStream_t stream_ = nullptr;
};

constexpr int kReduceThreads = 512;
constexpr std::size_t kDefaultChunkBytes = std::size_t{1} << 20;

}  // namespace

/// What one rank owns. Made and destroyed with its device current.
struct Group::Rank {
  std::array<DeviceMemory, kMenuSize> slabs;      ///< receive areas of the family
  std::array<DeviceMemory, kMenuSize> controls;   ///< one Control each
  std::array<OneShotArguments, kMenuSize> one_shot{};
  std::array<ExchangeArguments, kMenuSize> exchange{};
  std::array<const char*, kMaxRanks> push_landing{};   ///< where peer p's contribution to ce/push arrives
  std::array<char*, kMaxRanks> push_target{};          ///< where this rank's contribution goes at peer p
  Stream up, down;                                ///< copies to and from the host
  Event fork, up_done;
  Event eager_order, capture_order;               ///< one event can't serve both: an event of a capture lives in it
  std::vector<Event> published, landed;           ///< one per chunk
  // Order of calls over streams.
  bool has_stream = false;
  cudaStream_t last_stream = nullptr;
  unsigned long long capture_id = 0;
  cudaStream_t capture_stream = nullptr;
};

std::unique_ptr<Group> Group::create(GroupOptions options) {
  std::unique_ptr<Group> group(new Group(std::move(options)));
  return group;
}

Group::Group(GroupOptions options) : options_(std::move(options)) {
  std::map<int, int> on_device;
  for (const int device : options_.devices) ++on_device[device];
  for (const auto& [device, ranks_on_it] : on_device) {
    ranks_per_gpu_ = std::max(ranks_per_gpu_, ranks_on_it);
    int multiprocessors = 0;
    ARTUNE_CHECK_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    multiprocessors_ = multiprocessors_ == 0 ? multiprocessors : std::min(multiprocessors_, multiprocessors);
  }
  peer_refusal_ = options_.peer_refusal;
  enable_peers();
  allocate();
  load_kernels();
  if (!options_.use_nccl) {
    nccl_refusal_ = "switched off";
    return;
  }
  auto library = NcclLibrary::open(options_.nccl_file, Environment::of_process().nccl_lib);
  if (!library) {
    nccl_refusal_ = library.error().message;
    return;
  }
  auto path = NcclPath::create(*library, options_.devices, options_.nccl_max_ctas);
  if (path) {
    nccl_.emplace(std::move(*path));
  } else {
    nccl_refusal_ = path.error().message;
  }
}

Group::~Group() {
  // A kernel that still waits would keep the memory below busy for ever.
  if (words_.data() != nullptr && failure()) abort();
  for (int rank = 0; rank < ranks(); ++rank) {
    cudaSetDevice(device(rank));
    cudaDeviceSynchronize();
  }
}

void Group::enable_peers() {
  const std::set<int> devices(options_.devices.begin(), options_.devices.end());
  for (const int from : devices) {
    for (const int to : devices) {
      if (from == to || !peer_refusal_.empty()) continue;
      int can = 0;
      ARTUNE_CHECK_CUDA(cudaDeviceCanAccessPeer(&can, from, to));
      if (can == 0) {
        peer_refusal_ = "the driver gives CUDA device " + std::to_string(from) + " no access to the memory of device " + std::to_string(to);
        continue;
      }
      const DeviceGuard guard(from);
      const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
      } else if (status != cudaSuccess) {
        cudaGetLastError();
        peer_refusal_ = "peer access from CUDA device " + std::to_string(from) + " to " + std::to_string(to) +
                        " is offered but can't be enabled: " + cudaGetErrorString(status);
      }
    }
  }
}

void Group::allocate() {
  SlabRequest request{.ranks = ranks(), .ranks_per_gpu = ranks_per_gpu_, .max_memory_bytes = options_.max_memory_bytes,
                      .largest_message = options_.largest_message};
  for (const CandidateInfo& info : menu()) {
    if (!refusal(info, facts(1)).empty()) request.largest_message[index_of(info.id)] = 0;
  }
  planned_ = plan_slabs(request);
  words_ = PinnedMemory(kReportBytes * (static_cast<std::size_t>(ranks()) + 1));
  for (const CandidateInfo& info : menu()) {
    const std::size_t bytes = host_bytes(info.id, planned_[index_of(info.id)], ranks());
    if (bytes > 0) host_slabs_[index_of(info.id)] = PinnedMemory(bytes);
  }
  for (int rank = 0; rank < ranks(); ++rank) {
    const DeviceGuard guard(device(rank));
    auto& mine = *ranks_.emplace_back(std::make_unique<Rank>());
    for (const CandidateInfo& info : menu()) {
      const std::size_t index = index_of(info.id);
      if (planned_[index] == 0) continue;
      mine.controls[index] = DeviceMemory(device(rank), sizeof(Control));
      const std::size_t bytes = device_bytes(info.id, planned_[index], ranks());
      if (bytes > 0) mine.slabs[index] = DeviceMemory(device(rank), bytes);
    }
    if (planned_[index_of(CandidateId::host_copy_engine)] > 0) {
      for (int chunk = 0; chunk < kMostChunks; ++chunk) {
        mine.published.emplace_back();
        mine.landed.emplace_back();
      }
    }
  }

  // Areas. Pushed families: area of source p in owner r's slab, sources counted without the owner.
  const auto nth_peer = [](int owner, int source) { return static_cast<std::size_t>(source < owner ? source : source - 1); };
  for (const CandidateId id : {CandidateId::p2p_one_shot_ll, CandidateId::p2p_one_shot_flag, CandidateId::host_one_shot_ll,
                               CandidateId::host_one_shot_flag}) {
    const std::size_t bytes = planned_[index_of(id)];
    if (bytes == 0) continue;
    const bool is_ll = id == CandidateId::p2p_one_shot_ll || id == CandidateId::host_one_shot_ll;
    const bool is_host = info_of(id).path == Path::host;
    const std::size_t slot_bytes = is_ll ? 2 * bytes : bytes + kMostBlocks * kFlagStrideBytes;
    const auto area = [&](int owner, int source) {
      if (is_host) return host_slabs_[index_of(id)].data() + kSlots * slot_bytes * static_cast<std::size_t>(source);
      return ranks_[owner]->slabs[index_of(id)].data() + kSlots * slot_bytes * nth_peer(owner, source);
    };
    for (int rank = 0; rank < ranks(); ++rank) {
      OneShotArguments& arguments = ranks_[rank]->one_shot[index_of(id)];
      arguments.rank = rank;
      arguments.ranks = ranks();
      arguments.slot_bytes = slot_bytes;
      arguments.flags_offset = bytes;
      arguments.bounds = bounds(rank, id);
      // Peers in an order that starts after the rank itself: not all ranks write to rank 0 first.
      for (int step = 1; step < ranks(); ++step) {
        const int peer = (rank + step) % ranks();
        arguments.area[peer].receive = area(rank, peer);
        if (!is_host) arguments.area[arguments.sends++].send = area(peer, rank);
      }
      if (is_host) arguments.area[arguments.sends++].send = area(rank, rank);
    }
  }
  const std::size_t push = planned_[index_of(CandidateId::ce_push)];
  for (int rank = 0; rank < ranks() && push > 0; ++rank) {
    Rank& mine = *ranks_[rank];
    ExchangeArguments& arguments = mine.exchange[index_of(CandidateId::ce_push)];
    arguments.rank = rank;
    arguments.ranks = ranks();
    arguments.bounds = bounds(rank, CandidateId::ce_push);
    const std::size_t area_bytes = push + 2 * kFlagStrideBytes;  // payload, arrived, free: all written by the source alone
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer == rank) continue;
      char* here = mine.slabs[index_of(CandidateId::ce_push)].data() + area_bytes * nth_peer(rank, peer);
      char* there = ranks_[peer]->slabs[index_of(CandidateId::ce_push)].data() + area_bytes * nth_peer(peer, rank);
      mine.push_landing[peer] = here;
      mine.push_target[peer] = there;
      arguments.arrived_in[peer] = here + push;
      arguments.free_in[peer] = here + push + kFlagStrideBytes;
      arguments.arrived_out[peer] = there + push;
      arguments.free_out[peer] = there + push + kFlagStrideBytes;
    }
  }
  const std::size_t staged = planned_[index_of(CandidateId::host_copy_engine)];
  for (int rank = 0; rank < ranks() && staged > 0; ++rank) {
    ExchangeArguments& arguments = ranks_[rank]->exchange[index_of(CandidateId::host_copy_engine)];
    arguments.rank = rank;
    arguments.ranks = ranks();
    arguments.bounds = bounds(rank, CandidateId::host_copy_engine);
    const std::size_t area_bytes = staged + (1 + kMostChunks) * kFlagStrideBytes;
    // A rank's staging and flags are read by all peers: one copy, N - 1 readers.
    const auto board = [&](int owner) { return host_slabs_[index_of(CandidateId::host_copy_engine)].data() + area_bytes * static_cast<std::size_t>(owner); };
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer == rank) continue;
      arguments.free_out[peer] = board(rank) + staged;
      arguments.arrived_out[peer] = board(rank) + staged + kFlagStrideBytes;
      arguments.free_in[peer] = board(peer) + staged;
      arguments.arrived_in[peer] = board(peer) + staged + kFlagStrideBytes;
    }
  }
}

void Group::load_kernels() {
  for (const int device : std::set<int>(options_.devices.begin(), options_.devices.end())) {
    const DeviceGuard guard(device);
    load_all_kernels();
  }
}

Bounds Group::bounds(int rank, CandidateId candidate) const {
  return {.control = reinterpret_cast<Control*>(ranks_[rank]->controls[index_of(candidate)].data()),
          .report = reinterpret_cast<FailureReport*>(words_.data() + kReportBytes * static_cast<std::size_t>(rank)),
          .group_abort = reinterpret_cast<std::uint32_t*>(words_.data() + kReportBytes * static_cast<std::size_t>(ranks())),
          .timeout_ns = static_cast<std::uint64_t>(options_.timeout_s * 1e9)};
}

AdmitFacts Group::facts(std::size_t bytes) const {
  return {.ranks = ranks(), .ranks_per_gpu = ranks_per_gpu_, .multiprocessors = multiprocessors_, .bytes = bytes,
          .peer_access = peer_refusal_.empty(), .nccl = nccl_.has_value()};
}

std::string Group::unavailable(CandidateId candidate) const {
  const CandidateInfo& info = info_of(candidate);
  if (info.path == Path::nccl) return nccl_refusal_;
  if (info.needs_peer_access && !peer_refusal_.empty()) return peer_refusal_;
  if (std::string why = refusal(info, facts(1)); !why.empty()) return why;
  if (planned_[index_of(candidate)] == 0) {
    return "its slabs don't fit the memory cap of " + std::to_string(options_.max_memory_bytes >> 20) + " MiB per GPU; raise --max-memory";
  }
  return {};
}

void Group::begin_layer(const Call& call) {
  if (call.candidate == CandidateId::nccl) nccl_->group_start();
}

void Group::end_layer(const Call& call) {
  if (call.candidate == CandidateId::nccl) nccl_->group_end();
}

Group::Capture Group::capture_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  Capture capture;
  ARTUNE_CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, &capture.id));
  capture.active = status == cudaStreamCaptureStatusActive;
  return capture;
}

// Inside one capture, calls on several streams are chained; so are eager calls. Between replays and eager calls the caller
// orders. The eager event is recorded after every call, not only once streams change: the stream of the call before may
// be gone by then, and waiting for the device instead would wait for peers whose part isn't issued yet.
void Group::order_streams(int rank, const Capture& capture, cudaStream_t stream) {
  Rank& mine = *ranks_[rank];
  if (capture.active) {
    if (mine.capture_id == capture.id && mine.capture_stream != stream) ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(stream, mine.capture_order, 0));
  } else if (mine.has_stream && mine.last_stream != stream) {
    ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(stream, mine.eager_order, 0));
  }
}

void Group::after_call(int rank, const Capture& capture, cudaStream_t stream) {
  Rank& mine = *ranks_[rank];
  ARTUNE_CHECK_CUDA(cudaEventRecord(capture.active ? mine.capture_order : mine.eager_order, stream));
  if (capture.active) {
    mine.capture_id = capture.id;
    mine.capture_stream = stream;
  } else {
    mine.has_stream = true;
    mine.last_stream = stream;
  }
}

void Group::enqueue(int rank, const Call& call, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream) {
  if (count == 0) return;
  const DeviceGuard guard(device(rank));
  const Capture capture = capture_of(stream);
  order_streams(rank, capture, stream);
  if (call.candidate == CandidateId::nccl) {
    nccl_->all_reduce(rank, call.geometry.max_ctas, input, output, count, dtype, stream);
  } else {
    const std::size_t most = planned_[index_of(call.candidate)] / element_bytes(dtype);
    for (std::size_t first = 0; first < count; first += most) {
      const std::size_t offset = first * element_bytes(dtype);
      launch_piece(rank, call, static_cast<const char*>(input) + offset, static_cast<char*>(output) + offset, std::min(most, count - first),
                   dtype, stream);
    }
  }
  after_call(rank, capture, stream);
}

void Group::launch_piece(int rank, const Call& call, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream) {
  switch (call.candidate) {
    case CandidateId::ce_push: return launch_push(rank, input, output, count, dtype, stream);
    case CandidateId::host_copy_engine: return launch_staged(rank, call.geometry, input, output, count, dtype, stream);
    default: return launch_one_shot(rank, call, input, output, count, dtype, stream);
  }
}

void Group::launch_one_shot(int rank, const Call& call, const void* input, void* output, std::size_t count, DType dtype,
                            cudaStream_t stream) {
  OneShotArguments arguments = ranks_[rank]->one_shot[index_of(call.candidate)];
  arguments.input = input;
  arguments.output = output;
  arguments.count = count;
  // The same on all ranks, since it depends on the call alone: never more blocks than units, nor than are co-resident.
  const bool is_ll = call.candidate == CandidateId::p2p_one_shot_ll || call.candidate == CandidateId::host_one_shot_ll;
  const std::size_t unit = is_ll ? 8 : 16;
  const int threads = std::clamp(call.geometry.threads, 32, kMostThreads);
  const std::size_t needed = (count * element_bytes(dtype) + unit * threads - 1) / (unit * threads);
  const int most = std::min(std::max(call.geometry.blocks, 1), most_resident_blocks(facts(0), threads));
  const int blocks = static_cast<int>(std::min<std::size_t>(needed, static_cast<std::size_t>(most)));
  if (is_ll) {
    launch_one_shot_ll(arguments, dtype, blocks, threads, stream);
  } else {
    launch_one_shot_flag(arguments, dtype, blocks, threads, stream);
  }
}

namespace {
int reduce_blocks(const AdmitFacts& facts, std::size_t bytes) {
  const std::size_t per_block = std::size_t{kReduceThreads} * 16;
  return static_cast<int>(std::clamp<std::size_t>((bytes + per_block - 1) / per_block, 1,
                                                  static_cast<std::size_t>(most_resident_blocks(facts, kReduceThreads))));
}
}  // namespace

void Group::launch_push(int rank, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream) {
  Rank& mine = *ranks_[rank];
  const ExchangeArguments& arguments = mine.exchange[index_of(CandidateId::ce_push)];
  const std::size_t bytes = count * element_bytes(dtype);
  launch_exchange_begin(arguments, 1, stream);
  ChunkArguments chunk{input, output, count, 0, {}};
  for (int step = 1; step < ranks(); ++step) {
    const int peer = (rank + step) % ranks();
    ARTUNE_CHECK_CUDA(cudaMemcpyAsync(mine.push_target[peer], input, bytes, cudaMemcpyDeviceToDevice, stream));
    chunk.contribution[peer] = mine.push_landing[peer];
  }
  const int blocks = reduce_blocks(facts(0), bytes);
  if (ranks_per_gpu_ == 1) {
    launch_exchange_reduce(arguments, chunk, dtype, ExchangeStep::publish_reduce_finish, blocks, kReduceThreads, stream);
    return;
  }
  // Inside one GPU a copy is a kernel, and it may need a whole multiprocessor: were the grids of the other ranks to wait
  // for it there, it might never start. So one block waits, and the grid comes after. Seen on an H200, 4 ranks, 512 KiB.
  launch_exchange_publish(arguments, 0, stream);
  launch_exchange_await(arguments, 0, stream);
  launch_exchange_reduce(arguments, chunk, dtype, ExchangeStep::reduce_and_finish, blocks, kReduceThreads, stream);
}

// Three streams of one rank. `up` copies chunks to the rank's staging and announces each; `down` waits for a chunk of
// every peer and copies it here; the caller's stream sums it. down(c) starts after this rank's own up(c): even if the
// driver runs both streams through one hardware queue, chunk c is announced before anybody waits for it, so the ranks
// can't wait for each other in a circle.
//
// Ranks that share a GPU do it all in the caller's stream. Branches of two graphs of one context can meet in one hardware
// queue, all calls of the first graph ahead of all calls of the second: then rank 1's copy stands behind rank 0's wait
// for it. Seen on an H200, driver 580.159, 2026-12-01: graphs of 50 calls hung in the first, eager calls and graphs of 3
// didn't.
void Group::launch_staged(int rank, const Geometry& geometry, const void* input, void* output, std::size_t count, DType dtype,
                          cudaStream_t stream) {
  Rank& mine = *ranks_[rank];
  const std::size_t index = index_of(CandidateId::host_copy_engine);
  const ExchangeArguments& arguments = mine.exchange[index];
  const std::size_t staged = planned_[index];
  const std::size_t area_bytes = staged + (1 + kMostChunks) * kFlagStrideBytes;
  const std::size_t bytes = count * element_bytes(dtype);
  std::size_t chunk_bytes = geometry.chunk_bytes > 0 ? geometry.chunk_bytes : kDefaultChunkBytes;
  chunk_bytes = std::max<std::size_t>(chunk_bytes, (bytes + kMostChunks - 1) / kMostChunks);
  chunk_bytes = std::max<std::size_t>((chunk_bytes + 15) / 16 * 16, 16);
  const int chunks = static_cast<int>((bytes + chunk_bytes - 1) / chunk_bytes);

  const bool branches = ranks_per_gpu_ == 1;
  const cudaStream_t up = branches ? static_cast<cudaStream_t>(mine.up) : stream;
  const cudaStream_t down = branches ? static_cast<cudaStream_t>(mine.down) : stream;
  const auto after = [&](cudaStream_t later, cudaStream_t earlier, cudaEvent_t event) {
    if (later == earlier) return;
    ARTUNE_CHECK_CUDA(cudaEventRecord(event, earlier));
    ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(later, event, 0));
  };

  launch_exchange_begin(arguments, chunks, stream);
  after(up, stream, mine.fork);
  char* staging = host_slabs_[index].data() + area_bytes * static_cast<std::size_t>(rank);
  for (int c = 0; c < chunks; ++c) {
    const std::size_t at = static_cast<std::size_t>(c) * chunk_bytes;
    const std::size_t size = std::min(chunk_bytes, bytes - at);
    ARTUNE_CHECK_CUDA(cudaMemcpyAsync(staging + at, static_cast<const char*>(input) + at, size, cudaMemcpyDeviceToHost, up));
    launch_exchange_publish(arguments, c, up);
    if (branches) ARTUNE_CHECK_CUDA(cudaEventRecord(mine.published[c], up));
  }
  for (int c = 0; c < chunks; ++c) {
    const std::size_t at = static_cast<std::size_t>(c) * chunk_bytes;
    const std::size_t size = std::min(chunk_bytes, bytes - at);
    if (branches) ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(down, mine.published[c], 0));
    launch_exchange_await(arguments, c, down);
    ChunkArguments chunk{static_cast<const char*>(input) + at, static_cast<char*>(output) + at, size / element_bytes(dtype),
                         static_cast<std::uint32_t>(c), {}};
    for (int step = 1; step < ranks(); ++step) {
      const int peer = (rank + step) % ranks();
      char* here = mine.slabs[index].data() + staged * static_cast<std::size_t>(step - 1) + at;
      const char* there = host_slabs_[index].data() + area_bytes * static_cast<std::size_t>(peer) + at;
      ARTUNE_CHECK_CUDA(cudaMemcpyAsync(here, there, size, cudaMemcpyHostToDevice, down));
      chunk.contribution[peer] = here;
    }
    after(stream, down, mine.landed[c]);
    const bool is_last = c + 1 == chunks;
    launch_exchange_reduce(arguments, chunk, dtype, is_last ? ExchangeStep::reduce_and_finish : ExchangeStep::reduce,
                           reduce_blocks(facts(0), size), kReduceThreads, stream);
  }
  // `up` has ended before the last `landed`; joining it explicitly is what a capture asks for.
  after(stream, up, mine.up_done);
}

std::optional<std::string> Group::failure() const {
  const FailureReport* failed = first_cause(
      ranks(), [&](int rank) { return reinterpret_cast<const FailureReport*>(words_.data() + kReportBytes * static_cast<std::size_t>(rank)); },
      [](const FailureReport& report) {
        return std::atomic_ref(const_cast<std::uint32_t&>(report.present)).load(std::memory_order_acquire) != 0;
      });
  if (failed != nullptr) return describe_failure(*failed);
  if (nccl_) {
    if (std::string error = nccl_->async_error(); !error.empty()) return "NCCL: " + error;
  }
  return std::nullopt;
}

void Group::abort() {
  auto* word = reinterpret_cast<std::uint32_t*>(words_.data() + kReportBytes * static_cast<std::size_t>(ranks()));
  std::atomic_ref(*word).store(1, std::memory_order_release);
  if (nccl_) nccl_->abort();
}

}  // namespace artune
