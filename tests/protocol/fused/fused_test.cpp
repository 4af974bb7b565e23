// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// All-reduce, residual add and RMSNorm in one launch, on CPU threads: bit for bit the all-reduce followed by the norm, on any
// rows and in any geometry; and the norm within the bound that rms_norm.cuh derives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <thread>
#include <tuple>

#include "fused/fused_menu.hpp"
#include "fused/host_fused.hpp"
#include "fused/row_grid.hpp"
#include "machine/reference.hpp"
#include "reference.hpp"

namespace artune {
namespace {

Halves hostile_rows(DType dtype, const NormShape& shape, std::uint64_t call, int rank) {
  Halves rows(shape.rows * shape.hidden);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto kind = static_cast<Hostile>((i / shape.hidden + call) % static_cast<std::size_t>(Hostile::kinds));
    rows[i] = element_of(dtype, kind, input_hash(call, rank, i), i % shape.hidden, shape.hidden);
  }
  return rows;
}

constexpr int kResidualRank = 100, kWeightRank = 101;  // names for the hash: every tensor has elements of its own

/// One family of one group, calls of both kinds on threads.
class Ranks {
 public:
  Ranks(CandidateId id, int ranks, std::size_t max_bytes)
      : ranks_(ranks),
        reports_(static_cast<std::size_t>(ranks)),
        family_(id, ranks, max_bytes,
                [this](int rank) {
                  return Bounds{nullptr, &reports_[static_cast<std::size_t>(rank)], &abort_, 30'000'000'000};
                }),
        fused_(family_, ranks) {}

  /// Fused, in place if asked: output over input, updated residual over residual.
  void call(DType dtype, const NormShape& shape, int blocks, int members, std::uint64_t number, bool in_place) {
    const auto n = static_cast<std::size_t>(ranks_);
    inputs_.clear();
    residual_ = hostile_rows(dtype, shape, number, kResidualRank);
    weight_ = hostile_rows(dtype, {1, shape.hidden}, 0, kWeightRank);
    std::vector<Halves> inputs, residuals(n, residual_), outputs(n, Halves(residual_.size(), 0xffff)), residual_outs = outputs;
    for (int rank = 0; rank < ranks_; ++rank) inputs.push_back(hostile_rows(dtype, shape, number, rank));
    inputs_ = inputs;
    HostNormCall call{.dtype = dtype,
                      .blocks = blocks,
                      .members = members,
                      .rows = static_cast<std::uint32_t>(shape.rows),
                      .hidden = static_cast<std::uint32_t>(shape.hidden),
                      .epsilon = shape.epsilon,
                      .one_plus = shape.one_plus,
                      .number = number,
                      .inputs = {},
                      .residuals = {},
                      .weights = {},
                      .outputs = {},
                      .residual_outs = {}};
    for (std::size_t rank = 0; rank < n; ++rank) {
      call.inputs.push_back(inputs[rank].data());
      call.residuals.push_back(residuals[rank].data());
      call.weights.push_back(weight_.data());
      call.outputs.push_back(in_place ? inputs[rank].data() : outputs[rank].data());
      call.residual_outs.push_back(in_place ? residuals[rank].data() : residual_outs[rank].data());
    }
    on_threads(blocks, [&](int rank, int block) { fused_.run(call, rank, block); });
    outputs_ = in_place ? inputs : outputs;
    residual_outs_ = in_place ? residuals : residual_outs;
  }

  void expect_right(DType dtype, const NormShape& shape) {
    std::vector<const void*> terms;
    for (const Halves& input : inputs_) terms.push_back(input.data());
    Halves sum(residual_.size());
    rank_order_sum(dtype, terms, sum.data(), sum.size());
    const Normed expected = normed(dtype, shape, sum, residual_, weight_);
    for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
      ASSERT_EQ(difference(dtype, expected.residual, residual_outs_[rank]).value_or(""), "") << "residual of rank " << rank;
      ASSERT_EQ(difference(dtype, expected.output, outputs_[rank]).value_or(""), "") << "rank " << rank;
    }
    ASSERT_EQ(out_of_bound(dtype, shape, expected.residual, weight_, outputs_[0]).value_or(""), "");
    ASSERT_EQ(residual_out_of_bound(dtype, inputs_, residual_, residual_outs_[0]).value_or(""), "");
  }

  /// Plain all-reduce in the same family.
  void all_reduce(DType dtype, std::size_t count, int blocks, std::uint64_t number) {
    std::vector<Halves> inputs, outputs(static_cast<std::size_t>(ranks_), Halves(count, 0xffff));
    HostCall call{.form = form_of(dtype), .blocks = blocks, .inputs = {}, .outputs = {}, .count = count};
    std::vector<const void*> terms;
    for (int rank = 0; rank < ranks_; ++rank) inputs.push_back(hostile_rows(dtype, {1, count}, number, rank));
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      call.inputs.push_back(inputs[rank].data());
      call.outputs.push_back(outputs[rank].data());
      terms.push_back(inputs[rank].data());
    }
    on_threads(blocks, [&](int rank, int block) { family_.run(call, rank, block); });
    Halves sum(count);
    rank_order_sum(dtype, terms, sum.data(), count);
    for (const Halves& output : outputs) ASSERT_EQ(difference(dtype, sum, output).value_or(""), "");
  }

