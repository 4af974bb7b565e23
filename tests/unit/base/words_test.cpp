// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

#include <gtest/gtest.h>

#include <set>

namespace artune {
namespace {

template <typename Enum>
class Words : public testing::Test {};
using AllWords = testing::Types<Op, DType, Mode, Launch, Load, Regime, Path, Numerics>;
TYPED_TEST_SUITE(Words, AllWords);

TYPED_TEST(Words, EverySpellingIsUniqueAndReadsBack) {
  std::set<std::string_view> spellings;
  std::size_t place = 0;
  for (const auto& entry : WordTable<TypeParam>::entries) {
    EXPECT_EQ(to_string(entry.value), entry.spelling);
    EXPECT_EQ(parse_word<TypeParam>(entry.spelling), entry.value);
    EXPECT_TRUE(spellings.insert(entry.spelling).second) << entry.spelling;
    EXPECT_EQ(static_cast<std::size_t>(entry.value), place++) << "tables are indexed by the value";
    EXPECT_NE(word_list<TypeParam>().find(entry.spelling), std::string::npos);
  }
}

TYPED_TEST(Words, NothingElseIsRead) {
  for (const char* text : {"", "?", " ", "BF16", "bf16 ", "float", "all-reduce", "graph,eager", "ncc", "nccl2"}) {
    EXPECT_EQ(parse_word<TypeParam>(text), std::nullopt) << text;
  }
}

TEST(WordList, NamesTheWayOut) {
  EXPECT_EQ(word_list<DType>(), "f32, f16, bf16");
  EXPECT_EQ(element_bytes(DType::f32), 4U);
  EXPECT_EQ(element_bytes(DType::bf16), 2U);
  EXPECT_EQ(element_bytes(DType::f16), 2U);
}

}  // namespace
}  // namespace artune
