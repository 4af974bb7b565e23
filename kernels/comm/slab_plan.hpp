// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory each protocol family gets and how it is laid out: pure arithmetic. A family's `max_bytes` is the largest
// message of one launch; longer ones are several launches. Families never share memory.
#pragma once

#include <array>
#include <cstddef>

#include "paths/menu.hpp"

namespace artune {

inline constexpr std::size_t kDefaultMaxMemoryBytes = std::size_t{64} << 20;

/// Indexed by CandidateId. 0 = the family gets no memory and can't be used.
using BytesPerCandidate = std::array<std::size_t, kMenuSize>;

struct SlabRequest {
  int ranks = 2;
  int ranks_per_gpu = 1;
  std::size_t max_memory_bytes = kDefaultMaxMemoryBytes;  ///< of device memory, per GPU, over all families and ranks on it
  BytesPerCandidate largest_message{};                    ///< what will be sent to each family; 0 = nothing
};

/// max_bytes of each family: a power of two (at least 4 KiB), as large as the request needs and the cap allows: while
/// they don't fit, the one that takes most is halved, and left out when it can't be halved any more.
BytesPerCandidate plan_slabs(const SlabRequest& request);

/// Where things lie in the slabs of one family. An area is what one rank writes: with Staging::receiver one for every
/// (reader, writer), in the reader's slab; with Staging::sender and host one for every writer.
struct SlabLayout {
  std::size_t slot_bytes = 0;         ///< from slot to slot inside an area
  std::size_t shard_bytes = 0;        ///< room of one shard in a slot, as it goes over the link
  std::size_t data_bytes = 0;         ///< of all slots of an area
  std::size_t flags_bytes = 0;        ///< of one (writer, reader), all slots, all steps
  std::size_t area_bytes = 0;         ///< from area to area where an area is data and flags
  std::size_t across_slot_bytes = 0;  ///< hierarchical: partial sums of one island
  std::size_t device_bytes = 0;       ///< of one rank's slab
  std::size_t host_bytes = 0;         ///< of the group's slab
};
SlabLayout slab_layout(CandidateId id, std::size_t max_bytes, int ranks);

}  // namespace artune
