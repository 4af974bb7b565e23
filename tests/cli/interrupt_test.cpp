// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C: the first keeps what was measured, the second ends everything at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "run_tool.hpp"

namespace artune::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::EndsWith;
using Json = nlohmann::ordered_json;

/// More shapes than a few seconds can measure.
std::vector<std::string> long_sweep(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--rig", "rtx4070-rtx3060-x4", "--min", "1K", "--max", "64K", "--factor", "1.05", "--budget", "10m"});
  return arguments;
}

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 3000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(condition());
}

std::size_t lines_of(const std::string& text) { return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')); }

TEST(Interrupt, KeepsWhatWasMeasuredAndGoesOnWithResume) {
  Tool tool;
  const pid_t pid = tool.start(long_sweep({"sweep", "-o", "s.json"}));
  wait_for([&] { return lines_of(tool.read("s.json.journal")) >= 3; });
  ::kill(pid, SIGINT);
  const Ran ran = tool.finish(pid);
  EXPECT_EQ(ran.status, 130);
  EXPECT_THAT(ran.last_error_line(), EndsWith("[interrupted]"));
  const Json document = Json::parse(tool.read("s.json"));
  EXPECT_EQ(document["complete"], false);
  EXPECT_GT(document["rows"].size(), 0U);
  EXPECT_EQ(document["info"]["exit"]["reason"], "interrupted");
  EXPECT_EQ(document["info"]["exit"]["exit_status"], 130);
  EXPECT_EQ(tool.run({"tune", "--from", "s.json", "-o", "p.json"}).status, 0) << "what is there is good to decide from";

  const std::size_t before = lines_of(tool.read("s.json.journal"));
  const pid_t again = tool.start(long_sweep({"sweep", "-o", "s.json", "--resume"}));
  // More than the one line that resuming itself may add.
  wait_for([&] { return lines_of(tool.read("s.json.journal")) >= before + 3; });
  ::kill(again, SIGINT);
  EXPECT_EQ(tool.finish(again).status, 130);
  EXPECT_GT(Json::parse(tool.read("s.json"))["rows"].size(), document["rows"].size()) << "old rows and new ones";
}

TEST(Interrupt, TuneKeepsTheSweepAndWritesNoProfile) {
  Tool tool;
  const pid_t pid = tool.start(long_sweep({"tune", "-o", "p.json"}));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  ::kill(pid, SIGINT);
  const Ran ran = tool.finish(pid);
  EXPECT_EQ(ran.status, 130) << ran.err;
  EXPECT_THAT(ran.last_error_line(), HasSubstr("ar-tune tune --from p.sweep.json"));
  EXPECT_FALSE(std::filesystem::exists(tool.file("p.json")));
  EXPECT_EQ(Json::parse(tool.read("p.sweep.json"))["kind"], "ar-tune/sweep");
}

#ifdef ARTUNE_TEST_FAULTS
TEST(Interrupt, SecondOneEndsEverythingAtOnce) {
  Tool tool;
  tool.environment["ARTUNE_TEST_FAULT"] = "hang:*";   // the first Ctrl-C would be obeyed only at the deadline of ten minutes
  const pid_t pid = tool.start(long_sweep({"sweep", "--timeout", "10m"}));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto begin = std::chrono::steady_clock::now();
  ::kill(pid, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(pid, SIGINT);
  EXPECT_EQ(tool.finish(pid).status, 128 + SIGINT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}
#endif

}  // namespace
}  // namespace artune::testing
