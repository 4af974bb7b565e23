// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/group.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "fused/fused_launches.hpp"
#include "paths/launches.hpp"
#include "protocol/failure_text.hpp"
#include "protocol/memory.cuh"
#include "seams/environment.hpp"
#include "seams/nccl_library.hpp"

namespace artune {
namespace {

#if defined(ARTUNE_UNGUARDED)
constexpr std::size_t kControlBytes = sizeof(Control) * kMostBlocks;
#else
constexpr std::size_t kControlBytes = sizeof(Control);
#endif
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
  // The highest priority: what runs here are copies and single warps that others wait for; beside a kernel that fills the
  // GPU they shall get the first room there is.
  Stream() {
    int least = 0, greatest = 0;
    ARTUNE_CHECK_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    ARTUNE_CHECK_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
  }
  Stream(Stream&&) = delete;
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }  // NOLINT(google-explicit-constructor): an owner of the handle

 private:
  cudaStream_t stream_ = nullptr;
};

int threads_of(const Call& call) { return std::clamp(call.geometry.threads, 32, kMostThreads); }

constexpr int kReduceThreads = 512;
constexpr std::size_t kDefaultChunkBytes = std::size_t{1} << 20;

}  // namespace

/// What one rank owns. Made and destroyed with its device current.
struct Group::Rank {
  std::array<DeviceMemory, kMenuSize> slabs;      ///< of the family
  std::array<DeviceMemory, kMenuSize> controls;   ///< one Control each
  // Filled where the candidate's algorithm uses them.
  std::array<OneShotArguments, kMenuSize> one_shot{};
  std::array<TwoShotArguments, kMenuSize> two_shot{};
  std::array<DirectArguments, kMenuSize> direct{};
  std::array<CopyWiring, kMenuSize> copies{};
  HierarchicalArguments hierarchical{};
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
  SlabRequest request{.ranks = ranks(), .ranks_per_gpu = ranks_per_gpu_, .max_memory_bytes = options_.max_memory_bytes, .largest_message = options_.largest_message};
  // In place, one-shot/direct runs as two-shot/direct.
  auto& two_shot_direct = request.largest_message[index_of(CandidateId::p2p_two_shot_direct)];
  two_shot_direct = std::max(two_shot_direct, request.largest_message[index_of(CandidateId::p2p_one_shot_direct)]);
  for (const CandidateInfo& info : menu()) {
    if (!refusal(info, facts(1)).empty()) request.largest_message[index_of(info.id)] = 0;
  }
  planned_ = plan_slabs(request);
  words_ = PinnedMemory(kReportBytes * (static_cast<std::size_t>(ranks()) + 1));
  for (int rank = 0; rank < ranks(); ++rank) {
    const DeviceGuard guard(device(rank));
    ranks_.emplace_back(std::make_unique<Rank>());
  }
  for (const CandidateInfo& info : menu()) {
    const std::size_t index = index_of(info.id);
    if (planned_[index] == 0) continue;
    const SlabLayout& layout = layouts_[index] = slab_layout(info.id, planned_[index], ranks());
    const int fill = info.protocol == Protocol::sentinel ? 0xff : 0;
    if (layout.host_bytes > 0) host_slabs_[index] = PinnedMemory(layout.host_bytes);
    for (int rank = 0; rank < ranks(); ++rank) {
      Rank& mine = *ranks_[rank];
      mine.controls[index] = DeviceMemory(device(rank), kControlBytes);
      if (layout.device_bytes > 0) mine.slabs[index] = DeviceMemory(device(rank), layout.device_bytes, fill);
    }
    wire(info);
    if (options_.first_epoch != 0) start_counters(info);
  }
  if (planned_[index_of(CandidateId::host_copy_engine)] == 0) return;
  for (int rank = 0; rank < ranks(); ++rank) {
    const DeviceGuard guard(device(rank));
    for (int chunk = 0; chunk < kMostChunks; ++chunk) {
      ranks_[rank]->published.emplace_back();
      ranks_[rank]->landed.emplace_back();
    }
  }
}

