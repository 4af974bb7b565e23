// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "protocol/host_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <tuple>

#include "base/float_bits.hpp"
#include "protocol/one_shot_ll.cuh"

namespace artune {
namespace {

float load(DType dtype, const char* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, element_bytes(dtype));
  if (dtype == DType::f32) return std::bit_cast<float>(bits);
  return dtype == DType::bf16 ? bf16_to_float(static_cast<std::uint16_t>(bits)) : f16_to_float(static_cast<std::uint16_t>(bits));
}

void store(DType dtype, char* at, float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (dtype == DType::bf16) bits = float_to_bf16(value);
  if (dtype == DType::f16) bits = float_to_f16(value);
  std::memcpy(at, &bits, element_bytes(dtype));
}

/// N ranks' buffers at a chosen offset from alignment, with guards on both sides.
class Ranks {
 public:
  static constexpr std::size_t kGuard = 64;

  Ranks(int ranks, DType dtype, std::size_t count, std::size_t offset_elements, bool in_place)
      : dtype_(dtype), count_(count), in_place_(in_place) {
    const std::size_t bytes = count * element_bytes(dtype);
    offset_ = kGuard + offset_elements * element_bytes(dtype);
    for (int rank = 0; rank < ranks; ++rank) {
      inputs_.emplace_back(bytes + 2 * kGuard + 64, '\x55');
      outputs_.emplace_back(bytes + 2 * kGuard + 64, '\xff');
    }
  }

  void fill(std::mt19937& random) {
    std::uniform_real_distribution<float> real(-2, 2);
    expected_.assign(count_, 0.0F);
    for (std::size_t rank = 0; rank < inputs_.size(); ++rank) {
      for (std::size_t i = 0; i < count_; ++i) {
        char* at = input(rank) + i * element_bytes(dtype_);
        store(dtype_, at, real(random));
        expected_[i] += load(dtype_, at);  // rank order, fp32, from +0
      }
    }
  }

  Status reduce(HostGroup& group, CandidateId id, const Geometry& geometry) {
    std::vector<const void*> send;
    std::vector<void*> receive;
    for (std::size_t rank = 0; rank < inputs_.size(); ++rank) {
      send.push_back(input(rank));
      receive.push_back(output(rank));
    }
    return group.all_reduce(id, geometry, dtype_, send, receive, count_);
  }

  void expect_right() {
    for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
      for (std::size_t i = 0; i < count_; ++i) {
        std::vector<char> right(element_bytes(dtype_));
        store(dtype_, right.data(), expected_[i]);
        ASSERT_EQ(std::memcmp(right.data(), output(rank) + i * element_bytes(dtype_), right.size()), 0)
            << "rank " << rank << " element " << i << ": got " << load(dtype_, output(rank) + i * element_bytes(dtype_)) << ", expected "
            << load(dtype_, right.data());
      }
      const std::string& whole = in_place_ ? inputs_[rank] : outputs_[rank];
      const char guard = in_place_ ? '\x55' : '\xff';
      const std::size_t end = offset_ + count_ * element_bytes(dtype_);
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (i < offset_ || i >= end) {
          ASSERT_EQ(whole[i], guard) << "rank " << rank << ", byte " << i;
        }
      }
    }
  }

  bool all_nan(std::size_t rank) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (!std::isnan(load(dtype_, output(rank) + i * element_bytes(dtype_)))) return false;
    }
    return true;
  }

 private:
  char* input(std::size_t rank) { return inputs_[rank].data() + offset_; }
  char* output(std::size_t rank) { return in_place_ ? input(rank) : outputs_[rank].data() + offset_; }

  DType dtype_;
  std::size_t count_, offset_;
  bool in_place_;
  std::vector<std::string> inputs_, outputs_;
  std::vector<float> expected_;
};

class EveryCandidate : public testing::TestWithParam<std::tuple<CandidateId, int, DType>> {};

