// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "soak/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace artune::soak {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Tally example() {
  Tally tally;
  tally.ranks = {2, 4};
  tally.calls[{CandidateId::p2p_one_shot_ll, Form::bf16}] = {{2, {9000, 1200}}, {4, {90, 12}}};
  tally.calls[{CandidateId::p2p_two_shot_ll, Form::f32_over_bf16}] = {{4, {20'000, 3000}}};
  tally.seconds = {{2, 1.0}, {4, 2.0}};
  tally.unavailable[2][CandidateId::p2p_two_shot_ll] = "serves 3 to 16 ranks, not 2";
  tally.complete = true;
  return tally;
}

TEST(Table, HasARowACellAndAColumnAGroup) {
  const std::string text = tally_text(example(), std::nullopt);
  EXPECT_THAT(text, HasSubstr("p2p/one-shot/ll bf16"));
  EXPECT_THAT(text, HasSubstr("9000 + 1200"));
  EXPECT_THAT(text, HasSubstr("p2p/two-shot/ll f32-over-bf16"));
  EXPECT_THAT(text, HasSubstr("20090 + 3012"));
  EXPECT_THAT(text, HasSubstr("not on 2 ranks: p2p/two-shot/ll: serves 3"));
  EXPECT_THAT(text, HasSubstr("33302 calls in 3.0 s, 11101 calls/s, 13 % eager, seed 1: nothing wrong"));
  EXPECT_THAT(text, Not(HasSubstr("fewer than"))) << "no full run";
}

TEST(Table, OfAFullRunNamesCellsThatFellShort) {
  Tally tally = example();
  tally.calls[{CandidateId::ce_push, Form::f32}] = {{2, {kFullRun, 0}}};
  const std::string text = tally_text(tally, std::nullopt);
  EXPECT_THAT(text, HasSubstr("fewer than 10000 calls:\n  p2p/one-shot/ll bf16 on 4 ranks: 102\n"));
  EXPECT_THAT(text, Not(HasSubstr("bf16 on 2 ranks: 10200")));
}

TEST(Table, SaysWhatEndedIt) {
  EXPECT_THAT(tally_text(example(), Error{Reason::hang, "rank 1 waits"}), HasSubstr("seed 1: rank 1 waits\n"));
}

TEST(Document, HasTheSameCounts) {
  const Json document = tally_json(example(), Error{Reason::wrong_sum, "wrong"});
  EXPECT_EQ(document["calls"], 33302);
  EXPECT_EQ(document["graph"], 29090);
  EXPECT_EQ(document["rows"].size(), 3U);
  EXPECT_EQ(document["rows"][0],
            (Json{{"candidate", "p2p/one-shot/ll"}, {"dtype", "bf16"}, {"ranks", 2}, {"graph", 9000}, {"eager", 1200}}));
  EXPECT_EQ(document["groups"][0]["unavailable"][0]["candidate"], "p2p/two-shot/ll");
  EXPECT_EQ(document["info"]["exit"]["reason"], "wrong-sum");
  EXPECT_FALSE(tally_json(example(), std::nullopt).contains("info"));
}

TEST(WrongSum, SaysWhereAndHowToRepeat) {
  Wrong wrong{.candidate = "p2p/one-shot/ll",
              .form = Form::bf16,
              .ranks = 4,
              .rank = 2,
              .call = {},
              .graph = true,
              .replay = 17,
              .index = 40,
              .got = 0x3f80,
              .expected = 0x4000,
              .count = 3,
              .seed = 9};
  wrong.call.number = 1234;
  wrong.call.count = 100;
  wrong.call.geometry = {.blocks = 8, .threads = 96};
  wrong.call.output_offset[2] = 5;
  const std::string text = wrong_text(wrong);
  EXPECT_THAT(text, HasSubstr("p2p/one-shot/ll 8x96 bf16, 4 ranks, rank 2: element 40 is 1 (0x3f80), not 2 (0x4000)"));
  EXPECT_THAT(text, HasSubstr("call 1234, graph replay 17, count 100, offsets in 0 out 5 elements, out of place; 3 wrong"));
  EXPECT_THAT(text, HasSubstr("artune-soak --seed 9 --ranks 4 "));
  EXPECT_THAT(text, HasSubstr("--only 'p2p/one-shot/ll' --dtype bf16"));
  wrong.what = Wrong::What::guard_after;
  EXPECT_THAT(wrong_text(wrong), HasSubstr("byte 40 after the output was overwritten with 0x3f80"));
}

}  // namespace
}  // namespace artune::soak
