// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "protocol/host_family.hpp"

#include <algorithm>
#include <cstring>

#include "protocol/direct.cuh"
#include "protocol/exchange.cuh"
#include "protocol/hierarchical.cuh"
#include "protocol/one_shot_packets.cuh"
#include "protocol/two_shot_packets.cuh"

namespace artune {
namespace {

Control* control_in(HostMemory& memory) { return reinterpret_cast<Control*>(memory.data()); }

template <template <Form> class Format, Form F>
void one_shot_packets(const OneShotArguments& arguments, const Lane& lane, const Entry& entry) {
  using Wire = Format<F>;
  OneShotPackets<Format, F, 0> body(arguments, lane);
  const auto call = Wire::call(arguments.control, entry.epoch);
  body.send(call);
  body.clear_before(call);
  EpochStep step;
  step.start(arguments.control, lane.blocks, entry.epoch);
  body.receive(call);
  if constexpr (Wire::kClears) {
    if (step.is_last_block(lane.blocks)) store_before(arguments.control, Wire::after(call, body.input.units()));
  }
  step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <template <Form> class Format, Form F>
void two_shot_packets(const TwoShotArguments& arguments, const Lane& lane, const Entry& entry) {
  using Wire = Format<F>;
  const TwoShotPackets<Format, F, 0> body(arguments, lane);
  const auto call = Wire::call(arguments.control, entry.epoch);
  body.scatter(call);
  body.clear_before(call);
  EpochStep step;
  step.start(arguments.control, lane.blocks, entry.epoch);
  body.gather(call, body.reduce(call));
  if constexpr (Wire::kClears) {
    if (step.is_last_block(lane.blocks)) store_before(arguments.control, Wire::after(call, body.input.units()));
  }
  step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <Form F>
void one_shot_flag(const OneShotArguments& arguments, const Lane& lane, const Entry& entry) {
  EpochStep step;
  OneShotFlag<F>(arguments, lane, entry.epoch).template run<0>([&] { step.start(arguments.control, lane.blocks, entry.epoch); });
  step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <Form F>
void two_shot_flag(const TwoShotArguments& arguments, const Lane& lane, const Entry& entry) {
  two_shot_scatter<F>(arguments, lane, entry.epoch);
  EpochStep step;
  step.start(arguments.control, lane.blocks, entry.epoch);
  bool alive = two_shot_wait_scatter(arguments, lane, entry.epoch);
  two_shot_reduce<F, 0>(arguments, lane, entry.epoch, alive);
  alive = alive && two_shot_wait_gather(arguments, lane, entry.epoch);
  two_shot_gather<F>(arguments, lane, entry.epoch, alive);
  step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <Form F>
void direct(const DirectArguments& arguments, bool two_shot, const Lane& lane, const Entry& entry) {
  bool alive = direct_meet(arguments, arguments.start, lane, entry.epoch);
  EpochStep step;
  step.start(arguments.control, lane.blocks, entry.epoch);
  if (two_shot) {
    direct_two_shot<F, 0>(arguments, lane, alive);
  } else {
    direct_one_shot<F, 0>(arguments, lane, alive);
  }
  if (alive && !direct_meet(arguments, arguments.end, lane, entry.epoch)) direct_spoil<F>(arguments, lane);
  step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <Form F>
void islands(const HierarchicalArguments& arguments, const Lane& lane, const Entry& entry) {
  island_scatter<F>(arguments, lane, entry.epoch);
  EpochStep step;
  step.start(arguments.control, lane.blocks, entry.epoch);
  bool alive = island_wait_scatter(arguments, lane, entry.epoch);
  island_reduce<F>(arguments, lane, entry.epoch, alive);
  alive = alive && island_wait_across(arguments, lane, entry.epoch);
  island_finish<F>(arguments, lane, entry.epoch, alive);
  alive = alive && island_wait_gather(arguments, lane, entry.epoch);
  island_gather<F>(arguments, lane, entry.epoch, alive);
  step.finish(arguments.control, lane.blocks, entry.epoch, arguments.bounds, arguments.rank);
}

template <typename Arguments>
Arguments with_call(const Arguments& wired, const HostCall& call, int rank) {
  Arguments arguments = wired;
  arguments.input = call.inputs[rank];
  arguments.output = call.outputs[rank];
  arguments.count = call.count;
  return arguments;
}

}  // namespace

HostFamily::HostFamily(CandidateId id, int ranks, std::size_t max_bytes, const std::function<Bounds(int rank)>& bounds)
    : id_(id), ranks_(ranks), max_bytes_((std::max<std::size_t>(max_bytes, 16) + 15) / 16 * 16),
      layout_(slab_layout(id, max_bytes_, ranks)),
      host_(layout_.host_bytes, info_of(id).protocol == Protocol::sentinel ? 0xff : 0) {
  const CandidateInfo& info = info_of(id);
  const unsigned char fill = info.protocol == Protocol::sentinel ? 0xff : 0;
  for (int rank = 0; rank < ranks; ++rank) {
    controls_.emplace_back(sizeof(Control), 0);
    device_.emplace_back(layout_.device_bytes, fill);
  }
  const Slabs slabs{.id = id, .layout = layout_, .ranks = ranks,
                    .device = [&](int rank) { return device_[rank].data(); }, .host = host_.data(),
                    .bounds = [&](int rank) {
                      Bounds whole = bounds(rank);
                      whole.control = control_in(controls_[rank]);
                      return whole;
                    }};
  for (int rank = 0; rank < ranks; ++rank) bounds_.push_back(slabs.bounds(rank));
  for (int rank = 0; rank < ranks; ++rank) {
    switch (info.algorithm) {
      case Algorithm::library: break;
      case Algorithm::one_shot:
      case Algorithm::two_shot:
        if (info.staging == Staging::none) {
          direct_.push_back(wire_direct(slabs, rank));
        } else if (info.algorithm == Algorithm::one_shot) {
          one_shot_.push_back(wire_one_shot(slabs, rank));
        } else {
          two_shot_.push_back(wire_two_shot(slabs, rank));
        }
        break;
      case Algorithm::hierarchical: hierarchical_.push_back(wire_hierarchical(slabs, rank)); break;
      case Algorithm::copies:
      case Algorithm::ring: copies_.push_back(wire_copies(slabs, rank)); break;
    }
  }
}

int HostFamily::most_blocks() const {
  const Algorithm algorithm = info_of(id_).algorithm;
  return algorithm == Algorithm::copies || algorithm == Algorithm::ring ? 1 : kMostBlocks;
}

void HostFamily::start_at(std::uint64_t epoch) {
  for (HostMemory& control : controls_) {
    control_in(control)->epoch = epoch;
    if (info_of(id_).one_kernel()) control_in(control)->ticket = first_ticket(epoch);
  }
  if (info_of(id_).protocol != Protocol::flag) return;
  // Flags as the calls before would have left them; what lies in the data's place is of no account.
  for (HostMemory* memory : shared_memory()) {
    if (memory != &host_ && (memory < device_.data() || memory >= device_.data() + device_.size())) continue;
    for (std::size_t at = 0; at < memory->bytes(); at += sizeof epoch) std::memcpy(memory->data() + at, &epoch, sizeof epoch);
  }
}

std::vector<HostMemory*> HostFamily::shared_memory() {
  std::vector<HostMemory*> all{&host_};
  for (HostMemory& memory : controls_) all.push_back(&memory);
  for (HostMemory& memory : device_) all.push_back(&memory);
  return all;
}

void HostFamily::run(const HostCall& call, int rank, int block) {
  switch (call.form) {
    case Form::f32: return run_as<Form::f32>(call, rank, block);
    case Form::f16: return run_as<Form::f16>(call, rank, block);
    case Form::bf16: return run_as<Form::bf16>(call, rank, block);
    case Form::f32_over_bf16: return run_as<Form::f32_over_bf16>(call, rank, block);
  }
}

template <Form F>
void HostFamily::run_as(const HostCall& call, int rank, int block) {
  const CandidateInfo& info = info_of(id_);
  const Lane lane{0, 1, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(call.blocks)};
  const Entry entry = load_entry(control_in(controls_[rank]));
  if (info.one_kernel() ? !may_run(entry) : entry.error != 0) {
    note_overlap(entry, bounds_[rank], rank, lane.block);
    return fill_with_nan<F>(call.outputs[rank], call.count, lane);
  }
  switch (info.algorithm) {
    case Algorithm::library: return;
    case Algorithm::one_shot:
    case Algorithm::two_shot:
      if (info.staging == Staging::none) {
        DirectArguments arguments = direct_[rank];
        arguments.count = call.count;
        for (int r = 0; r < ranks_; ++r) arguments.inputs[r] = call.inputs[r], arguments.outputs[r] = call.outputs[r];
        return direct<F>(arguments, info.algorithm == Algorithm::two_shot, lane, entry);
      }
      if (info.algorithm == Algorithm::one_shot) {
        const OneShotArguments arguments = with_call(one_shot_[rank], call, rank);
        if (info.protocol == Protocol::flag) return one_shot_flag<F>(arguments, lane, entry);
        if (info.protocol == Protocol::ll) return one_shot_packets<Ll, F>(arguments, lane, entry);
        return one_shot_packets<Sentinel, F>(arguments, lane, entry);
      } else {
        const TwoShotArguments arguments = with_call(two_shot_[rank], call, rank);
        if (info.protocol == Protocol::flag) return two_shot_flag<F>(arguments, lane, entry);
        if (info.protocol == Protocol::ll) return two_shot_packets<Ll, F>(arguments, lane, entry);
        return two_shot_packets<Sentinel, F>(arguments, lane, entry);
      }
    case Algorithm::hierarchical: return islands<F>(with_call(hierarchical_[rank], call, rank), lane, entry);
    case Algorithm::copies: return info.path == Path::host ? run_staged<F>(call, rank) : run_push<F>(call, rank);
    case Algorithm::ring: return run_ring<F>(call, rank);
  }
}

/// ce/push, the copy engine being a copy by this thread.
template <Form F>
void HostFamily::run_push(const HostCall& call, int rank) {
  const CopyWiring& wiring = copies_[rank];
  const ExchangeArguments& signals = wiring.signals;
  const Lane lane{0, 1, 0, 1};
  const std::uint64_t epoch = load_entry(signals.bounds.control).epoch;
  bool alive = wait_free(signals, lane, epoch);
  ChunkArguments chunk{call.inputs[rank], call.outputs[rank], call.count, 0, {}};
  for (int p = 0; p < ranks_; ++p) {
    if (p == rank) continue;
    if (alive) host::copy_to(wiring.target[p], call.inputs[rank], call.count * kUserBytes<F>);
    chunk.contribution[p] = wiring.landing[p];
  }
  if (alive) tell_arrived(signals, lane, epoch, 0);
  alive = alive && wait_arrived(signals, lane, epoch, 0);
  reduce_chunk<F>(signals, chunk, lane, alive);
  if (!alive) return;
  tell_free(signals, lane, epoch);
  step_epoch(signals.bounds.control, epoch);
}

/// host/copy-engine: each rank copies its chunks into its own staging, peers take them from there.
template <Form F>
void HostFamily::run_staged(const HostCall& call, int rank) {
  const CopyWiring& wiring = copies_[rank];
  const ExchangeArguments& signals = wiring.signals;
  const Lane lane{0, 1, 0, 1};
  const std::uint64_t epoch = load_entry(signals.bounds.control).epoch;
  const std::size_t bytes = call.count * kUserBytes<F>;
  const std::size_t chunk_bytes = std::max({call.chunk_bytes / 16 * 16, (bytes / kMostChunks + 15) / 16 * 16 + 16, std::size_t{16}});
  const char* input = static_cast<const char*>(call.inputs[rank]);
  char* output = static_cast<char*>(call.outputs[rank]);
  bool alive = wait_free(signals, lane, epoch);
  std::uint32_t index = 0;
  for (std::size_t at = 0; at < bytes && alive; at += chunk_bytes, ++index) {
    host::copy_to(wiring.own + at, input + at, std::min(chunk_bytes, bytes - at));
    tell_arrived(signals, lane, epoch, index);
  }
  index = 0;
  for (std::size_t at = 0; at < bytes; at += chunk_bytes, ++index) {
    ChunkArguments chunk{input + at, output + at, std::min(chunk_bytes, bytes - at) / kUserBytes<F>, index, {}};
    for (int p = 0; p < ranks_; ++p) chunk.contribution[p] = wiring.landing[p] == nullptr ? nullptr : wiring.landing[p] + at;
    alive = alive && wait_arrived(signals, lane, epoch, index);
    reduce_chunk<F>(signals, chunk, lane, alive);
  }
  if (!alive) return;
  tell_free(signals, lane, epoch);
  step_epoch(signals.bounds.control, epoch);
}

/// ce/ring, in the steps of Group::launch_ring.
template <Form F>
void HostFamily::run_ring(const HostCall& call, int rank) {
  const CopyWiring& wiring = copies_[rank];
  const ExchangeArguments& signals = wiring.signals;
  const Lane lane{0, 1, 0, 1};
  const std::uint64_t epoch = load_entry(signals.bounds.control).epoch;
  const std::size_t bytes = call.count * kUserBytes<F>;
  const RingPieces pieces(bytes, ranks_);
  const char* input = static_cast<const char*>(call.inputs[rank]);
  char* output = static_cast<char*>(call.outputs[rank]);
  const int steps = ranks_ - 1;
  const auto place = [&](char* base, int step) { return base + layout_.shard_bytes * static_cast<std::size_t>(step); };

  bool alive = wait_free(signals, lane, epoch);
  for (int step = 0; step < steps; ++step) {
    const int sent = rank - step - 1, summed = rank - step - 2;
    if (alive) {
      host::copy_to(place(wiring.ring_next, step), step == 0 ? input + pieces.first_byte(sent) : wiring.own, pieces.bytes_of(sent));
      tell_arrived(signals, lane, epoch, static_cast<std::uint32_t>(step));
    }
    alive = alive && wait_arrived(signals, lane, epoch, static_cast<std::uint32_t>(step));
    ring_add<F>({input + pieces.first_byte(summed), place(wiring.ring_here, step), wiring.own, step + 1 == steps ? output + pieces.first_byte(summed) : nullptr,
                 pieces.bytes_of(summed) / kUserBytes<F>},
                lane, alive);
  }
  for (int step = 0; step < steps; ++step) {
    const int sent = rank - step, taken = rank - step - 1, at = steps + step;
    if (alive) {
      host::copy_to(place(wiring.ring_next, at), step == 0 ? wiring.own : place(wiring.ring_here, at - 1), pieces.bytes_of(sent));
      tell_arrived(signals, lane, epoch, static_cast<std::uint32_t>(at));
    }
    alive = alive && wait_arrived(signals, lane, epoch, static_cast<std::uint32_t>(at));
    ring_take<F>({nullptr, place(wiring.ring_here, at), nullptr, output + pieces.first_byte(taken), pieces.bytes_of(taken) / kUserBytes<F>}, lane, alive);
  }
  if (!alive) return;
  tell_free(signals, lane, epoch);
  step_epoch(signals.bounds.control, epoch);
}

}  // namespace artune
