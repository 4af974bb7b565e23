// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/slab_plan.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

namespace artune {
namespace {

SlabRequest everything(int ranks, int ranks_per_gpu, std::size_t cap) {
  SlabRequest request{.ranks = ranks, .ranks_per_gpu = ranks_per_gpu, .max_memory_bytes = cap, .largest_message = {}};
  request.largest_message.fill(SIZE_MAX);
  return request;
}

TEST(SlabPlan, StaysUnderTheCapForEveryGroup) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    for (const int per_gpu : {1, 2, 4, 8}) {
      for (const std::size_t cap : {std::size_t{4} << 20, std::size_t{64} << 20, std::size_t{1} << 30}) {
        const BytesPerCandidate planned = plan_slabs(everything(ranks, per_gpu, cap));
        std::size_t used = 0;
        for (const CandidateInfo& info : menu()) {
          const std::size_t bytes = planned[static_cast<std::size_t>(info.id)];
          EXPECT_TRUE(bytes == 0 || std::has_single_bit(bytes)) << info.name;
          used += device_bytes(info.id, bytes, ranks);
        }
        EXPECT_LE(used * static_cast<std::size_t>(per_gpu), cap) << ranks << " ranks, " << per_gpu << " per GPU";
      }
    }
  }
}

TEST(SlabPlan, GivesNothingToFamiliesThatNothingIsSentTo) {
  SlabRequest request{.ranks = 2, .ranks_per_gpu = 1, .max_memory_bytes = kDefaultMaxMemoryBytes, .largest_message = {}};
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

}  // namespace
}  // namespace artune
