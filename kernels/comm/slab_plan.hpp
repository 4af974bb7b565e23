// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory each protocol family gets: pure arithmetic. A family's `max_bytes` is the largest message of one
// launch; longer ones are several launches. Families never share memory.
#pragma once

#include <array>
#include <cstddef>

#include "paths/menu.hpp"

namespace artune {

inline constexpr std::size_t kMenuSize = 7;
inline constexpr std::size_t kDefaultMaxMemoryBytes = std::size_t{64} << 20;

/// Indexed by CandidateId. 0 = the family gets no memory and can't be used.
using BytesPerCandidate = std::array<std::size_t, kMenuSize>;

struct SlabRequest {
  int ranks = 2;
  int ranks_per_gpu = 1;
  std::size_t max_memory_bytes = kDefaultMaxMemoryBytes;  ///< of device memory, per GPU, over all families and ranks on it
  BytesPerCandidate largest_message{};                    ///< what will be sent to each family; 0 = nothing
};

/// max_bytes of each family: a power of two (at least 4 KiB), as large as the request needs and the cap allows.
/// All zero when even the smallest slabs don't fit.
BytesPerCandidate plan_slabs(const SlabRequest& request);

/// Device memory that `max_bytes` of one rank's family takes.
std::size_t device_bytes(CandidateId id, std::size_t max_bytes, int ranks);
/// Pinned host memory that `max_bytes` of one whole group's family takes.
std::size_t host_bytes(CandidateId id, std::size_t max_bytes, int ranks);

}  // namespace artune
