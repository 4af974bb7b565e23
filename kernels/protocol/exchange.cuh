// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Signals between ranks whose payload is moved by copy engines (ce/push, host/copy-engine).
//
// Protocol. A copy's destination is fixed when a graph is captured, so there are no alternating slots; two signals per
// call take their place. Every rank owns a board of flags that it alone writes for each reader:
//   free[r -> p]          epoch + 1: "rank r has consumed what p sent in call `epoch`; p may overwrite it"
//   arrived[r -> p][c]    epoch + 1: "chunk c of r's contribution to call `epoch` lies where p reads it"
// Call `epoch` of rank r: wait for free[p -> r] == epoch from every peer; the copy engine moves the bytes; a kernel later
// in the same stream stores arrived (stream order: the copy has ended, its bytes are at the destination); wait for the
// peers' arrived; reduce; the last block to finish reading stores free and advances the epoch.
// The first call passes the free wait because cleared memory shows 0 == epoch.
//
// Reuse. r overwrites p's receive area only after free[p -> r] of the call before, which p stores after its last read.
// A flag steps by one per call and its reader waits for every step, so it is never more than one step ahead.
//
// ce/ring runs over the same signals with neighbours only (a null flag is nobody's): pieces of the message travel N - 1
// steps to be summed on the way (RingPiece) and N - 1 more to be handed out, each step into a place of its own.
//
// What would break this: storing arrived from a stream that isn't ordered after the copy; advancing the epoch before
// the free flags are out; a second communicator on the same board.
#pragma once

#include "protocol/elements.cuh"
#include "protocol/lane.cuh"
#include "protocol/wait.cuh"

namespace artune {

/// Boards of all ranks as one rank sees them. Flags are 64-bit words, kFlagStrideBytes apart.
struct ExchangeArguments {
  std::int32_t rank, ranks;
  char* free_out[kMaxRanks];            ///< where this rank stores free for peer p
  const char* free_in[kMaxRanks];       ///< where peer p's free for this rank shows
  char* arrived_out[kMaxRanks];         ///< base of the chunk flags of this rank for peer p
  const char* arrived_in[kMaxRanks];    ///< base of peer p's chunk flags for this rank
  Bounds bounds;
};

/// The pieces of a message that go round a ring, as Shards counts: piece i is summed on the way from rank i + 1 round to
/// rank i. Numbers may be any integers, they count modulo the ranks.
struct RingPieces {
  RingPieces(std::size_t bytes_, int ranks_) : bytes(bytes_), ranks(ranks_), shards((bytes_ + 15) / 16, ranks_) {}

  int piece(int number) const { return ((number % ranks) + ranks) % ranks; }
  std::size_t first_byte(int number) const { return clamp(shards.begin(piece(number))); }
  std::size_t bytes_of(int number) const {
    return clamp(shards.begin(piece(number)) + shards.size(piece(number))) - first_byte(number);
  }

 private:
  std::size_t clamp(std::uint64_t unit) const { return unit * 16 < bytes ? static_cast<std::size_t>(unit * 16) : bytes; }

