// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "soak/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

namespace artune::soak {
namespace {

constexpr int kReplaysOfAGraph = 40;  // capturing a graph takes the host as long as a few replays
constexpr std::size_t kMostReplaysAtOnce = 5;
constexpr std::uint64_t kEagerPercent = 13;      // of the graph's calls: more than 10 % of all
constexpr std::uint32_t kCallsPerProgress = 16;  // a store to host memory now and then
constexpr double kGraceSeconds = 5;              // the kernels' own bound comes first
constexpr double kDrainSeconds = 3;

SumOrder order_of(const CandidateInfo& info, Form form) {
  switch (numerics_of(info, user_dtype(form), wire_dtype(form))) {
    case Numerics::wire_bf16_in_out:
      return SumOrder::ranks_out;
    case Numerics::hierarchical_fp32:
      return SumOrder::islands;
    case Numerics::ring:
      return SumOrder::ring;
    case Numerics::rank_order_fp32:
    case Numerics::wire_bf16_in:
    case Numerics::nccl:
      break;
  }
  return SumOrder::ranks;
}

/// A failed call leaves NaN, or what it found: no wrong sum by itself.
bool is_of_failed_call(const WrongRecord& record, Form form) {
  const bool wide = user_dtype(form) == DType::f32;
  return record.what == WrongRecord::element &&
         (record.got == (wide ? 0x7fffffffU : 0x7fffU) || record.got == (wide ? 0xffffffffU : 0xffffU));
}

}  // namespace

Runner::Runner(const SoakOptions& options, int ranks, Tally& tally, Watchdog& watchdog)
    : options_(options),
      ranks_(ranks),
      seed_(Dice(options.seed * 64 + static_cast<std::uint64_t>(ranks)).next()),
      tally_(tally),
      watchdog_(watchdog),
      host_(kLineBytes * 2 * static_cast<std::size_t>(ranks)),
      group_(make_group()) {
  for (int rank = 0; rank < ranks; ++rank) lanes_.push_back(std::make_unique<Lane>(group_->device(rank), options.max_bytes));
  source_.emplace(cells_of(options.filter, options.max_bytes,
                           {.unavailable = [this](CandidateId id) { return group_->unavailable(id); },
                            .lossy_served = lossy_wire_served,
                            .slab_bytes = [this](CandidateId id) { return group_->max_bytes(id); }}),
                  group_->facts(0), seed_);
  for (const CandidateInfo& info : menu()) {
    if (std::string why = group_->unavailable(info.id); admitted(info) && !why.empty()) tally_.unavailable[ranks][info.id] = why;
  }
  for (const Cell& cell : source_->cells())
    tally_.calls[{cell.candidate, cell.form}][ranks];  // a cell without calls shows as such
  for (int rank = 0; rank < ranks; ++rank) {           // loading a kernel while others wait could wait for them
    const DeviceGuard guard(lanes_[rank]->device());
    launch_step(step_of(rank, 0), most_blocks(), lanes_[rank]->stream(0));
    launch_next_replay(lanes_[rank]->replay(), lanes_[rank]->stream(0));
    launch_show(lanes_[rank]->record(), shown_record(rank), lanes_[rank]->stream(0));
    ARTUNE_CHECK_CUDA(cudaStreamSynchronize(lanes_[rank]->stream(0)));
  }
}

std::unique_ptr<Group> Runner::make_group() const {
  GroupOptions wanted;
  const int each = ranks_on_a_gpu(options_, ranks_);
  for (int rank = 0; rank < ranks_; ++rank) wanted.devices.push_back(options_.devices[static_cast<std::size_t>(rank / each)]);
  wanted.max_memory_bytes = options_.max_memory_bytes;
  wanted.timeout_s = options_.timeout_s;
  wanted.use_nccl = false;
  wanted.first_epoch = options_.first_epoch;
  for (const CandidateInfo& info : menu()) {
    if (!admitted(info)) continue;
    // Half of what comes: the longest messages take two launches.
    wanted.largest_message[static_cast<std::size_t>(info.id)] =
        std::max<std::size_t>(std::min(options_.max_bytes, largest_message(info)) / 2, 1);
  }
  return Group::create(std::move(wanted));
}

/// Graphs of random calls, each replayed a number of times in batches.
std::optional<Error> Runner::run(std::uint64_t calls, const std::function<bool()>& is_over) {
  std::uint64_t made = 0;
  while (made < calls && !is_over()) {
    const std::uint64_t in_graph =
        std::clamp<std::uint64_t>((calls - made) * 88 / 100, 1, static_cast<std::uint64_t>(options_.graph_calls));
    std::vector<DrawnCall> captured(in_graph);
    for (DrawnCall& call : captured) call = source_->next();
    capture(captured);
    for (int left = kReplaysOfAGraph; left > 0 && made < calls && !is_over();) {
      const auto replays = static_cast<int>(
          std::min<std::uint64_t>({static_cast<std::uint64_t>(left), source_->dice().between(1, kMostReplaysAtOnce),
                                   (calls - made + in_graph - 1) / in_graph}));
      left -= replays;
      if (auto error = batch(captured, replays)) return error;
      made = tally_.total(ranks_).all();
    }
  }
  return std::nullopt;
}

bool Runner::admitted(const CandidateInfo& info) const {
  return std::any_of(kForms.begin(), kForms.end(), [&](Form form) { return admits(options_.filter, info, form); });
}

// Few enough to leave room for the other ranks' steps on this GPU.
int Runner::most_blocks() const { return std::max(16, group_->facts(0).multiprocessors * 4 / group_->ranks_per_gpu()); }

WrongRecord* Runner::shown_record(int rank) const {
  return reinterpret_cast<WrongRecord*>(host_.data() + kLineBytes * 2 * static_cast<std::size_t>(rank));
}
std::uint32_t* Runner::progress_word(int rank) const {
  return reinterpret_cast<std::uint32_t*>(host_.data() + kLineBytes * (2 * static_cast<std::size_t>(rank) + 1));
}

void Runner::capture(const std::vector<DrawnCall>& calls) {
  watchdog_.beat();
  graphs_.reset();  // its memory serves the next
  graphs_ = std::make_unique<Graphs>();
  graphs_->capture(lanes_, [&] {
    for (const DrawnCall& call : calls) issue(call, 0);
    for (int rank = 0; rank < ranks_; ++rank) {
      finish(rank, 0);
      const DeviceGuard guard(lanes_[rank]->device());
      launch_next_replay(lanes_[rank]->replay(), lanes_[rank]->stream(0));
    }
    pending_[0].reset();
  });
  watchdog_.beat();
}

/// Checks what is pending on the stream.
Step Runner::step_of(int rank, int stream) const {
  Step step;
  step.rank = rank;
  step.ranks = ranks_;
  step.island_size = island_size_of(ranks_);
  step.replay = lanes_[rank]->replay();
  step.record = lanes_[rank]->record();
  if (!pending_[stream]) return step;
  const auto& [call, set] = *pending_[stream];
  const Cell& cell = cell_of(call);
  const std::size_t slab = group_->max_bytes(cell.candidate);
  step.check = {
      .output = lanes_[rank]->buffers(call, cell.form, rank, set).output,
      .count = static_cast<std::uint32_t>(call.count),
      .salt = salt_of(call),
      .call = call.number,
      .piece = static_cast<std::uint32_t>(std::min<std::size_t>(slab / element_bytes(user_dtype(cell.form)), 0xffffffffU)),
      .form = cell.form,
      .order = order_of(info_of(cell.candidate), cell.form)};
  return step;
}

/// One call of all ranks on their stream number `stream`, and before it the check of the last one there.
void Runner::issue(const DrawnCall& drawn, int stream) {
  watchdog_.beat();
  const Cell& cell = cell_of(drawn);
  const int set = stream * 2 + (pending_[stream] ? 1 - pending_[stream]->set % 2 : 0);
  const Call call{cell.candidate, drawn.geometry, cell.form == Form::f32_over_bf16};
  buffers_.clear();
  for (int rank = 0; rank < ranks_; ++rank) buffers_.push_back(lanes_[rank]->buffers(drawn, cell.form, rank, set));
  group_->begin_layer(call, buffers_);
  for (int rank = 0; rank < ranks_; ++rank) {
    const DeviceGuard guard(lanes_[rank]->device());
    Step step = step_of(rank, stream);
    step.fill = {.input = const_cast<void*>(buffers_[rank].input),
                 .output = buffers_[rank].output,
                 .count = static_cast<std::uint32_t>(drawn.count),
                 .salt = salt_of(drawn),
                 .form = cell.form};
    if (drawn.number % kCallsPerProgress == 0) step.progress = progress_word(rank);
    launch_step(step, most_blocks(), lanes_[rank]->stream(stream));
    group_->enqueue(rank, call, buffers_[rank].input, buffers_[rank].output, drawn.count, user_dtype(cell.form),
                    lanes_[rank]->stream(stream));
  }
  group_->end_layer(call);
  pending_[stream] = {drawn, set};
}

/// The check of the last call on a stream.
void Runner::finish(int rank, int stream) {
  if (!pending_[stream]) return;
  const DeviceGuard guard(lanes_[rank]->device());
  launch_step(step_of(rank, stream), most_blocks(), lanes_[rank]->stream(stream));
}

std::optional<Error> Runner::batch(const std::vector<DrawnCall>& captured, int replays) {
  for (int i = 0; i < replays; ++i) {
    graphs_->launch(lanes_);
    watchdog_.beat();
  }
  // Either way the eager calls come after the replays: because the host waited, or because the streams do.
  if (source_->dice().one_in(2)) {
    if (auto error = wait_and_look(captured, {})) return error;
  }
  for (const auto& lane : lanes_) lane->order(1, 0);
  std::vector<DrawnCall> eager(
      std::max<std::size_t>(captured.size() * static_cast<std::size_t>(replays) * kEagerPercent / 100, 1));
  for (DrawnCall& call : eager) {
    call = source_->next();
    issue(call, call.stream);
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    for (int rank = 0; rank < ranks_; ++rank) finish(rank, stream);
    pending_[stream].reset();
  }
  for (const auto& lane : lanes_) lane->order(0, 1);
  if (auto error = wait_and_look(captured, eager)) return error;
  for (const DrawnCall& call : captured) calls_of(call).graph += static_cast<std::uint64_t>(replays);
  for (const DrawnCall& call : eager) ++calls_of(call).eager;
  return std::nullopt;
}

bool Runner::all_ended() const {
  for (const auto& lane : lanes_) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const cudaError_t status = cudaStreamQuery(lane->stream(stream));
      if (status == cudaErrorNotReady) return false;
      check_cuda(status, "cudaStreamQuery");
    }
  }
  return true;
}