// The main property: whatever count, offset and geometry, all ranks hold the rank-order fp32 sum, bit for bit, and
// nothing beside it. Data differ from call to call, so a slot left from an earlier call can't look right.
TEST_P(EveryCandidate, GivesTheRankOrderSumAtAnyCountOffsetAndGeometry) {
  const auto [id, ranks, dtype] = GetParam();
  HostGroup group(ranks, 1024);
  std::mt19937 random(7);
  for (const std::size_t count : {1, 2, 3, 5, 8, 127, 256, 257, 1031}) {  // the last: several launches of max_bytes
    for (const std::size_t offset : {0, 1, 3}) {
      for (const bool in_place : {false, true}) {
        const Geometry geometry{.blocks = static_cast<int>(1 + random() % 3), .threads = 32, .max_ctas = 0, .chunk_bytes = 16 + random() % 500};
        Ranks buffers(ranks, dtype, count, offset, in_place);
        buffers.fill(random);
        const Status done = buffers.reduce(group, id, geometry);
        ASSERT_TRUE(done) << done.error().message;
        SCOPED_TRACE(testing::Message() << "count " << count << " offset " << offset << " in place " << in_place);
        buffers.expect_right();
        if (HasFatalFailure()) return;
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<EveryCandidate::ParamType>& info) {
  std::string name(info_of(std::get<0>(info.param)).name);
  for (char& c : name) c = c == '/' || c == '-' ? '_' : c;
  return name + "_" + std::to_string(std::get<1>(info.param)) + "_" + std::string(to_string(std::get<2>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(Menu, EveryCandidate,
                         testing::Combine(testing::Values(CandidateId::p2p_one_shot_ll, CandidateId::p2p_one_shot_flag,
                                                          CandidateId::host_one_shot_ll, CandidateId::host_one_shot_flag,
                                                          CandidateId::host_copy_engine, CandidateId::ce_push),
                                          testing::Values(2, 3, 4, 8), testing::Values(DType::f32, DType::f16, DType::bf16)),
                         name_of);

class AcrossTheWrap : public testing::TestWithParam<std::tuple<CandidateId, std::uint64_t>> {};

// Message sizes alternate, so packets of the long calls lie around while the short ones run over the wrap.
TEST_P(AcrossTheWrap, EpochsPassTheirWrapWithoutAWrongSum) {
  const auto [id, start] = GetParam();
  HostGroup group(3, 512, std::chrono::seconds(5));
  group.start_at_epoch(start);
  std::mt19937 random(11);
  for (int call = 0; call < 40; ++call) {
    Ranks buffers(3, DType::bf16, call % 3 == 0 ? 256 : 1 + random() % 40, 0, false);
    buffers.fill(random);
    const Status done = buffers.reduce(group, id, {.blocks = 2, .threads = 32});
    ASSERT_TRUE(done) << done.error().message;
    buffers.expect_right();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(OneShot, AcrossTheWrap,
                         testing::Combine(testing::Values(CandidateId::p2p_one_shot_ll, CandidateId::p2p_one_shot_flag,
                                                          CandidateId::host_one_shot_ll, CandidateId::host_one_shot_flag),
                                          testing::Values(0xffffffffULL - 20, 0x100000000ULL - 20, ~0ULL - 20)));

// A tag repeats in one slot after two periods. What a long call left there then must be gone.
TEST(Ll, ATagOfTwoPeriodsAgoIsClearedAtTheWrap) {
  constexpr std::uint64_t kOld = 10;  // even: slot 0
  HostGroup group(2, 512, std::chrono::milliseconds(300));
  std::mt19937 random(3);
  const auto call = [&](std::uint64_t epoch, std::size_t count) {
    group.start_at_epoch(epoch);
    Ranks buffers(2, DType::f32, count, 0, false);
    buffers.fill(random);
    const Status done = buffers.reduce(group, CandidateId::p2p_one_shot_ll, {.blocks = 1, .threads = 32});
    ASSERT_TRUE(done) << done.error().message;
    buffers.expect_right();
  };
  call(kOld, 128);                     // fills slot 0 with tags of epoch 10
  call(kTagPeriod, 1);                 // the wrap: slots 1 and 0 are cleared beyond what these two calls write
  call(kTagPeriod + 1, 1);
  // The same tag in the same slot again. Rank 1 is missing: rank 0 must not take the packets of epoch 10 for its own.
  group.start_at_epoch(kOld + 2 * kTagPeriod);
  EXPECT_EQ(ll_tag(kOld), ll_tag(kOld + 2 * kTagPeriod));
  group.leave_out(1);
  Ranks buffers(2, DType::f32, 128, 0, false);
  buffers.fill(random);
  const Status done = buffers.reduce(group, CandidateId::p2p_one_shot_ll, {.blocks = 1, .threads = 32});
  ASSERT_FALSE(done) << "a packet of two periods ago was taken for a new one";
  EXPECT_EQ(done.error().reason, Reason::hang);
}

class MissingRank : public testing::TestWithParam<CandidateId> {};

TEST_P(MissingRank, IsNamedWithinTheTimeoutAndTheOutputIsNaN) {
  HostGroup group(3, 512, std::chrono::milliseconds(200));
  group.leave_out(2);
  std::mt19937 random(5);
  Ranks buffers(3, DType::bf16, 50, 0, false);
  buffers.fill(random);
  const auto started = std::chrono::steady_clock::now();
  const Status done = buffers.reduce(group, GetParam(), {.blocks = 1, .threads = 32});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, Reason::hang);
  EXPECT_THAT(done.error().message, testing::HasSubstr("waited for rank 2 and gave up"));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(3));
  EXPECT_TRUE(buffers.all_nan(0));
  EXPECT_TRUE(buffers.all_nan(1));
  // The failure is sticky: later calls fail with the same report.
  const Status again = buffers.reduce(group, GetParam(), {.blocks = 1, .threads = 32});
  ASSERT_FALSE(again);
}

INSTANTIATE_TEST_SUITE_P(Menu, MissingRank,
                         testing::Values(CandidateId::p2p_one_shot_ll, CandidateId::p2p_one_shot_flag, CandidateId::host_one_shot_ll,
                                         CandidateId::host_one_shot_flag, CandidateId::host_copy_engine, CandidateId::ce_push));

TEST(HostGroup, HasNoNccl) {
  HostGroup group(2, 64);
  float a = 1, b = 2, x = 0, y = 0;
  const Status done = group.all_reduce(CandidateId::nccl, {}, DType::f32, {&a, &b}, {&x, &y}, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, Reason::unavailable);
}

TEST(FloatBits, RoundTripsEveryHalf) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!std::isnan(f16_to_float(half))) {
      ASSERT_EQ(float_to_f16(f16_to_float(half)), half) << bits;
    }
    if (!std::isnan(bf16_to_float(half))) {
      ASSERT_EQ(float_to_bf16(bf16_to_float(half)), half) << bits;
    }
  }
}

TEST(FloatBits, RoundsTiesToEvenAndOverflowsToInfinity) {
  EXPECT_EQ(float_to_f16(1.0F + 0x1p-11F), 0x3c00);              // tie: down to even
  EXPECT_EQ(float_to_f16(1.0F + 3 * 0x1p-11F), 0x3c02);          // tie: up to even
  EXPECT_EQ(float_to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-24F), 1);
  EXPECT_EQ(float_to_f16(0x1p-25F), 0);                          // tie: down to even
  EXPECT_EQ(float_to_f16(0x1.8p-25F), 1);
  EXPECT_EQ(float_to_bf16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(float_to_bf16(1.0F + 3 * 0x1p-8F), 0x3f82);
  EXPECT_EQ(float_to_bf16(3.4e38F), 0x7f80);
}

}  // namespace
}  // namespace artune
