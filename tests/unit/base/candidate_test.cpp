// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/candidate.hpp"

#include <gtest/gtest.h>

namespace artune {
namespace {

TEST(Candidate, LabelShowsOnlyWhatApplies) {
  EXPECT_EQ((Candidate{"p2p/one-shot/ll", {.blocks = 8, .threads = 512}}.label()), "p2p/one-shot/ll 8x512");
  EXPECT_EQ((Candidate{"nccl", {.max_ctas = 8}}.label()), "nccl ctas=8");
  EXPECT_EQ((Candidate{"host/copy-engine", {.chunk_bytes = 524288}}.label()), "host/copy-engine chunk=512K");
  EXPECT_EQ((Candidate{"ce/push", {}}.label()), "ce/push");
}

}  // namespace
}  // namespace artune