void Group::wire(const CandidateInfo& info) {
  const std::size_t index = index_of(info.id);
  const Slabs slabs{.id = info.id, .layout = layouts_[index], .ranks = ranks(),
                    .device = [&](int rank) { return ranks_[rank]->slabs[index].data(); }, .host = host_slabs_[index].data(),
                    .bounds = [&](int rank) { return bounds(rank, info.id); }};
  for (int rank = 0; rank < ranks(); ++rank) {
    Rank& mine = *ranks_[rank];
    switch (info.algorithm) {
      case Algorithm::library: break;
      case Algorithm::one_shot:
      case Algorithm::two_shot:
        if (info.staging == Staging::none) {
          mine.direct[index] = wire_direct(slabs, rank);
        } else if (info.algorithm == Algorithm::one_shot) {
          mine.one_shot[index] = wire_one_shot(slabs, rank);
        } else {
          mine.two_shot[index] = wire_two_shot(slabs, rank);
        }
        break;
      case Algorithm::hierarchical: mine.hierarchical = wire_hierarchical(slabs, rank); break;
      case Algorithm::copies:
      case Algorithm::ring: mine.copies[index] = wire_copies(slabs, rank); break;
    }
  }
}

/// As if that many calls had been made: the epochs, and the flags as they would have been left. What lies in the data's
/// place is of no account.
void Group::start_counters(const CandidateInfo& info) {
  const std::size_t index = index_of(info.id);
  const std::uint64_t epoch = options_.first_epoch;
  const auto set = [&](char* to, std::size_t bytes) {
    const std::vector<std::uint64_t> words(bytes / sizeof epoch, epoch);
    if (bytes > 0) ARTUNE_CHECK_CUDA(cudaMemcpy(to, words.data(), bytes, cudaMemcpyDefault));
  };
  for (int rank = 0; rank < ranks(); ++rank) {
    const DeviceGuard guard(device(rank));
    Control control{.epoch = epoch, .error = 0, .ticket = 0, .units = 0, .turn = 0, .unused = 0};
    if (info.one_kernel()) control.ticket = first_ticket(epoch);
    ARTUNE_CHECK_CUDA(cudaMemcpy(ranks_[rank]->controls[index].data(), &control, sizeof control, cudaMemcpyDefault));
    if (info.protocol == Protocol::flag) set(ranks_[rank]->slabs[index].data(), layouts_[index].device_bytes);
    ARTUNE_CHECK_CUDA(cudaDeviceSynchronize());
  }
  if (info.protocol == Protocol::flag) set(host_slabs_[index].data(), layouts_[index].host_bytes);
}

void Group::load_kernels() {
  clusters_.fill(std::numeric_limits<int>::max());
  for (const int device : std::set<int>(options_.devices.begin(), options_.devices.end())) {
    const DeviceGuard guard(device);
    load_all_kernels();
    load_norm_kernels();
    const std::array<int, 3> here = clusters_here();
    std::transform(here.begin(), here.end(), clusters_.begin(), clusters_.begin(), [](int a, int b) { return std::min(a, b); });
  }
}

const OneShotArguments& Group::one_shot(int rank, CandidateId candidate) const { return ranks_[rank]->one_shot[index_of(candidate)]; }

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
  if (info.needs_peer_access() && !peer_refusal_.empty()) return peer_refusal_;
  if (std::string why = refusal(info, facts(1)); !why.empty()) return why;
  if (planned_[index_of(candidate)] == 0) {
    return "its slabs don't fit the memory cap of " + std::to_string(options_.max_memory_bytes >> 20) + " MiB per GPU; raise --max-memory";
  }
  return {};
}

void Group::begin_layer(const Call& call, std::span<const RankBuffers> buffers) {
  if (call.candidate == CandidateId::nccl) nccl_->group_start();
  if (static_cast<int>(buffers.size()) != ranks()) return;
  layer_known_ = true;
  layer_in_place_ = false;
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
    layer_[rank] = buffers[rank];
    layer_in_place_ = layer_in_place_ || buffers[rank].input == buffers[rank].output;
  }
}

