// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A candidate that crashes, hangs or lies becomes a row with its reason, and the sweep goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "run_tool.hpp"

namespace artune::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

struct FaultCase {
  const char* name;
  std::string fault;
  std::string reason;    ///< word in left_out and behind the line of --strict
  std::string detail;

  friend std::ostream& operator<<(std::ostream& out, const FaultCase& one) { return out << one.fault; }
};

class FaultTest : public ::testing::TestWithParam<FaultCase> {
 protected:
  Ran sweep(std::vector<std::string> more) {
    tool_.environment["ARTUNE_TEST_FAULT"] = GetParam().fault + ":ce/push";
    std::vector<std::string> arguments{"sweep", "--json", "--rig", "rtx4070-rtx3060-x4", "--sizes", "16K,64K", "--mode", "graph",
                                       "--budget", "5s", "--timeout", "1s"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return tool_.run(arguments);
  }
  Tool tool_;
};

TEST_P(FaultTest, IsARowWithItsReasonAndTheSweepGoesOn) {
  const Ran ran = sweep({});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const Json document = Json::parse(ran.out);
  EXPECT_EQ(document["complete"], true);
  std::set<std::size_t> sizes_of_another;
  for (const Json& row : document["rows"]) {
    EXPECT_NE(row["candidate"], "ce/push") << "a bad candidate has no figure";
    if (row["candidate"] == "p2p/one-shot/ll") sizes_of_another.insert(row["bytes"].get<std::size_t>());
  }
  EXPECT_EQ(sizes_of_another, (std::set<std::size_t>{16384, 65536})) << "the others are measured all the same";
  const Json& left_out = document["left_out"];
  const auto entry = std::find_if(left_out.begin(), left_out.end(), [](const Json& row) { return row["candidate"] == "ce/push"; });
  ASSERT_NE(entry, left_out.end());
  EXPECT_EQ((*entry)["reason"], GetParam().reason);
  EXPECT_THAT((*entry)["detail"].get<std::string>(), HasSubstr(GetParam().detail));
}

TEST_P(FaultTest, StrictMakesItStatus4) {
  const Ran ran = sweep({"--strict"});
  EXPECT_EQ(ran.status, 4) << ran.err;
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("ce/push"), EndsWith("[" + GetParam().reason + "]")));
  const Json document = Json::parse(ran.out);
  EXPECT_EQ(document["kind"], "ar-tune/sweep") << "the document is printed all the same";
  EXPECT_EQ(document["info"]["exit"]["exit_status"], 4);
  EXPECT_EQ(document["info"]["exit"]["reason"], GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultTest,
                         ::testing::Values(FaultCase{"Crash", "crash", "crash", "SIGSEGV"}, FaultCase{"Exit", "exit", "crash", "status 7"},
                                           FaultCase{"Hang", "hang", "hang", "no answer within 3 s"},
                                           FaultCase{"Wrong", "wrong", "wrong-sum", "rank 0, element 0"}),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST(Faults, TuneUsesABadCandidateNowhere) {
  Tool tool;
  tool.environment["ARTUNE_TEST_FAULT"] = "wrong:p2p/*";
  const Ran ran = tool.run({"tune", "--json", "--rig", "rtx4070-rtx3060-x4", "--sizes", "16K,64K", "--mode", "graph", "--budget", "5s", "-o", "p.json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const Json document = Json::parse(ran.out);
  for (const Json& range : document["tables"][0]["ranges"]) EXPECT_THAT(range["use"].get<std::string>(), ::testing::Not(HasSubstr("p2p")));
}

TEST(Faults, NothingLeftToMeasureIsStatus3) {
  Tool tool;
  tool.environment["ARTUNE_TEST_FAULT"] = "exit:*";
  const Ran ran = tool.run({"sweep", "--rig", "rtx4070-rtx3060-x4", "--sizes", "4K", "--mode", "graph"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.last_error_line(), EndsWith("[no-candidate]"));
}

}  // namespace
}  // namespace artune::testing
