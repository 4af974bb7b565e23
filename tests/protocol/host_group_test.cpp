// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Every candidate of the menu but nccl on CPU threads: real sums, real concurrency, ThreadSanitizer's view of every access.
// tests/protocol/model_test.cpp explores orders that no CPU would show.
#include "protocol/host_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>
#include <tuple>

#include "base/float_bits.hpp"
#include "machine/reference.hpp"
#include "protocol/host_family.hpp"
#include "protocol/ll.cuh"

namespace artune {
namespace {

constexpr std::size_t kMaxBytes = 1024;

/// As the wire carries an element.
float on_wire(float value, bool lossy) { return lossy ? bf16_to_float(float_to_bf16(value)) : value; }

/// One launch of at most kMaxBytes in the order that the candidate's class documents, written without its code.
void launch_reference(const CandidateInfo& info, DType dtype, bool lossy, const std::vector<const char*>& inputs, char* output,
                      std::size_t count) {
  const int ranks = static_cast<int>(inputs.size());
  const auto element = [&](int rank, std::size_t i) { return on_wire(load_element(dtype, inputs[rank], i), lossy); };
  const auto rounded = [&](float value) {
    char bytes[4];
    store_element(dtype, bytes, 0, value);
    return load_element(dtype, bytes, 0);
  };
  // The ring's pieces: 16-byte units of the message, as equal as can be, the last ones the smallest.
  const std::size_t units = (count * element_bytes(dtype) + 15) / 16, units_each = (units + ranks - 1) / ranks;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    if (info.numerics == Numerics::hierarchical_fp32) {
      const int size = island_size_of(ranks);
      for (int island = 0; island < ranks / size; ++island) {
        float partial = 0;
        for (int member = 0; member < size; ++member) partial += element(island * size + member, i);
        sum += partial;
      }
    } else if (info.numerics == Numerics::ring) {
      // Piece p goes round from rank p + 1 to rank p, rounded at every step.
      const int piece = static_cast<int>(i * element_bytes(dtype) / 16 / units_each);
      sum = element((piece + 1) % ranks, i);
      for (int step = 2; step <= ranks; ++step) sum = rounded(0.0F + sum + element((piece + step) % ranks, i));
    } else {
      for (int rank = 0; rank < ranks; ++rank) sum += element(rank, i);
    }
    store_element(dtype, output, i, on_wire(sum, lossy && info.algorithm == Algorithm::two_shot));
  }
}

/// N ranks' buffers at a chosen offset from alignment, with guards on both sides.
class Ranks {
 public:
  static constexpr std::size_t kGuard = 64;

  Ranks(int ranks, DType dtype, std::size_t count, std::size_t offset_elements, bool in_place)
      : dtype_(dtype), count_(count), offset_(kGuard + offset_elements * element_bytes(dtype)), in_place_(in_place) {
    const std::size_t bytes = count * element_bytes(dtype);
    for (int rank = 0; rank < ranks; ++rank) {
      inputs_.emplace_back(bytes + 2 * kGuard + 64, '\x55');
      outputs_.emplace_back(bytes + 2 * kGuard + 64, '\xff');
    }
  }

  /// `all_ones`: every third element of every rank, a different third each, is the NaN that sentinels take for emptiness.
  void fill(std::uint64_t call, bool all_ones = false) {
    originals_.clear();
    for (std::size_t rank = 0; rank < inputs_.size(); ++rank) {
      fill_inputs(InputKind::random_reals, dtype_, static_cast<int>(rank), call, input(rank), count_);
      for (std::size_t i = rank % 3; all_ones && i < count_; i += 3) {
        std::memset(input(rank) + i * element_bytes(dtype_), 0xff, element_bytes(dtype_));
      }
      originals_.emplace_back(input(rank), count_ * element_bytes(dtype_));
    }
  }

  Status reduce(HostGroup& group, CandidateId id, const Geometry& geometry, bool lossy = false) {
    lossy_ = lossy;
    std::vector<const void*> send;
    std::vector<void*> receive;
    for (std::size_t rank = 0; rank < inputs_.size(); ++rank) {
      send.push_back(input(rank));
      receive.push_back(output(rank));
    }
    return group.all_reduce(id, geometry, dtype_, send, receive, count_, lossy);
  }

