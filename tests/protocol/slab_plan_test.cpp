// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/slab_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "comm/wiring.hpp"

namespace artune {
namespace {

SlabRequest everything(int ranks, int ranks_per_gpu, std::size_t cap) {
  SlabRequest request{
      .ranks = ranks, .ranks_per_gpu = ranks_per_gpu, .max_memory_bytes = cap};
  request.largest_message.fill(SIZE_MAX);
  return request;
}

TEST(SlabPlan, StaysUnderTheCapForEveryGroup) {
  for (int ranks = 2; ranks <= 16; ++ranks) {
    for (const int per_gpu : {1, 2, 4, 8}) {
      for (const std::size_t cap : {std::size_t{4} << 20, std::size_t{64} << 20, std::size_t{1} << 30}) {
        const BytesPerCandidate planned = plan_slabs(everything(ranks, per_gpu, cap));
        std::size_t used = 0;
        for (const CandidateInfo& info : menu()) {
          const std::size_t bytes = planned[static_cast<std::size_t>(info.id)];
          EXPECT_TRUE(bytes == 0 || std::has_single_bit(bytes)) << info.name;
          used += slab_layout(info.id, bytes, ranks).device_bytes;
        }
        EXPECT_LE(used * static_cast<std::size_t>(per_gpu), cap) << ranks << " ranks, " << per_gpu << " per GPU";
      }
    }
  }
}

TEST(SlabPlan, GivesNothingToFamiliesThatNothingIsSentTo) {
  SlabRequest request;
  request.largest_message[static_cast<std::size_t>(CandidateId::p2p_one_shot_ll)] = 100000;
  const BytesPerCandidate planned = plan_slabs(request);
  EXPECT_EQ(planned[static_cast<std::size_t>(CandidateId::p2p_one_shot_ll)], 131072U);  // the next power of two
  EXPECT_EQ(planned[static_cast<std::size_t>(CandidateId::p2p_one_shot_flag)], 0U);
  EXPECT_EQ(planned[static_cast<std::size_t>(CandidateId::host_copy_engine)], 0U);
}

TEST(SlabPlan, GivesUpWhereTheCapIsTooSmall) {
  const BytesPerCandidate planned = plan_slabs(everything(8, 1, 65536));
  EXPECT_EQ(planned[static_cast<std::size_t>(CandidateId::p2p_one_shot_ll)], 0U);
  EXPECT_GT(planned[static_cast<std::size_t>(CandidateId::host_one_shot_ll)], 0U);  // takes no device memory
}

/// Byte ranges of one slab that are written by somebody: no two may meet.
class Claims {
 public:
  void add(const char* begin, std::size_t bytes) {
    if (begin != nullptr) claims_.emplace_back(begin, begin + bytes);
  }
  void expect_apart_within(const std::vector<std::pair<const char*, std::size_t>>& slabs) {
    std::sort(claims_.begin(), claims_.end());
    claims_.erase(std::unique(claims_.begin(), claims_.end()), claims_.end());
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      EXPECT_TRUE(i == 0 || claims_[i - 1].second <= claims_[i].first) << "claim " << i;
      EXPECT_TRUE(std::any_of(
          slabs.begin(), slabs.end(),
          [&](const auto& slab) { return claims_[i].first >= slab.first && claims_[i].second <= slab.first + slab.second; }))
          << "claim " << i << " lies outside every slab";
    }
  }