  std::size_t bytes;
  int ranks;
  Shards shards;
};

/// One piece of a ring step: `count` elements.
struct RingPiece {
  const void* input;      ///< this rank's elements of the piece
  const void* arrived;    ///< what the neighbour sent: a partial sum, or the result
  void* sum;              ///< where the new partial sum goes, for the next step's copy
  void* output;           ///< the piece in the output; null while the sum isn't complete
  std::uint64_t count;
};

/// One chunk to reduce. `contribution[p]`: where peer p's elements lie; [rank] unused, the input is taken.
struct ChunkArguments {
  const void* input;
  void* output;
  std::uint64_t count;
  std::uint32_t chunk;                  ///< index of the chunk's arrived flag
  const char* contribution[kMaxRanks];
};

ARTUNE_BOTH std::uint64_t* flag_at(char* base, std::uint32_t index) {
  return reinterpret_cast<std::uint64_t*>(base + index * kFlagStrideBytes);
}
ARTUNE_BOTH const std::uint64_t* flag_at(const char* base, std::uint32_t index) {
  return reinterpret_cast<const std::uint64_t*>(base + index * kFlagStrideBytes);
}

/// Lane p waits until peer p may be overwritten. False: failed.
ARTUNE_BOTH bool wait_free(const ExchangeArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  bool alive = true;
  for (std::uint32_t p = lane.thread; p < static_cast<std::uint32_t>(arguments.ranks); p += lane.threads) {
    if (static_cast<int>(p) == arguments.rank || arguments.free_in[p] == nullptr || !alive) continue;
    alive = wait_flag(flag_at(arguments.free_in[p], 0), epoch, arguments.bounds, arguments.rank, static_cast<int>(p), lane.block);
  }
  return alive;
}

/// Lane p tells peer p that chunk `chunk` is there.
ARTUNE_BOTH void tell_arrived(const ExchangeArguments& arguments, const Lane& lane, std::uint64_t epoch, std::uint32_t chunk) {
  for (std::uint32_t p = lane.thread; p < static_cast<std::uint32_t>(arguments.ranks); p += lane.threads) {
    if (static_cast<int>(p) == arguments.rank || arguments.arrived_out[p] == nullptr) continue;
    store_release(flag_at(arguments.arrived_out[p], chunk), epoch + 1);
  }
}

/// Lane p waits for chunk `chunk` of peer p. False: failed.
ARTUNE_BOTH bool wait_arrived(const ExchangeArguments& arguments, const Lane& lane, std::uint64_t epoch, std::uint32_t chunk) {
  bool alive = true;
  for (std::uint32_t p = lane.thread; p < static_cast<std::uint32_t>(arguments.ranks); p += lane.threads) {
    if (static_cast<int>(p) == arguments.rank || arguments.arrived_in[p] == nullptr || !alive) continue;
    alive = wait_flag(flag_at(arguments.arrived_in[p], chunk), epoch + 1, arguments.bounds, arguments.rank, static_cast<int>(p), lane.block);
  }
  return alive;
}

/// Tells every peer that its contribution has been consumed. By one block, after all blocks have read.
ARTUNE_BOTH void tell_free(const ExchangeArguments& arguments, const Lane& lane, std::uint64_t epoch) {
  for (std::uint32_t p = lane.thread; p < static_cast<std::uint32_t>(arguments.ranks); p += lane.threads) {
    if (static_cast<int>(p) == arguments.rank || arguments.free_out[p] == nullptr) continue;
    store_release(flag_at(arguments.free_out[p], 0), epoch + 1);
  }
}

/// Sums a chunk in rank order. Not alive: NaN.
template <Form F>
ARTUNE_BOTH void reduce_chunk(const ExchangeArguments& arguments, const ChunkArguments& chunk, const Lane& lane, bool alive) {
  const UserBuffer<F, 4> input(chunk.input, chunk.count);
  const UserBuffer<F, 4> output(chunk.output, chunk.count);
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
    if (!alive) {
      output.store_nan(unit);
      continue;
    }
    Sum<F, 4> sum;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int p = 0; p < kMaxRanks; ++p) {
      if (p >= arguments.ranks) break;
      std::uint32_t words[4];
      if (p == arguments.rank) {
        input.load(unit, words);
      } else {
        UserBuffer<F, 4>(chunk.contribution[p], chunk.count).load(unit, words);
      }
      sum.add(words);
    }
    output.store(unit, sum);
  }
}

/// Numerics class ring: a piece's sum goes round from the rank after its owner's, rounded to the dtype at every step; all
/// ranks get the owner's copy. Not alive: NaN.
template <Form F>
ARTUNE_BOTH void ring_add(const RingPiece& piece, const Lane& lane, bool alive) {
  const UserBuffer<F, 4> input(piece.input, piece.count), arrived(piece.arrived, piece.count), sum_to(piece.sum, piece.count);
  const UserBuffer<F, 4> output(piece.output, piece.count);
  for (std::uint64_t unit = lane.first(); unit < input.units(); unit += lane.stride()) {
    if (!alive) {
      if (piece.output != nullptr) output.store_nan(unit);
      continue;
    }
    std::uint32_t words[4];
    Sum<F, 4> sum;
    arrived.load(unit, words);
    sum.add(words);
    input.load(unit, words);
    sum.add(words);
    sum.round_to(words);
    sum_to.store(unit, words);
    if (piece.output != nullptr) output.store(unit, words);
  }
}

template <Form F>
ARTUNE_BOTH void ring_take(const RingPiece& piece, const Lane& lane, bool alive) {
  const UserBuffer<F, 4> arrived(piece.arrived, piece.count), output(piece.output, piece.count);
  for (std::uint64_t unit = lane.first(); unit < output.units(); unit += lane.stride()) {
    if (!alive) {
      output.store_nan(unit);
      continue;
    }
    std::uint32_t words[4];
    arrived.load(unit, words);
    output.store(unit, words);
  }
}

}  // namespace artune