  /// Bit for bit on every rank, and nothing beside it.
  void expect_right(CandidateId id) {
    const CandidateInfo& info = info_of(id);
    std::string expected(count_ * element_bytes(dtype_), '\0');
    if (info.numerics == Numerics::rank_order_fp32 && !lossy_) {
      std::vector<const void*> inputs;
      for (const std::string& original : originals_) inputs.push_back(original.data());
      rank_order_sum(dtype_, inputs, expected.data(), count_);
    } else {
      const std::size_t launch = kMaxBytes / element_bytes(dtype_);
      for (std::size_t first = 0; first < count_; first += launch) {
        std::vector<const char*> inputs;
        for (const std::string& original : originals_) inputs.push_back(original.data() + first * element_bytes(dtype_));
        launch_reference(info, dtype_, lossy_, inputs, expected.data() + first * element_bytes(dtype_),
                         std::min(launch, count_ - first));
      }
    }
    for (std::size_t rank = 0; rank < outputs_.size(); ++rank) {
      const auto wrong = first_difference(dtype_, expected.data(), output(rank), count_);
      ASSERT_FALSE(wrong) << "rank " << rank << ", " << describe(*wrong);
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
      if (!std::isnan(load_element(dtype_, output(rank), i))) return false;
    }
    return true;
  }

 private:
  char* input(std::size_t rank) { return inputs_[rank].data() + offset_; }
  char* output(std::size_t rank) { return in_place_ ? input(rank) : outputs_[rank].data() + offset_; }

  DType dtype_;
  std::size_t count_, offset_;
  bool in_place_, lossy_ = false;
  std::vector<std::string> inputs_, outputs_, originals_;
};

std::vector<CandidateId> candidates() {
  std::vector<CandidateId> ids;
  for (const CandidateInfo& info : menu()) {
    if (info.path != Path::nccl) ids.push_back(info.id);
  }
  return ids;
}

bool may_run(CandidateId id, int ranks) {
  return refusal(info_of(id), {.ranks = ranks, .peer_access = true}).empty();
}

std::vector<std::tuple<CandidateId, int, DType>> candidates_of_all_groups() {
  std::vector<std::tuple<CandidateId, int, DType>> all;
  for (const CandidateId id : candidates()) {
    for (const int ranks : {2, 3, 4, 5, 8, 16}) {
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        if (may_run(id, ranks)) all.emplace_back(id, ranks, dtype);
      }
    }
  }
  return all;
}

std::string word(CandidateId id) {
  std::string name(info_of(id).name);
  for (char& c : name) c = c == '/' || c == '-' ? '_' : c;
  return name;
}

class EveryCandidate : public testing::TestWithParam<std::tuple<CandidateId, int, DType>> {};

