// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The menu's rules: who is admitted, how many blocks may wait, what stands in, which class sums are of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paths/menu.hpp"

namespace artune {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

AdmitFacts group_of(int ranks, int ranks_per_gpu = 1) {
  return {.ranks = ranks, .ranks_per_gpu = ranks_per_gpu, .multiprocessors = 132, .bytes = 1 << 20, .peer_access = true, .nccl = true};
}

std::string refusal_of(CandidateId id, const AdmitFacts& facts) { return refusal(info_of(id), facts); }

TEST(Menu, NamesLeadBackToTheirRows) {
  for (const CandidateInfo& info : menu()) {
    ASSERT_EQ(find_candidate(info.name), &info);
    EXPECT_EQ(&info_of(info.id), &info);
    EXPECT_TRUE(info.worth_up_to_bytes == 0 || info.worth_from_bytes < info.worth_up_to_bytes) << info.name;
  }
  EXPECT_EQ(find_candidate("p2p/one-shot"), nullptr);
}

TEST(Menu, AGpuMapsEightPeersSoLargeGroupsNeedIslandsOrARing) {
  EXPECT_THAT(refusal_of(CandidateId::p2p_one_shot_ll, group_of(9)), IsEmpty());
  EXPECT_THAT(refusal_of(CandidateId::p2p_one_shot_ll, group_of(10)), HasSubstr("9 peers"));
  EXPECT_THAT(refusal_of(CandidateId::p2p_one_shot_ll, group_of(16, 8)), IsEmpty()) << "ranks on the own GPU need no mapping";
  EXPECT_THAT(refusal_of(CandidateId::p2p_hierarchical, group_of(16)), IsEmpty());
  EXPECT_THAT(refusal_of(CandidateId::ce_ring, group_of(16)), IsEmpty());
  EXPECT_THAT(refusal_of(CandidateId::host_one_shot_ll, group_of(16)), IsEmpty());
  EXPECT_THAT(refusal_of(CandidateId::host_one_shot_ll, group_of(17)), HasSubstr("2 to 16 ranks"));
}

TEST(Menu, IslandsAreTwoOfEqualSize) {
  for (const int ranks : {4, 6, 8, 16}) EXPECT_THAT(refusal_of(CandidateId::p2p_hierarchical, group_of(ranks)), IsEmpty()) << ranks;
  EXPECT_THAT(refusal_of(CandidateId::p2p_hierarchical, group_of(5)), HasSubstr("two islands"));
  EXPECT_EQ(island_size_of(6), 3);
  EXPECT_EQ(island_size_of(2), 0);
}

TEST(Menu, WithoutPeerAccessOnlyHostAndNcclAreLeft) {
  AdmitFacts facts = group_of(4);
  facts.peer_access = false;
  for (const CandidateInfo& info : menu()) {
    EXPECT_EQ(refusal(info, facts).empty(), info.path == Path::host || info.path == Path::nccl) << info.name;
  }
}

TEST(Menu, WaitingBlocksOfASharedGpuLeaveMultiprocessorsAlone) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const int threads : {32, 128, 512}) {
      EXPECT_LE(ranks * most_resident_blocks(group_of(ranks, ranks), threads), 132 - kMultiprocessorsLeft) << ranks << " " << threads;
    }
    for (const CandidateInfo& info : menu()) {
      if (!refusal(info, group_of(ranks, ranks)).empty()) continue;
      for (const Geometry& geometry : info.geometries(group_of(ranks, ranks))) {
        EXPECT_LE(geometry.blocks * ranks, 132 - kMultiprocessorsLeft) << info.name;
      }
    }
  }
  EXPECT_EQ(most_resident_blocks(group_of(2), 512), 128) << "a GPU of its own: what the flags have room for";
  AdmitFacts small = group_of(2);
  small.multiprocessors = 20;
  EXPECT_EQ(most_resident_blocks(small, 512), 39);
}

TEST(Menu, WhatReadsUsersBuffersHasAStagedStandInOfTheSameKind) {
  for (const CandidateInfo& info : menu()) {
    const CandidateInfo& instead = info_of(info.fallback());
    EXPECT_TRUE(instead.staging != Staging::none || info.path == Path::nccl) << info.name;
    EXPECT_EQ(instead.numerics, info.numerics) << "the bits must not depend on it";
    EXPECT_EQ(instead.algorithm, info.algorithm);
    if (info.staging != Staging::none || info.path == Path::nccl) {
      EXPECT_EQ(info.fallback(), info.id);
    }
  }
}

TEST(Menu, ALossyWireIsAClassOfItsOwn) {
  const auto of = [](CandidateId id) { return numerics_of(info_of(id), DType::f32, DType::bf16); };
  EXPECT_EQ(of(CandidateId::p2p_one_shot_flag), Numerics::wire_bf16_in);
  EXPECT_EQ(of(CandidateId::p2p_two_shot_flag), Numerics::wire_bf16_in_out);
  EXPECT_EQ(numerics_of(info_of(CandidateId::p2p_two_shot_flag), DType::f32, DType::f32), Numerics::rank_order_fp32);
  EXPECT_EQ(of(CandidateId::nccl), Numerics::nccl);
}

TEST(Menu, WhoCantSendALossyWireSaysSoAndNamesIt) {
  EXPECT_EQ(wire_refusal(info_of(CandidateId::nccl), DType::f32, DType::bf16), "can't send f32 as bf16 on the wire");
  EXPECT_EQ(wire_refusal(info_of(CandidateId::p2p_one_shot_ll), DType::f16, DType::bf16), "there is no f16 as bf16 on the wire");
  for (const CandidateInfo& info : menu()) {
    for (const auto& dtype : WordTable<DType>::entries) EXPECT_EQ(wire_refusal(info, dtype.value, dtype.value), "") << info.name;
    const bool served = wire_refusal(info, DType::f32, DType::bf16).empty();
    EXPECT_EQ(served, lossy_wire_served(info)) << info.name;
    EXPECT_EQ(served, is_lossy(numerics_of(info, DType::f32, DType::bf16)) && info.staging != Staging::none && info.algorithm != Algorithm::copies)
        << info.name;
  }
}

}  // namespace
}  // namespace artune
