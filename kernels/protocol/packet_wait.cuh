// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Polling packets until they show that they have arrived. Bounded, as every wait (wait.cuh).
#pragma once

#include "protocol/lane.cuh"
#include "protocol/wait.cuh"

namespace artune {

/// `Wire` is a format (ll.cuh, sentinel.cuh). False: failed, what `raw` holds means nothing.
template <typename Wire>
struct PacketWait {
  using Call = typename Wire::Call;
  using Raw = typename Wire::Raw;

  static ARTUNE_BOTH bool poll(const char* from, const Call& call, const Bounds& bounds, const Lane& lane, int rank, int peer, Raw& raw) {
    const char* const place[1] = {from};
    Raw raws[1] = {};
    const bool alive = poll_all(place, [&](int) { return peer; }, rank, call, bounds, lane, raws);
    raw = raws[0];
    return alive;
  }

  /// One packet of each of the places, `peer_at(i)` being whose it is: in rounds, so that the round trips of a round overlap.
  /// A look at one peer after the other would cost a round trip for each that is late.
  template <typename PeerAt, int Places>
  static ARTUNE_BOTH bool poll_all(const char* const (&from)[Places], const PeerAt& peer_at, int rank, const Call& call, const Bounds& bounds,
                                   const Lane& lane, Raw (&raws)[Places]) {
    unsigned missing = (1U << Places) - 1;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (int poll = 0; poll < kFreePolls; ++poll) {
      if (look(from, call, raws, missing)) return true;
    }
    Patience patience;
    while (!look(from, call, raws, missing)) {
      std::uint64_t seen = 0;
      int late = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int i = 0; i < Places; ++i) {
        if ((missing & 1U << i) != 0) late = i, seen = Wire::seen(raws[i]);
      }
      if (give_up(patience, bounds, rank, peer_at(late), lane.block, Wire::expected(call), seen)) return false;
    }
    return true;
  }

 private:
  /// One round; whether nothing is missing any more.
  template <int Places>
  static ARTUNE_BOTH bool look(const char* const (&from)[Places], const Call& call, Raw (&raws)[Places], unsigned& missing) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int i = 0; i < Places; ++i) {
      if (Places == 1 || (missing & 1U << i) != 0) raws[i] = Wire::load(from[i]);
    }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (int i = 0; i < Places; ++i) {
      if ((Places == 1 || (missing & 1U << i) != 0) && Wire::arrived(raws[i], call)) missing &= ~(1U << i);
    }
    return missing == 0;
  }
};

}  // namespace artune