// The main property: whatever count, offset and geometry, all ranks hold the sum of the candidate's class, bit for bit, and
// nothing beside it. Data differ from call to call, so a slot left from an earlier call can't look right.
TEST_P(EveryCandidate, GivesTheSumOfItsClassAtAnyCountOffsetAndGeometry) {
  const auto [id, ranks, dtype] = GetParam();
  HostGroup group(ranks, kMaxBytes, std::chrono::seconds(60));
  std::uint64_t call = 0;
  // Many ranks are many threads on few cores: fewer counts there.
  const std::vector<std::size_t> counts = ranks <= 5 ? std::vector<std::size_t>{1, 2, 3, 5, 8, 127, 256, 257, 1031}
                                                     : std::vector<std::size_t>{1, 7, 129, 1031};  // the last: several launches
  for (const std::size_t count : counts) {
    for (const std::size_t offset : {0, 1, 3}) {
      for (const bool in_place : {false, true}) {
        ++call;
        const Geometry geometry{
            .blocks = static_cast<int>(1 + call % (ranks <= 5 ? 3 : 2)), .threads = 32, .chunk_bytes = 16 + call * 37 % 500};
        Ranks buffers(ranks, dtype, count, offset, in_place);
        buffers.fill(call);
        const Status done = buffers.reduce(group, id, geometry);
        ASSERT_TRUE(done) << done.error().message;
        SCOPED_TRACE(testing::Message() << "count " << count << " offset " << offset << " in place " << in_place);
        buffers.expect_right(id);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Menu, EveryCandidate, testing::ValuesIn(candidates_of_all_groups()), [](const auto& of) {
  return word(std::get<0>(of.param)) + "_" + std::to_string(std::get<1>(of.param)) + "_" +
         std::string(to_string(std::get<2>(of.param)));
});

// A NaN of all ones is what an empty place shows in the sentinel protocols: it must neither hang nor turn into a number.
TEST_P(EveryCandidate, CarriesNaNsOfAllOnes) {
  const auto [id, ranks, dtype] = GetParam();
  HostGroup group(ranks, kMaxBytes, std::chrono::seconds(60));
  for (const std::size_t count : {1, 2, 9, 100}) {
    Ranks buffers(ranks, dtype, count, 0, false);
    buffers.fill(count, true);
    const Status done = buffers.reduce(group, id, {.blocks = 1, .threads = 32, .chunk_bytes = 64});
    ASSERT_TRUE(done) << done.error().message;
    buffers.expect_right(id);
    if (HasFatalFailure()) return;
  }
}

class LossyWire : public testing::TestWithParam<std::tuple<CandidateId, int>> {};

// Where libartune serves it: one-shot and two-shot, staged.
TEST_P(LossyWire, RoundsEveryContributionAlikeOnAllRanks) {
  const auto [id, ranks] = GetParam();
  HostGroup group(ranks, kMaxBytes, std::chrono::seconds(60));
  std::uint64_t call = 0;
  for (const std::size_t count : {1, 3, 4, 9, 127, 256, 600}) {
    for (const std::size_t offset : {0, 1}) {
      for (const bool in_place : {false, true}) {
        ++call;
        Ranks buffers(ranks, DType::f32, count, offset, in_place);
        buffers.fill(call);
        const Status done = buffers.reduce(group, id, {.blocks = static_cast<int>(1 + call % 3), .threads = 32}, true);
        ASSERT_TRUE(done) << done.error().message;
        SCOPED_TRACE(testing::Message() << "count " << count << " offset " << offset << " in place " << in_place);
        buffers.expect_right(id);
        if (HasFatalFailure()) return;
      }
    }
  }
}

std::vector<std::tuple<CandidateId, int>> candidates_with_a_lossy_wire() {
  std::vector<std::tuple<CandidateId, int>> all;
  for (const CandidateId id : candidates()) {
    const CandidateInfo& info = info_of(id);
    if ((info.algorithm != Algorithm::one_shot && info.algorithm != Algorithm::two_shot) || info.staging == Staging::none)
      continue;
    for (const int ranks : {2, 3, 4}) {
      if (may_run(id, ranks)) all.emplace_back(id, ranks);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Menu, LossyWire, testing::ValuesIn(candidates_with_a_lossy_wire()), [](const auto& of) {
  return word(std::get<0>(of.param)) + "_" + std::to_string(std::get<1>(of.param));
});

class AcrossTheWrap : public testing::TestWithParam<std::tuple<CandidateId, std::uint64_t>> {};

// Message sizes alternate, so packets of the long calls lie around while the short ones run over the wrap.
TEST_P(AcrossTheWrap, EpochsPassTheirWrapWithoutAWrongSum) {
  constexpr std::uint64_t kBefore = 1000;
  const auto [id, wrap] = GetParam();
  const int ranks = may_run(id, 3) ? 3 : 4;
  HostGroup group(ranks, 512, std::chrono::seconds(60));
  group.start_at_epoch(wrap - kBefore);
  for (std::uint64_t call = 0; call < kBefore + 20; ++call) {
    Ranks buffers(ranks, DType::bf16, call % 3 == 0 ? 256 : 1 + call * 7 % 40, 0, false);
    buffers.fill(call);
    // Two blocks where it may matter; more threads only make the way there longer.
    const Status done =
        buffers.reduce(group, id, {.blocks = call + 20 < kBefore ? 1 : static_cast<int>(1 + call % 2), .threads = 32});
    ASSERT_TRUE(done) << done.error().message;
    buffers.expect_right(id);
    if (HasFatalFailure()) return;
  }
}

// 0 is 2^64; the LL tag wraps every 2^32 - 1 calls, a 32-bit counter every 2^32.
INSTANTIATE_TEST_SUITE_P(Menu, AcrossTheWrap,
                         testing::Combine(testing::ValuesIn(candidates()), testing::Values(0ULL, kTagPeriod)),
                         [](const auto& of) {
                           return word(std::get<0>(of.param)) + (std::get<1>(of.param) == 0 ? "_64" : "_32");
                         });

class LlWrap : public testing::TestWithParam<CandidateId> {};

// A tag repeats in one slot after two periods. What a long call left there then must be gone.
TEST_P(LlWrap, ATagOfTwoPeriodsAgoIsCleared) {
  constexpr int kRanks = 3;
  constexpr std::uint64_t kOld = 10;  // even: slot 0
  std::vector<FailureReport> reports(kRanks);
  std::uint32_t abort = 0;
  HostFamily family(GetParam(), kRanks, 512, [&](int rank) { return Bounds{nullptr, &reports[rank], &abort, 300'000'000}; });
  std::vector<std::vector<float>> inputs(kRanks, std::vector<float>(128, 1.0F)), outputs = inputs;
  HostCall call{.form = Form::f32, .inputs = {}, .outputs = {}};
  for (int rank = 0; rank < kRanks; ++rank) {
    call.inputs.push_back(inputs[rank].data());
    call.outputs.push_back(outputs[rank].data());
  }
  const auto run = [&](std::uint64_t epoch, std::size_t count, int ranks) {
    family.start_at(epoch);
    call.count = count;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&, rank] { family.run(call, rank, 0); });
  };
  const auto failed = [&] { return reports[0].present + reports[1].present + reports[2].present; };
  run(kOld, 128, kRanks);      // fills slot 0 with tags of epoch 10
  run(kTagPeriod, 1, kRanks);  // the wrap: slots 1 and 0 are cleared beyond what these two calls write
  run(kTagPeriod + 1, 1, kRanks);
  ASSERT_EQ(failed(), 0U);
  // The same tag in the same slot again. Rank 2 is missing: the others must not take its packets of epoch 10 for new ones.
  ASSERT_EQ(ll_index(kOld), ll_index(kOld + 2 * kTagPeriod));
  run(kOld + 2 * kTagPeriod, 128, kRanks - 1);
  EXPECT_EQ(failed(), 2U) << "a packet of two periods ago was taken for a new one";
}

INSTANTIATE_TEST_SUITE_P(Menu, LlWrap,
                         testing::Values(CandidateId::p2p_one_shot_ll, CandidateId::p2p_two_shot_ll,
                                         CandidateId::host_one_shot_ll),
                         [](const auto& of) { return word(of.param); });

class MissingRank : public testing::TestWithParam<CandidateId> {};

TEST_P(MissingRank, IsNamedWithinTheTimeoutAndTheOutputIsNaN) {
  const CandidateId id = GetParam();
  const int ranks = may_run(id, 3) ? 3 : 4;
  HostGroup group(ranks, 512, std::chrono::milliseconds(200));
  group.leave_out(2);
  Ranks buffers(ranks, DType::bf16, 50, 0, false);
  buffers.fill(1);
  const auto started = std::chrono::steady_clock::now();
  const Status done = buffers.reduce(group, id, {.blocks = 1, .threads = 32});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, Reason::hang);
  // Where ranks hear of each other through third ones, the one that is named may itself be waiting for the missing one.
  const bool through_others = info_of(id).algorithm == Algorithm::ring || info_of(id).algorithm == Algorithm::hierarchical;
  EXPECT_THAT(done.error().message, testing::HasSubstr(through_others ? "and gave up" : "waited for rank 2 and gave up"));
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(10));
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(rank == 2 || buffers.all_nan(rank)) << "rank " << rank;
  }
  // The failure is sticky: later calls fail with the same report.
  const Status again = buffers.reduce(group, id, {.blocks = 1, .threads = 32});
  ASSERT_FALSE(again);
}

INSTANTIATE_TEST_SUITE_P(Menu, MissingRank, testing::ValuesIn(candidates()), [](const auto& of) { return word(of.param); });

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
  EXPECT_EQ(float_to_f16(1.0F + 0x1p-11F), 0x3c00);      // tie: down to even
  EXPECT_EQ(float_to_f16(1.0F + 3 * 0x1p-11F), 0x3c02);  // tie: up to even
  EXPECT_EQ(float_to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-24F), 1);
  EXPECT_EQ(float_to_f16(0x1p-25F), 0);  // tie: down to even
  EXPECT_EQ(float_to_f16(0x1.8p-25F), 1);
  EXPECT_EQ(float_to_bf16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(float_to_bf16(1.0F + 3 * 0x1p-8F), 0x3f82);
  EXPECT_EQ(float_to_bf16(3.4e38F), 0x7f80);
}

}  // namespace
}  // namespace artune