void Group::end_layer(const Call& call) {
  if (layer_known_) layer_known_ = false;  // not written where every rank has a thread of its own
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
    if (most == 0) throw Failure("enqueue", std::string(info_of(call.candidate).name) + " has no slab in this group", 0);
    for (std::size_t first = 0; first < count; first += most) {
      const std::size_t offset = first * element_bytes(dtype);
      launch_piece(rank, call, static_cast<const char*>(input) + offset, static_cast<char*>(output) + offset, std::min(most, count - first),
                   dtype, stream);
    }
  }
  after_call(rank, capture, stream);
}

int Group::kernels_per_call(const Call& call, std::size_t bytes) const {
  const CandidateInfo& info = info_of(call.candidate);
  if (info.path == Path::nccl) return 1;
  const std::size_t most = planned_[index_of(call.candidate)];
  const int pieces = most == 0 ? 1 : static_cast<int>((bytes + most - 1) / most);
  const int copies = ranks_per_gpu_ > 1 ? ranks() - 1 : 0;  // see copy()
  switch (info.algorithm) {
    case Algorithm::copies: {
      if (info.path == Path::ce) return pieces * (copies == 0 ? 2 : 4 + copies);
      const std::size_t chunk = std::max<std::size_t>(call.geometry.chunk_bytes, 1);
      return pieces * (1 + 3 * static_cast<int>((std::min(bytes, most) + chunk - 1) / chunk));
    }
    case Algorithm::ring: return pieces * (1 + (ranks() - 1) * (ranks_per_gpu_ > 1 ? 8 : 4));
    default: return pieces;
  }
}

// The same on all ranks, since it depends on the call alone: never more blocks than units, nor than are co-resident.
int Group::blocks_of(const Call& call, std::size_t count, DType dtype) const {
  const CandidateInfo& info = info_of(call.candidate);
  const std::size_t unit = info.protocol == Protocol::ll ? 8 : 16;
  const int threads = threads_of(call);
  std::size_t bytes = count * element_bytes(dtype);
  if (info.algorithm == Algorithm::two_shot) bytes = bytes / static_cast<std::size_t>(ranks()) + unit;
  const std::size_t needed = (bytes + unit * threads - 1) / (unit * threads);
  const int most = std::min(std::max(call.geometry.blocks, 1), most_resident_blocks(facts(0), threads));
  return static_cast<int>(std::clamp<std::size_t>(needed, 1, static_cast<std::size_t>(most)));
}

namespace {
template <typename Arguments>
Arguments with_buffers(const Arguments& wired, const void* input, void* output, std::size_t count) {
  Arguments arguments = wired;
  arguments.input = input;
  arguments.output = output;
  arguments.count = count;
  return arguments;
}
}  // namespace

void Group::launch_piece(int rank, const Call& call, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream) {
  const CandidateInfo& info = info_of(call.candidate);
  const std::size_t index = index_of(call.candidate);
  const Rank& mine = *ranks_[rank];
  const Form form = call.lossy_wire ? Form::f32_over_bf16 : form_of(dtype);
  const int threads = threads_of(call), blocks = blocks_of(call, count, dtype);
  switch (info.algorithm) {
    case Algorithm::library: return;
    case Algorithm::one_shot: {
      if (info.staging == Staging::none) return launch_direct_call(rank, call, count, dtype, stream);
      const OneShotArguments arguments = with_buffers(mine.one_shot[index], input, output, count);
      if (info.protocol == Protocol::flag) return launch_one_shot_flag(arguments, form, blocks, threads, stream);
      return launch_one_shot_packets(arguments, info.protocol, form, blocks, threads, stream);
    }
    case Algorithm::two_shot: {
      if (info.staging == Staging::none) return launch_direct_call(rank, call, count, dtype, stream);
      const TwoShotArguments arguments = with_buffers(mine.two_shot[index], input, output, count);
      if (info.protocol == Protocol::flag) return launch_two_shot_flag(arguments, form, blocks, threads, stream);
      return launch_two_shot_packets(arguments, info.protocol, form, blocks, threads, stream);
    }
    case Algorithm::hierarchical:
      return launch_hierarchical(with_buffers(mine.hierarchical, input, output, count), dtype, blocks, threads, stream);
    case Algorithm::copies:
      if (info.path == Path::host) return launch_staged(rank, call.geometry, input, output, count, dtype, stream);
      return launch_push(rank, input, output, count, dtype, stream);
    case Algorithm::ring: return launch_ring(rank, input, output, count, dtype, stream);
  }
}

