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
    Patience patience;
    for (raw = Wire::load(from); !Wire::arrived(raw, call); raw = Wire::load(from)) {
      if (give_up(patience, bounds, rank, peer, lane.block, Wire::expected(call), Wire::seen(raw))) return false;
    }
    return true;
  }

  /// One packet of every peer, `from(p)` being its place: in rounds, so that the round trips of a round overlap. A look at
  /// one peer after the other would cost a round trip for each that is late.
  template <typename From, int N>
  static ARTUNE_BOTH bool poll_all(const From& from, int rank, const Call& call, const Bounds& bounds, const Lane& lane, Raw (&raws)[N]) {
    Patience patience;
    unsigned missing = ((1U << N) - 1) & ~(1U << rank);
    while (true) {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int p = 0; p < N; ++p) {
        if ((missing & 1U << p) != 0) raws[p] = Wire::load(from(p));
      }
      std::uint64_t seen = 0;
      int late = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (int p = 0; p < N; ++p) {
        if ((missing & 1U << p) == 0) continue;
        if (Wire::arrived(raws[p], call)) {
          missing &= ~(1U << p);
        } else {
          late = p;
          seen = Wire::seen(raws[p]);
        }
      }
      if (missing == 0) return true;
      if (give_up(patience, bounds, rank, late, lane.block, Wire::expected(call), seen)) return false;
    }
  }
};

}  // namespace artune