/// Nothing, or why it didn't end.
std::optional<std::string> Runner::wait() {
  std::vector<std::uint32_t> seen(static_cast<std::size_t>(ranks_));
  Clock::time_point moved = Clock::now();
  while (!all_ended()) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t now = std::atomic_ref(*progress_word(rank)).load(std::memory_order_relaxed);
      if (std::exchange(seen[rank], now) == now) continue;
      moved = Clock::now();
      watchdog_.beat();
    }
    if (auto failure = group_->failure()) return failure;
    if (since(moved) > options_.timeout_s + kGraceSeconds) return fmt::format("no call ended for {:.0f} s", since(moved));
    std::this_thread::yield();
  }
  watchdog_.beat();
  return group_->failure();
}

std::optional<Error> Runner::wait_and_look(const std::vector<DrawnCall>& captured, const std::vector<DrawnCall>& eager) {
  for (int rank = 0; rank < ranks_; ++rank) {
    const DeviceGuard guard(lanes_[rank]->device());
    launch_show(lanes_[rank]->record(), shown_record(rank), lanes_[rank]->stream(0));
  }
  const std::optional<std::string> hung = wait();
  bool ended = !hung;
  if (hung) {
    group_->abort();
    for (const Clock::time_point start = Clock::now(); !ended && since(start) < kDrainSeconds; std::this_thread::yield())
      ended = all_ended();
  }
  std::optional<Error> error;
  for (int rank = 0; ended && rank < ranks_; ++rank) {
    const WrongRecord& record = *shown_record(rank);
    if (record.count == 0) continue;
    const Wrong wrong = describe(record, rank, captured, eager);
    if (hung && is_of_failed_call(record, wrong.form)) continue;
    options_.say(wrong_text(wrong));
    if (!error)
      error =
          Error{Reason::wrong_sum, fmt::format("{} {} on {} ranks gave a wrong sum (seed {}, call {}, rank {})", wrong.candidate,
                                               form_name(wrong.form), ranks_, options_.seed, record.call, rank)};
  }
  if (hung)
    error = Error{Reason::hang, fmt::format("{} ranks, seed {}: {}{}", ranks_, options_.seed, *hung,
                                            ended ? "" : "; not even an abort ends it")};
  return error;
}

