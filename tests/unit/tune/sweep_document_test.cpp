// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "corpus/corpus_check.hpp"

#include "sweep/sweep.hpp"
#include "sweep_builder.hpp"

namespace artune {
namespace {

TEST(SweepCorpus, ReaderAndSchemaAgree) { test::check_corpus("sweep", sweep_from_json, sweep_to_text); }

TEST(SweepDocument, KeepsEveryField) {
  Sweep sweep = test::SweepBuilder().row("nccl", 1024, 13.5).left_out("ce/push", 2048, "crash", "sticky error 700").build();
  sweep.complete = false;
  sweep.noise_floor_percent = 0.75;
  sweep.rows[0].isolated_us = 20.25;
  sweep.rows[0].host_us = 3.5;
  sweep.rows[0].limit_us = 1.5;
  sweep.rows[0].algbw_gb_per_s = 0.25;
  sweep.rows[0].samples_us.assign(15, 13.5);
  sweep.verdicts.push_back({0, 1, Path::ce, "hangs", "no answer in 1 s", 0.5});
  const Result<Sweep> read = sweep_from_json(sweep_to_json(sweep), "s");
  ASSERT_TRUE(static_cast<bool>(read)) << read.error().message;
  EXPECT_EQ(sweep_to_text(*read), sweep_to_text(sweep));
  const SweepRow& row = read->rows.at(0);
  EXPECT_EQ(row.candidate, sweep.rows[0].candidate);
  EXPECT_EQ(row.shape, sweep.rows[0].shape);
  EXPECT_EQ(row.isolated_us, 20.25);
  EXPECT_EQ(row.host_us, 3.5);
  EXPECT_EQ(row.limit_us, 1.5);
  EXPECT_EQ(row.algbw_gb_per_s, 0.25);
  EXPECT_EQ(row.samples_us, sweep.rows[0].samples_us);
  EXPECT_EQ(read->left_out.at(0).detail, "sticky error 700");
  EXPECT_EQ(read->verdicts.at(0).one_way_us, 0.5);
  EXPECT_FALSE(read->complete);
  EXPECT_EQ(read->noise_floor_percent, 0.75);
}

TEST(SweepDocument, EachRowStandsOnOneLine) {
  const std::string text = sweep_to_text(test::SweepBuilder().row("nccl", 1024, 13.5).row("nccl", 2048, 14.5).build());
  EXPECT_NE(text.find("\n    {\"candidate\": \"nccl\", \"max_ctas\": 8, \"op\": \"all_reduce\""), std::string::npos) << text;
}

TEST(SweepDocument, MissingFileSaysWhy) {
  EXPECT_EQ(read_sweep("/nonexistent/sweep.json").error().message,
            "can't read /nonexistent/sweep.json: No such file or directory");
}

}  // namespace
}  // namespace artune
