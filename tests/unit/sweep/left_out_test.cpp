// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "sweep/left_out.hpp"

#include <gtest/gtest.h>

namespace artune {
namespace {

LeftOut entry(const std::string& name, std::size_t bytes, const std::string& reason, const std::string& detail, Mode mode = Mode::graph) {
  Shape shape;
  shape.bytes = bytes;
  shape.mode = mode;
  return {{name, {}}, shape, reason, detail};
}

TEST(Collapse, OneReasonAtSeveralSizesBecomesOneEntryPerBlock) {
  const auto kept = collapse({entry("nccl", 1024, "unavailable", "no NCCL"), entry("nccl", 2048, "unavailable", "no NCCL"),
                              entry("nccl", 1024, "unavailable", "no NCCL", Mode::eager), entry("nccl", 2048, "unavailable", "no NCCL", Mode::eager)});
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].shape.bytes, 0u);
  EXPECT_EQ(kept[0].shape.mode, Mode::graph);
  EXPECT_EQ(kept[1].shape.mode, Mode::eager);
}

TEST(Collapse, KeepsWhatCannotBeSaidInOne) {
  // A single size, two reasons in one block, and entries about one geometry stay exact.
  EXPECT_EQ(collapse({entry("nccl", 1024, "error", "x")})[0].shape.bytes, 1024u);
  const auto two = collapse({entry("nccl", 1024, "unavailable", "a"), entry("nccl", 2048, "unavailable", "b"), entry("nccl", 4096, "unavailable", "b")});
  ASSERT_EQ(two.size(), 3u);
  EXPECT_EQ(two[1].shape.bytes, 2048u);
  LeftOut pruned = entry("nccl", 1024, "pruned", "slow");
  pruned.candidate.geometry.max_ctas = 8;
  LeftOut again = pruned;
  again.shape.bytes = 2048;
  EXPECT_EQ(collapse({pruned, again}).size(), 2u);
}

TEST(Bars, HangsAndCrashesBarEverywhereWrongSumsOnlyTheirKind) {
  Bars bars;
  bars.learn({entry("a", 1024, "hang", "x"), entry("b", 1024, "wrong-sum", "x"), entry("c", 1024, "pruned", "x"), entry("d", 1024, "error", "x")});
  Shape same, other;
  same.bytes = other.bytes = 4096;
  other.dtype = DType::f32;
  EXPECT_TRUE(bars.refuse("a", same));
  EXPECT_TRUE(bars.refuse("a", other));
  ASSERT_TRUE(bars.refuse("b", same));
  EXPECT_EQ(bars.refuse("b", same)->detail, "not tried again after the wrong sum at 1K bf16, 2 ranks, graph");
  EXPECT_EQ(bars.refuse("b", same)->reason, "wrong-sum");
  EXPECT_FALSE(bars.refuse("b", other));
  other.dtype = DType::bf16;
  other.ranks = 4;
  EXPECT_FALSE(bars.refuse("b", other));
  EXPECT_FALSE(bars.refuse("c", same));
  EXPECT_FALSE(bars.refuse("d", same));
}

TEST(Bars, ARefusalIsNoVerdictOfItsOwn) {
  Bars bars, later;
  bars.learn({entry("a", 1024, "wrong-sum", "x")});
  Shape shape;
  shape.bytes = 4096;
  later.learn({*bars.refuse("a", shape)});
  EXPECT_FALSE(later.refuse("a", shape));
}

}  // namespace
}  // namespace artune