Wrong Runner::describe(const WrongRecord& record, int rank, const std::vector<DrawnCall>& captured,
                       const std::vector<DrawnCall>& eager) const {
  Wrong wrong;
  wrong.ranks = ranks_;
  wrong.rank = rank;
  wrong.replay = record.replay;
  wrong.index = record.index;
  wrong.got = record.got;
  wrong.expected = record.expected;
  wrong.count = record.count;
  wrong.seed = options_.seed;
  wrong.what = record.what == WrongRecord::guard_before  ? Wrong::What::guard_before
               : record.what == WrongRecord::guard_after ? Wrong::What::guard_after
                                                         : Wrong::What::element;
  const auto is_it = [&](const DrawnCall& call) { return call.number == record.call; };
  auto found = std::find_if(captured.begin(), captured.end(), is_it);
  wrong.graph = found != captured.end();
  if (!wrong.graph) found = std::find_if(eager.begin(), eager.end(), is_it);
  if (!wrong.graph && found == eager.end())
    throw Failure("look at what was wrong", "call " + std::to_string(record.call) + " was never made", 0);
  wrong.call = *found;
  wrong.candidate = info_of(cell_of(*found).candidate).name;
  wrong.form = cell_of(*found).form;
  return wrong;
}

}  // namespace artune::soak
