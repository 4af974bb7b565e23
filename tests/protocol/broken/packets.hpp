// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The packet protocols with one thing wrong. Formats are the real ones but for one member; bodies are HostFamily's.
#pragma once

#include "broken/own_subject.hpp"
#include "protocol/one_shot_packets.cuh"
#include "protocol/two_shot_packets.cuh"

namespace artune::model {

// --- Formats

template <Form F>
struct LlOneSlot : Ll<F> {
  static LlCall call(const Control* control, std::uint64_t epoch) { return {Ll<F>::call(control, epoch).tag, 0}; }
};

/// Cleared memory shows tag 0, as the packets of call 0 do.
template <Form F>
struct LlTagZero : Ll<F> {
  static LlCall call(const Control*, std::uint64_t epoch) {
    return {static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch % kSlots)};
  }
  static bool clears_rest(const LlCall&) { return false; }
};

template <Form F>
struct LlNeverClears : Ll<F> {
  static bool clears_rest(const LlCall&) { return false; }
};

template <Form F>
struct LlOneWord : Ll<F> {
  static bool arrived(const Packet& raw, const LlCall& call) { return static_cast<std::uint32_t>(raw.low >> 32) == call.tag; }
};

template <Form F>
struct SentinelOneWord : Sentinel<F> {
  static bool arrived(const Quad& raw, const SentinelCall&) { return raw.word[0] != kSentinelWord; }
};

/// Empties the slot of the next call, where the peers' packets may be already.
template <Form F>
struct SentinelClearsAhead : Sentinel<F> {
  static SentinelCall call(const Control* control, std::uint64_t epoch) {
    SentinelCall call = Sentinel<F>::call(control, epoch);
    call.slot_before = (call.slot + 1) % kSentinelSlots;
    return call;
  }
};

/// The slot before is the next one, too.
template <Form F>
struct SentinelTwoSlots : Sentinel<F> {
  static SentinelCall call(const Control* control, std::uint64_t) {
    const Before before = load_before(control);
    return {before.turn, 1 - before.turn, before.units};
  }
  static Before after(const SentinelCall& call, std::uint64_t units) { return {units, 1 - call.slot}; }
};

/// The slot from a counter of 32 bits, which has no whole number of turns.
template <Form F>
struct SentinelThirtyTwoBits : Sentinel<F> {
  static SentinelCall call(const Control* control, std::uint64_t epoch) {
    const std::uint32_t slot = static_cast<std::uint32_t>(epoch) % kSentinelSlots;
    return {slot, (slot + 2) % kSentinelSlots, load_before(control).units};
  }
};

// --- Bodies

enum class PacketFault {
  none,
  clears_current_count,  ///< of the call at hand instead of the one before
  epoch_per_block,       ///< every block counts its own calls
  steps_without_ticket,  ///< block 0 steps the epoch whether or not the others have read it
  shared_areas,          ///< two-shot: results go where contributions go
  empty_returns_early,   ///< two-shot: whoever owns nothing is done after sending
};

/// N as on the GPU: a number of ranks, for which all peers are polled together, or 0.
template <template <Form> class Format, int N = 0>
void one_shot_packets(const Place& place, PacketFault fault) {
  using Wire = Format<Form::f32>;
  const OneShotArguments arguments = place.one_shot();
  const Lane& lane = place.lane;
  const std::uint64_t epoch =
      fault == PacketFault::epoch_per_block ? host::load(place.own_word(), host::relaxed) : place.entry.epoch;
  OneShotPackets<Format, Form::f32, N> body(arguments, lane);
  auto call = Wire::call(arguments.control, epoch);
  if constexpr (Wire::kClears) {
    if (fault == PacketFault::clears_current_count) call.units_before = body.input.units();
  }
  const std::uint32_t blocks = fault == PacketFault::steps_without_ticket ? 1 : lane.blocks;
  const bool steps = fault != PacketFault::steps_without_ticket || lane.block == 0;
  body.send(call);
  body.clear_before(call);
  EpochStep step;
  if (steps) step.start(arguments.control, blocks, place.entry.epoch);
  body.receive(call);
  if (!steps) return;
  if constexpr (Wire::kClears) {
    if (step.is_last_block(blocks)) store_before(arguments.control, Wire::after(call, body.input.units()));
  }
  step.finish(arguments.control, blocks, place.entry.epoch, arguments.bounds, arguments.rank);
  if (fault == PacketFault::epoch_per_block) host::store(place.own_word(), epoch + 1, host::relaxed);
}

template <template <Form> class Format, int N = 0>
void two_shot_packets(const Place& place, PacketFault fault) {
  using Wire = Format<Form::f32>;
  TwoShotArguments arguments = place.two_shot();
  if (fault == PacketFault::shared_areas) {
    for (int p = 0; p < arguments.ranks; ++p) {
      if (p != arguments.rank) arguments.gather[p].receive = arguments.scatter[p].receive;
    }
    for (int s = 0; s < arguments.sends; ++s) arguments.gather[s].send -= arguments.shard_capacity_bytes;
  }
  const Lane& lane = place.lane;
  const TwoShotPackets<Format, Form::f32, N> body(arguments, lane);
  const auto call = Wire::call(arguments.control, place.entry.epoch);
  body.scatter(call);
  body.clear_before(call);
  EpochStep step;
  step.start(arguments.control, lane.blocks, place.entry.epoch);
  if (fault != PacketFault::empty_returns_early || body.shards.size(arguments.rank) > 0) body.gather(call, body.reduce(call));
  if constexpr (Wire::kClears) {
    if (step.is_last_block(lane.blocks)) store_before(arguments.control, Wire::after(call, body.input.units()));
  }
  step.finish(arguments.control, lane.blocks, place.entry.epoch, arguments.bounds, arguments.rank);
}

}  // namespace artune::model