 private:
  template <typename Body>
  void on_threads(int blocks, const Body& body) const {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks_; ++rank) {
      for (int block = 0; block < blocks; ++block) threads.emplace_back([&body, rank, block] { body(rank, block); });
    }
  }

  int ranks_;
  std::vector<FailureReport> reports_;
  std::uint32_t abort_ = 0;
  HostFamily family_;
  HostFused fused_;
  Halves residual_, weight_;
  std::vector<Halves> inputs_, outputs_, residual_outs_;
};

std::vector<CandidateId> fused_candidates() {
  std::vector<CandidateId> ids;
  for (const CandidateInfo& info : menu()) {
    if (fused_served(info)) ids.push_back(info.id);
  }
  return ids;
}

class Fused : public testing::TestWithParam<std::tuple<CandidateId, int, DType>> {};

// The main property, with plain all-reduces between: both kinds of calls share slots and epochs.
TEST_P(Fused, IsTheAllReduceThenTheNormBitForBit) {
  const auto [id, ranks, dtype] = GetParam();
  Ranks group(id, ranks, std::size_t{64} << 10);
  std::uint64_t number = 0;
  struct Case {
    std::size_t rows, hidden;
    int blocks, members;
  };
  const Case cases[] = {{1, 64, 1, 1},  {3, 72, 2, 1},   {9, 64, 4, 2},  {2, 1000, 4, 4},
                        {8, 512, 3, 1}, {1, 4096, 2, 2}, {5, 776, 6, 3}, {1, 16384, 4, 4}};
  for (const auto& [rows, hidden, blocks, members] : cases) {
    for (const bool in_place : {false, true}) {
      ++number;
      SCOPED_TRACE(testing::Message() << rows << " rows of " << hidden << ", " << blocks << " blocks, " << members
                                      << " a row, in place " << in_place);
      const NormShape shape{rows, hidden, number % 2 == 0 ? 1e-6F : 1e-5F, number % 3 == 0};
      group.call(dtype, shape, blocks, members, number, in_place);
      group.expect_right(dtype, shape);
      if (HasFatalFailure()) return;
      if (number % 2 == 0) continue;
      group.all_reduce(dtype, number * 37 % 3000 + 1, static_cast<int>(1 + number % 3), 1000 + number);
      if (HasFatalFailure()) return;
    }
  }
}

std::string word(const testing::TestParamInfo<std::tuple<CandidateId, int, DType>>& of) {
  std::string name(info_of(std::get<0>(of.param)).name);
  for (char& c : name) c = c == '/' || c == '-' ? '_' : c;
  return name + "_" + std::to_string(std::get<1>(of.param)) + "_" + std::string(to_string(std::get<2>(of.param)));
}

INSTANTIATE_TEST_SUITE_P(Menu, Fused,
                         testing::Combine(testing::ValuesIn(fused_candidates()), testing::Values(2, 3, 4),
                                          testing::Values(DType::f16, DType::bf16)),
                         word);

TEST(FusedFailure, LeavesNaNOnEveryRankThatWaited) {
  for (const CandidateId id : fused_candidates()) {
    SCOPED_TRACE(info_of(id).name);
    std::vector<FailureReport> reports(3);
    std::uint32_t abort = 0;
    HostFamily family(id, 3, 4096, [&](int rank) {
      return Bounds{nullptr, &reports[static_cast<std::size_t>(rank)], &abort, 50'000'000};
    });
    HostFused fused(family, 3);
    for (int call = 0; call < 2; ++call) {  // the second finds the error of the first
      std::vector<Halves> outputs(3, Halves(1024, 0)), rows(3, Halves(1024, 0x3c00));
      HostNormCall norm{.dtype = DType::f16,
                        .blocks = 2,
                        .members = 2,
                        .rows = 4,
                        .hidden = 256,
                        .number = static_cast<std::uint64_t>(call),
                        .inputs = {},
                        .residuals = {},
                        .weights = {},
                        .outputs = {},
                        .residual_outs = {}};
      for (std::size_t rank = 0; rank < 3; ++rank) {
        norm.inputs.push_back(rows[rank].data());
        norm.residuals.push_back(rows[rank].data());
        norm.weights.push_back(rows[rank].data());
        norm.outputs.push_back(outputs[rank].data());
        norm.residual_outs.push_back(rows[rank].data());
      }
      {
        std::vector<std::jthread> threads;
        for (const int rank : {0, 2}) {
          for (const int block : {0, 1}) threads.emplace_back([&, rank, block] { fused.run(norm, rank, block); });
        }
      }
      for (const std::size_t rank : {0, 2}) {
        EXPECT_EQ(reports[rank].present, 1U);
        for (const std::uint16_t bits : outputs[rank])
          ASSERT_TRUE(std::isnan(f16_to_float(bits))) << "rank " << rank << ", call " << call;
      }
    }
  }
}

