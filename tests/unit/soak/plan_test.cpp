// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "soak/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace artune::soak {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMax = std::size_t{1} << 20;

AdmitFacts facts_of(int ranks) {
  return {
      .ranks = ranks, .ranks_per_gpu = ranks, .multiprocessors = 132, .peer_access = true};
}

std::vector<Cell> cells_for(int ranks, const Filter& filter = {}, std::size_t max = kMax, std::size_t slab = kMax / 2) {
  return cells_of(
      filter, max,
      {.unavailable = [=](CandidateId id) { return refusal(info_of(id), facts_of(ranks)); },
       .lossy_served =
           [](const CandidateInfo& info) { return info.staging == Staging::receiver && info.algorithm == Algorithm::one_shot; },
       .slab_bytes = [=](CandidateId) { return slab; }});
}

bool same(const DrawnCall& a, const DrawnCall& b) {
  return a.number == b.number && a.cell == b.cell && a.count == b.count && a.geometry == b.geometry && a.in_place == b.in_place &&
         a.stream == b.stream && a.input_offset == b.input_offset && a.output_offset == b.output_offset;
}

class Draws : public ::testing::TestWithParam<int> {};

TEST_P(Draws, CoverEveryCellEveryEdgeAndStayWithinLimits) {
  const int ranks = GetParam();
  const AdmitFacts facts = facts_of(ranks);
  CallSource source(cells_for(ranks), facts, 7);
  std::map<std::size_t, int> of_cell;
  std::set<std::size_t> counts;
  std::set<int> threads, offsets;
  int in_place = 0, second_stream = 0, mixed = 0, most_blocks_seen = 0;
  constexpr int kDraws = 50'000;
  for (int i = 0; i < kDraws; ++i) {
    const DrawnCall call = source.next();
    ASSERT_EQ(call.number, static_cast<std::uint32_t>(i));
    const Cell& cell = source.cells()[call.cell];
    const CandidateInfo& info = info_of(cell.candidate);
    const std::size_t bytes = call.count * element_bytes(user_dtype(cell.form));
    ASSERT_GE(call.count, 1U);
    ASSERT_LE(bytes, cell.most_bytes);
    ASSERT_LE(bytes, kMax);
    if (call.geometry.threads != 0) {
      ASSERT_GE(call.geometry.threads, 32);
      ASSERT_LE(call.geometry.threads, kMostThreads);
      ASSERT_EQ(call.geometry.threads % 32, 0);
      ASSERT_GE(call.geometry.blocks, 1);
      ASSERT_LE(call.geometry.blocks, most_resident_blocks(facts, call.geometry.threads));
      most_blocks_seen = std::max(most_blocks_seen, call.geometry.blocks);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      ASSERT_LE(call.input_offset[rank], kMostOffset);
      ASSERT_LE(call.output_offset[rank], kMostOffset);
      ASSERT_TRUE(!call.in_place || call.input_offset[rank] == call.output_offset[rank]);
      offsets.insert(call.output_offset[rank]);
    }
    ++of_cell[call.cell];
    counts.insert(call.count);
    threads.insert(call.geometry.threads);
    in_place += call.in_place;
    second_stream += call.stream;
    mixed += call.output_offset[0] != call.output_offset[1];
    EXPECT_NE(info.path, Path::nccl);
  }
  EXPECT_EQ(of_cell.size(), source.cells().size());
  for (const auto& [cell, draws] : of_cell)
    EXPECT_GE(draws, kDraws / 250) << info_of(source.cells()[cell].candidate).name;  // 10^4 of 2.5 * 10^6
  for (const std::size_t edge : kEdgeCounts) EXPECT_TRUE(counts.contains(edge)) << edge;
  EXPECT_TRUE(counts.contains(kMax / 2)) << "the largest 16-bit message";
  EXPECT_TRUE(counts.contains(kMax / 4)) << "the largest 32-bit message";
  EXPECT_EQ(threads.size(), 17U) << "every multiple of 32, and none where there are no blocks";
  EXPECT_EQ(offsets.size(), static_cast<std::size_t>(kMostOffset) + 1);
  EXPECT_NEAR(in_place, kDraws / 2, kDraws / 50);
  EXPECT_NEAR(second_stream, kDraws / 2, kDraws / 50);
  EXPECT_GT(mixed, kDraws / 10);
  EXPECT_EQ(most_blocks_seen, most_resident_blocks(facts, 32));
}

TEST_P(Draws, AreTheSameForASeedAndOthersForAnother) {
  const int ranks = GetParam();
  CallSource one(cells_for(ranks), facts_of(ranks), 3), again(cells_for(ranks), facts_of(ranks), 3),
      other(cells_for(ranks), facts_of(ranks), 4);
  int differ = 0;
  for (int i = 0; i < 2000; ++i) {
    const DrawnCall call = one.next();
    ASSERT_TRUE(same(call, again.next())) << i;
    differ += !same(call, other.next());
  }
  EXPECT_GT(differ, 1900);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Draws, ::testing::Values(2, 3, 4, 8));

TEST(Cells, HaveNoNcclAndCountLossyCallsByThemselves) {
  std::set<Form> forms_of_ll, forms_of_ring;
  for (const Cell& cell : cells_for(4)) {
    EXPECT_NE(cell.candidate, CandidateId::nccl);
    if (cell.candidate == CandidateId::p2p_one_shot_ll) forms_of_ll.insert(cell.form);
    if (cell.candidate == CandidateId::ce_ring) forms_of_ring.insert(cell.form);
  }
  EXPECT_EQ(forms_of_ll.size(), 4U);
  EXPECT_EQ(forms_of_ring.size(), 3U);
}

TEST(Cells, KeepTheFilterTheMaximumAndTheNumberOfPieces) {
  for (const Cell& cell : cells_for(2, {.only = {"p2p/*"}, .forms = {Form::bf16}})) {
    EXPECT_EQ(info_of(cell.candidate).path, Path::p2p);
    EXPECT_EQ(cell.form, Form::bf16);
  }
  for (const Cell& cell : cells_for(2, {}, 4096)) EXPECT_LE(cell.most_bytes, 4096U);
  for (const Cell& cell : cells_for(2, {}, kMax, 8192)) EXPECT_LE(cell.most_bytes, 4 * 8192U);
  for (const Cell& cell : cells_for(2)) {
    EXPECT_TRUE(info_of(cell.candidate).path != Path::host || cell.most_bytes <= kMax / 4);
  }
}

TEST(Filters, NameWhatTheyDontKnow) {
  EXPECT_TRUE(make_filter({"p2p/one-shot/ll", "ce/*"}, {"f32-over-bf16"}));
  const auto glob = make_filter({"p3p/*"}, {});
  ASSERT_FALSE(glob);
  EXPECT_THAT(glob.error().message, HasSubstr("p3p/*"));
  EXPECT_THAT(glob.error().message, HasSubstr("p2p/one-shot/ll"));
  EXPECT_FALSE(make_filter({"nccl"}, {})) << "not ours";
  EXPECT_FALSE(make_filter({}, {"f64"}));
}

TEST(Numbers, OfCallsMayHaveAnExponent) {
  EXPECT_EQ(*parse_calls("10000000"), 10'000'000U);
  EXPECT_EQ(*parse_calls("1e7"), 10'000'000U);
  EXPECT_EQ(*parse_calls("2.5e6"), 2'500'000U);
  for (const char* bad : {"", "many", "0", "-5", "1e7x", "1e12", "nan", "inf"}) EXPECT_FALSE(parse_calls(bad)) << bad;
}

}  // namespace
}  // namespace artune::soak