void Group::launch_direct_call(int rank, const Call& call, std::size_t count, DType dtype, cudaStream_t stream) {
  if (!layer_known_) throw Failure("enqueue", std::string(info_of(call.candidate).name) + " needs the buffers of all ranks: begin_layer() gives them", 0);
  Call actual = call;
  if (layer_in_place_) actual.candidate = CandidateId::p2p_two_shot_direct;
  const bool two_shot = actual.candidate == CandidateId::p2p_two_shot_direct;
  DirectArguments arguments = ranks_[rank]->direct[index_of(actual.candidate)];
  arguments.count = count;
  for (int r = 0; r < ranks(); ++r) {
    arguments.inputs[r] = layer_[r].input;
    arguments.outputs[r] = layer_[r].output;
  }
  launch_direct(arguments, two_shot, dtype, blocks_of(actual, count, dtype), threads_of(call), stream);
}

namespace {
int reduce_blocks(const AdmitFacts& facts, std::size_t bytes) {
  const std::size_t per_block = std::size_t{kReduceThreads} * 16;
  return static_cast<int>(std::clamp<std::size_t>((bytes + per_block - 1) / per_block, 1,
                                                  static_cast<std::size_t>(most_resident_blocks(facts, kReduceThreads))));
}
}  // namespace

// Peers' copy engines move it. Ranks that share a GPU get a small kernel in their place: inside one GPU the driver makes a
// kernel of the copy anyway, and in graphs of several ranks such copies can meet in one hardware queue, all of the first
// graph's ahead of the second's, so that rank 1's first stands behind rank 0's second, which waits for it. Seen on an
// H200, driver 580.159, 4 ranks, 50 calls a graph, 2026-12-01.
void Group::copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) const {
  if (ranks_per_gpu_ == 1) {
    ARTUNE_CHECK_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
  } else {
    launch_local_copy(to, from, bytes, stream);
  }
}

void Group::launch_push(int rank, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream) {
  const CopyWiring& wiring = ranks_[rank]->copies[index_of(CandidateId::ce_push)];
  const std::size_t bytes = count * element_bytes(dtype);
  launch_exchange_begin(wiring.signals, 1, stream);
  ChunkArguments chunk{input, output, count, 0, {}};
  for (int step = 1; step < ranks(); ++step) {
    const int peer = (rank + step) % ranks();
    copy(wiring.target[peer], input, bytes, stream);
    chunk.contribution[peer] = wiring.landing[peer];
  }
  const int blocks = reduce_blocks(facts(0), bytes);
  if (ranks_per_gpu_ == 1) {
    launch_exchange_reduce(wiring.signals, chunk, dtype, ExchangeStep::publish_reduce_finish, blocks, kReduceThreads, stream);
    return;
  }
  // Where ranks share a GPU one block waits, and the grid comes after: were the grids of all other ranks to wait here, the
  // kernels before the last rank's grid might never start, though their blocks would find room. Seen on an H200 with 4
  // ranks and grids of 65 blocks of 512 threads, in a soak; never with one waiting block, nor with grids of 8.
  launch_exchange_publish(wiring.signals, 0, stream);
  launch_exchange_await(wiring.signals, 0, stream);
  launch_exchange_reduce(wiring.signals, chunk, dtype, ExchangeStep::reduce_and_finish, blocks, kReduceThreads, stream);
}