// The order of the statistics depends on the position in the row alone.
TEST(NormAlone, IsTheReferenceOnAnyRow) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const std::size_t hidden : {64, 72, 264, 4096, 7168, 16384}) {
      for (const bool one_plus : {false, true}) {
        const NormShape shape{16, hidden, 1e-6F, one_plus};
        const Halves sum = hostile_rows(dtype, shape, hidden, 0), weight = hostile_rows(dtype, {1, hidden}, 0, kWeightRank);
        Halves residual = hostile_rows(dtype, shape, hidden + 1, kResidualRank), output(sum.size());
        const Normed expected = normed(dtype, shape, sum, residual, weight);
        host_rms_norm({.dtype = dtype,
                       .rows = 16,
                       .hidden = static_cast<std::uint32_t>(hidden),
                       .one_plus = one_plus,
                       .inputs = {sum.data()},
                       .residuals = {residual.data()},
                       .weights = {weight.data()},
                       .outputs = {output.data()},
                       .residual_outs = {residual.data()}},
                      0);
        ASSERT_EQ(difference(dtype, expected.residual, residual).value_or(""), "") << hidden;
        ASSERT_EQ(difference(dtype, expected.output, output).value_or(""), "") << hidden;
        ASSERT_EQ(out_of_bound(dtype, shape, residual, weight, output).value_or(""), "") << hidden;
      }
    }
  }
}

TEST(RowGrid, CoversEveryRowWithinItsBounds) {
  for (std::uint32_t hidden = kLeastHidden; hidden <= kMostHidden; hidden += kVectorElements * (hidden < 1024 ? 1 : 37)) {
    for (const std::uint32_t rows : {1U, 2U, 3U, 8U, 33U, 1000U}) {
      for (const int blocks : {1, 2, 3, 8, 32, 128}) {
        for (const int threads : {1, 32, 100, 512, 2000}) {
          for (const RowLimits& limits : {single_blocks(1), single_blocks(5), single_blocks(64), RowLimits{64, {64, 31, 15, 7}},
                                          RowLimits{16, {16, 6, 1, 0}}}) {
            const RowGrid grid = row_grid(rows, hidden, {.blocks = blocks, .threads = threads}, limits);
            ASSERT_GE(grid.blocks, 1);
            ASSERT_LE(grid.blocks, std::min(blocks, limits.blocks));
            const int clusters = grid.blocks / grid.members;
            ASSERT_EQ(clusters * grid.members, grid.blocks);
            ASSERT_LE(clusters, std::min(static_cast<int>(rows),
                                         limits.clusters[static_cast<std::size_t>(std::countr_zero(unsigned(grid.members)))]));
            ASSERT_EQ(grid.threads % 32, 0);
            ASSERT_LE(grid.threads, kMostThreads);
            ASSERT_LE(grid.vectors_each, kMostVectorsEach);
            ASSERT_GE(static_cast<std::uint32_t>(grid.members * grid.threads * grid.vectors_each * kVectorElements), hidden);
          }
        }
      }
    }
  }
}

TEST(FusedLimits, LeaveRoomForAllRanksOfAGpu) {
  for (const int ranks_per_gpu : {1, 2, 4, 8, 16}) {
    const AdmitFacts facts{.ranks = 16, .ranks_per_gpu = ranks_per_gpu, .multiprocessors = 132};
    const RowLimits limits = fused_limits(facts, {66, 32, 15});
    EXPECT_LE(limits.blocks * ranks_per_gpu, 132 - (ranks_per_gpu > 1 ? kMultiprocessorsLeft : 1));
    EXPECT_LE(limits.clusters[1] * ranks_per_gpu, 65);
    EXPECT_LE(limits.clusters[2] * ranks_per_gpu, 31);
    EXPECT_LE(limits.clusters[3] * ranks_per_gpu, 14);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_LE(limits.clusters[i] << i, limits.blocks);
    EXPECT_EQ(fused_limits(facts, {}).most_members(), 1);
  }
}

TEST(NormCandidates, AreNamedAndFoundAgain) {
  EXPECT_EQ(name_of({CandidateId::p2p_one_shot_ll, true}), "fused/p2p/one-shot/ll");
  EXPECT_EQ(find_norm_candidate("fused/p2p/one-shot/ll"), (NormCandidate{CandidateId::p2p_one_shot_ll, true}));
  EXPECT_EQ(find_norm_candidate("nccl"), (NormCandidate{CandidateId::nccl, false}));
  for (const char* none : {"fused/nccl", "fused/p2p/two-shot/flag", "fused/p2p/one-shot/direct", "fused/", "p2p"}) {
    EXPECT_FALSE(find_norm_candidate(none)) << none;
  }
}

}  // namespace
}  // namespace artune
