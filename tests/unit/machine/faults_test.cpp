// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/faults.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace artune {
namespace {

TEST(ParseFaults, ReadsKindGlobAndSize) {
  const auto faults = parse_faults("crash:p2p/one-shot/ll@4K,hang:host/*");
  ASSERT_TRUE(faults) << faults.error().message;
  ASSERT_EQ(faults->size(), 2U);
  EXPECT_EQ((*faults)[0].kind, FaultKind::crash);
  EXPECT_EQ((*faults)[0].candidate_glob, "p2p/one-shot/ll");
  EXPECT_EQ((*faults)[0].bytes, 4096U);
  EXPECT_EQ((*faults)[1].kind, FaultKind::hang);
  EXPECT_EQ((*faults)[1].candidate_glob, "host/*");
  EXPECT_FALSE((*faults)[1].bytes);
  EXPECT_TRUE(parse_faults("")->empty());
}

TEST(ParseFaults, NamesTheWordItCannotRead) {
  for (const char* text : {"explode:nccl", "crash", "crash:nccl@9Q"}) {
    const auto faults = parse_faults(text);
    ASSERT_FALSE(faults) << text;
    EXPECT_EQ(faults.error().reason, Reason::usage);
  }
  EXPECT_NE(parse_faults("explode:nccl").error().message.find("explode"), std::string::npos);
}

TEST(FaultFor, MatchesNameAndSize) {
  ASSERT_EQ(::setenv("ARTUNE_TEST_FAULT", "wrong:ce/*@1K,exit:nccl", 1), 0);  // read once per process: only this test asks
  EXPECT_EQ(fault_for({"ce/push", {}}, 1024), FaultKind::wrong);
  EXPECT_EQ(fault_for({"ce/push", {}}, 2048), std::nullopt);
  EXPECT_EQ(fault_for({"nccl", {}}, 5), FaultKind::exit);
  EXPECT_EQ(fault_for({"host/one-shot/ll", {}}, 1024), std::nullopt);
}

}  // namespace
}  // namespace artune