void Group::launch_ring(int rank, const void* input, void* output, std::size_t count, DType dtype, cudaStream_t stream) {
  const std::size_t index = index_of(CandidateId::ce_ring);
  const CopyWiring& wiring = ranks_[rank]->copies[index];
  const std::size_t shard = layouts_[index].shard_bytes;
  const std::size_t bytes = count * element_bytes(dtype);
  const RingPieces pieces(bytes, ranks());
  const auto at = [&](const void* base, int piece) { return static_cast<const char*>(base) + pieces.first_byte(piece); };
  const auto blocks = [&](int piece) { return reduce_blocks(facts(0), pieces.bytes_of(piece)); };
  const int steps = ranks() - 1;

  launch_exchange_begin(wiring.signals, 2 * steps, stream);
  for (int step = 0; step < steps; ++step) {
    const int sent = rank - step - 1, summed = rank - step - 2;
    const void* from = step == 0 ? at(input, sent) : wiring.own;
    if (pieces.bytes_of(sent) > 0) copy(wiring.ring_next + shard * static_cast<std::size_t>(step), from, pieces.bytes_of(sent), stream);
    launch_exchange_publish(wiring.signals, step, stream);
    if (ranks_per_gpu_ > 1) launch_exchange_await(wiring.signals, step, stream);  // as in launch_push
    const bool complete = step + 1 == steps;
    const RingPiece piece{at(input, summed), wiring.ring_here + shard * static_cast<std::size_t>(step), wiring.own,
                          complete ? static_cast<char*>(output) + pieces.first_byte(summed) : nullptr, pieces.bytes_of(summed) / element_bytes(dtype)};
    launch_ring_add(wiring.signals, piece, dtype, step, blocks(summed), kReduceThreads, stream);
  }
  for (int step = 0; step < steps; ++step) {
    const int sent = rank - step, taken = rank - step - 1;
    const int place = steps + step;
    const void* from = step == 0 ? wiring.own : wiring.ring_here + shard * static_cast<std::size_t>(place - 1);
    if (pieces.bytes_of(sent) > 0) copy(wiring.ring_next + shard * static_cast<std::size_t>(place), from, pieces.bytes_of(sent), stream);
    launch_exchange_publish(wiring.signals, place, stream);
    if (ranks_per_gpu_ > 1) launch_exchange_await(wiring.signals, place, stream);
    const RingPiece piece{nullptr, wiring.ring_here + shard * static_cast<std::size_t>(place), nullptr,
                          static_cast<char*>(output) + pieces.first_byte(taken), pieces.bytes_of(taken) / element_bytes(dtype)};
    launch_ring_take(wiring.signals, piece, dtype, place, step + 1 == steps, blocks(taken), kReduceThreads, stream);
  }
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
  const CopyWiring& wiring = mine.copies[index];
  const ExchangeArguments& arguments = wiring.signals;
  const std::size_t staged = layouts_[index].data_bytes;
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
  const auto send = [&](int c) {
    const std::size_t at = static_cast<std::size_t>(c) * chunk_bytes;
    const std::size_t size = std::min(chunk_bytes, bytes - at);
    ARTUNE_CHECK_CUDA(cudaMemcpyAsync(wiring.own + at, static_cast<const char*>(input) + at, size, cudaMemcpyDeviceToHost, up));
    launch_exchange_publish(arguments, c, up);
    if (branches) ARTUNE_CHECK_CUDA(cudaEventRecord(mine.published[c], up));
  };
  // In one stream a rank copies either up or down. Half of the ranks are a chunk ahead with sending: while they send, the
  // others receive.
  const int ahead = branches ? chunks : rank % 2;
  int sent = 0;
  for (int c = 0; c < chunks; ++c) {
    for (; sent <= c + ahead && sent < chunks; ++sent) send(sent);
    const std::size_t at = static_cast<std::size_t>(c) * chunk_bytes;
    const std::size_t size = std::min(chunk_bytes, bytes - at);
    if (branches) ARTUNE_CHECK_CUDA(cudaStreamWaitEvent(down, mine.published[c], 0));
    launch_exchange_await(arguments, c, down);
    ChunkArguments chunk{static_cast<const char*>(input) + at, static_cast<char*>(output) + at, size / element_bytes(dtype),
                         static_cast<std::uint32_t>(c), {}};
    for (int step = 1; step < ranks(); ++step) {
      const int peer = (rank + step) % ranks();
      char* here = mine.slabs[index].data() + staged * static_cast<std::size_t>(step - 1) + at;
      const char* there = wiring.landing[peer] + at;
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