 private:
  std::vector<std::pair<const char*, const char*>> claims_;
};

// Each place that a rank sends to is where exactly one peer receives it, all places are apart and inside the slabs.
TEST(Wiring, WritersAndReadersAgreeAndNoTwoPlacesMeet) {
  constexpr std::size_t kBytes = 4096;
  for (const CandidateInfo& info : menu()) {
    for (const int ranks : {2, 3, 4, 6, 8, 16}) {
      const int islands = island_size_of(ranks);
      if (info.path == Path::nccl || (info.algorithm == Algorithm::hierarchical && islands == 0)) continue;
      SCOPED_TRACE(testing::Message() << info.name << ", " << ranks << " ranks");
      const SlabLayout layout = slab_layout(info.id, kBytes, ranks);
      // Only addresses are compared, so the slabs needn't exist; far apart, so that an overrun can't meet the next one.
      const auto slab = [](int rank) {
        return reinterpret_cast<char*>((std::uintptr_t{1} << 32) * static_cast<unsigned>(rank + 1));
      };
      std::vector<std::pair<const char*, std::size_t>> bounds_of{{slab(ranks), layout.host_bytes}};
      for (int rank = 0; rank < ranks; ++rank) bounds_of.emplace_back(slab(rank), layout.device_bytes);
      const Slabs slabs{.id = info.id,
                        .layout = layout,
                        .ranks = ranks,
                        .device = slab,
                        .host = slab(ranks),
                        .bounds = [](int) { return Bounds{}; }};
      Claims claims;
      const std::size_t slots = info.protocol == Protocol::sentinel ? 3 : 2;
      const auto sends_to = [](const Area(&areas)[kMaxRanks], int sends, const char* place) {
        return std::any_of(areas, areas + sends, [&](const Area& area) { return area.send == place; });
      };
      // What lies in every slot of a two-shot area besides this one is the other step's.
      const auto in_slots = [&](const char* begin, std::size_t bytes) {
        for (std::size_t slot = 0; slot < slots; ++slot) claims.add(begin + slot * layout.slot_bytes, bytes);
      };
      for (int rank = 0; rank < ranks; ++rank) {
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer == rank) continue;
          if (info.staging == Staging::none) {
            const DirectArguments here = wire_direct(slabs, rank), there = wire_direct(slabs, peer);
            EXPECT_EQ(there.start[rank].send, here.start[peer].receive);
            EXPECT_EQ(there.end[rank].send, here.end[peer].receive);
            claims.add(here.start[peer].receive, kFlagsBytes);
            claims.add(here.end[peer].receive, kFlagsBytes);
          } else if (info.algorithm == Algorithm::one_shot) {
            const OneShotArguments here = wire_one_shot(slabs, rank), there = wire_one_shot(slabs, peer);
            EXPECT_TRUE(sends_to(there.data, there.sends, here.data[peer].receive));
            in_slots(here.data[peer].receive, layout.slot_bytes);
            if (layout.flags_bytes == 0) continue;
            EXPECT_TRUE(sends_to(there.flags, there.flag_sends, here.flags[peer].receive));
            claims.add(here.flags[peer].receive, kSlots * kFlagsBytes);
          } else if (info.algorithm == Algorithm::two_shot) {
            const TwoShotArguments here = wire_two_shot(slabs, rank), there = wire_two_shot(slabs, peer);
            EXPECT_EQ(there.scatter[rank].send, here.scatter[peer].receive);
            EXPECT_TRUE(sends_to(there.gather, there.sends, here.gather[peer].receive));
            in_slots(here.scatter[peer].receive, layout.shard_bytes);
            in_slots(here.gather[peer].receive, layout.shard_bytes);
            if (layout.flags_bytes == 0) continue;
            EXPECT_EQ(there.scatter_flags[rank].send, here.scatter_flags[peer].receive);
            EXPECT_EQ(there.gather_flags[rank].send, here.gather_flags[peer].receive);
            claims.add(here.scatter_flags[peer].receive, kSlots * kFlagsBytes);
            claims.add(here.gather_flags[peer].receive, kSlots * kFlagsBytes);
          } else if (info.algorithm == Algorithm::copies || info.algorithm == Algorithm::ring) {
            const CopyWiring here = wire_copies(slabs, rank), there = wire_copies(slabs, peer);
            EXPECT_EQ(there.signals.free_out[rank], here.signals.free_in[peer]);
            EXPECT_EQ(there.signals.arrived_out[rank], here.signals.arrived_in[peer]);
            claims.add(here.signals.free_in[peer], kFlagStrideBytes);
            const std::size_t flags = info.algorithm == Algorithm::ring ? 2 * (ranks - 1)
                                      : info.path == Path::host         ? kMostChunks
                                                                        : 1;
            claims.add(here.signals.arrived_in[peer], flags * kFlagStrideBytes);
            if (info.algorithm == Algorithm::copies) claims.add(here.landing[peer], layout.data_bytes);
            EXPECT_TRUE(info.path != Path::ce || info.algorithm != Algorithm::copies || there.target[rank] == here.landing[peer]);
          }
        }
        if (info.algorithm == Algorithm::ring) {
          const CopyWiring here = wire_copies(slabs, rank);
          EXPECT_EQ(here.ring_next, wire_copies(slabs, (rank + 1) % ranks).ring_here);
          claims.add(here.ring_here, 2 * (ranks - 1) * layout.shard_bytes);
          claims.add(here.own, layout.shard_bytes);
        }
        if (info.algorithm == Algorithm::hierarchical) {
          const HierarchicalArguments here = wire_hierarchical(slabs, rank);
          const int island = rank / islands, member = rank % islands;
          for (int m = 0; m < islands; ++m) {
            if (m == member) continue;
            const HierarchicalArguments there = wire_hierarchical(slabs, island * islands + m);
            EXPECT_EQ(there.scatter[member].send, here.scatter[m].receive);
            EXPECT_EQ(there.gather[member].send, here.gather[m].receive);
            EXPECT_EQ(there.scatter_flags[member].send, here.scatter_flags[m].receive);
            EXPECT_EQ(there.gather_flags[member].send, here.gather_flags[m].receive);
            in_slots(here.scatter[m].receive, layout.shard_bytes);
            in_slots(here.gather[m].receive, layout.shard_bytes);
            claims.add(here.scatter_flags[m].receive, kSlots * kFlagsBytes);
            claims.add(here.gather_flags[m].receive, kSlots * kFlagsBytes);
          }
          for (int g = 0; g < ranks / islands; ++g) {
            const HierarchicalArguments there = wire_hierarchical(slabs, g * islands + member);
            EXPECT_EQ(there.across[island].send, here.across[g].receive);
            EXPECT_EQ(there.across_flags[island].send, here.across_flags[g].receive);
            claims.add(here.across[g].receive, kSlots * layout.across_slot_bytes);
            claims.add(here.across_flags[g].receive, kSlots * kFlagsBytes);
          }
        }
      }
      claims.expect_apart_within(bounds_of);
    }
  }
}

}  // namespace
}  // namespace artune
