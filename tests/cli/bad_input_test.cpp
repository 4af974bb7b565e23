// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What people get wrong: each is one line that names the thing and the way out, a status, and a reason word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "run_tool.hpp"

namespace artune::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kRig = "rtx4070-rtx3060-x4";

struct BadInput {
  const char* name;
  std::vector<std::string> arguments;
  int status;
  std::string reason;
  std::vector<std::string> says;   ///< the thing and the way out

  friend std::ostream& operator<<(std::ostream& out, const BadInput& input) { return out << input.name; }
};

class BadInputTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, IsOneLineWithStatusAndReason) {
  const BadInput& input = GetParam();
  Tool tool;
  const Ran ran = tool.run(input.arguments);
  EXPECT_EQ(ran.status, input.status) << ran.err;
  EXPECT_EQ(ran.err, ran.last_error_line() + "\n") << "one line, and nothing before it";
  EXPECT_THAT(ran.err, AllOf(StartsWith("ar-tune: "), EndsWith("[" + input.reason + "]\n")));
  for (const std::string& text : input.says) EXPECT_THAT(ran.err, HasSubstr(text));
  EXPECT_EQ(ran.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Words, BadInputTest,
    ::testing::Values(
        BadInput{"NoVerb", {}, 2, "usage", {"no verb", "ar-tune --help"}},
        BadInput{"UnknownVerb", {"sweap"}, 2, "usage", {"'sweap'", "did you mean 'sweep'"}},
        BadInput{"VerbLikeNone", {"xyzzy"}, 2, "usage", {"'xyzzy'", "ar-tune --help"}},
        BadInput{"UnknownFlag", {"sweep", "--rig", kRig, "--siez", "4K"}, 2, "usage", {"'--siez'", "did you mean '--sizes'"}},
        BadInput{"UnknownFlagWithValue", {"tune", "--dtypes=bf16"}, 2, "usage", {"'--dtypes'", "did you mean '--dtype'"}},
        BadInput{"UnknownWord", {"sweep", "4K"}, 2, "usage", {"'4K'", "ar-tune sweep --help"}},
        BadInput{"FlagBeforeVerb", {"--json", "sweep"}, 2, "usage", {"'--json'", "after 'sweep'"}},
        BadInput{"FlagWithoutValue", {"sweep", "--rig"}, 2, "usage", {"--rig"}},
        BadInput{"SizeWord", {"sweep", "--rig", kRig, "--sizes", "4Q"}, 2, "usage", {"'4Q'", "64K"}},
        BadInput{"SizeWordOfMemory", {"sweep", "--rig", kRig, "--max-memory", "lots"}, 2, "usage", {"--max-memory", "'lots'"}},
        BadInput{"DurationWithoutUnit", {"sweep", "--rig", kRig, "--timeout", "5"}, 2, "usage", {"--timeout", "'5'", "10s"}},
        BadInput{"DurationTooLong", {"sweep", "--rig", kRig, "--timeout", "60m"}, 2, "usage", {"--timeout", "10m"}},
        BadInput{"ComputeAlone", {"sweep", "--rig", kRig, "--compute-us", "5000"}, 2, "usage", {"'5000'", "--overlap"}},
        BadInput{"ComputeWord", {"tune", "--rig", kRig, "--overlap", "--compute-us", "5ms"}, 2, "usage", {"'5ms'", "microseconds"}},
        BadInput{"DtypeWord", {"sweep", "--rig", kRig, "--dtype", "float"}, 2, "usage", {"'float'", "bf16"}},
        BadInput{"WireWord", {"sweep", "--rig", kRig, "--wire", "fp8"}, 2, "usage", {"'fp8'", "native", "bf16"}},
        BadInput{"WireWithoutF32", {"sweep", "--rig", kRig, "--wire", "bf16"}, 2, "usage", {"'bf16'", "add f32 to --dtype"}},
        BadInput{"TuneWireWithoutF32", {"tune", "--rig", kRig, "--wire", "bf16", "--dtype", "f16"}, 2, "usage", {"dtype is f16"}},
        BadInput{"ModeWord", {"sweep", "--rig", kRig, "--mode", "grpah"}, 2, "usage", {"'grpah'", "graph"}},
        BadInput{"PathWord", {"sweep", "--rig", kRig, "--path", "pcie"}, 2, "usage", {"'pcie'", "p2p"}},
        BadInput{"Candidate", {"sweep", "--rig", kRig, "--candidate", "p2p/two-shot"}, 2, "usage", {"'p2p/two-shot'", "p2p/one-shot/ll"}},
        BadInput{"DeviceIndex", {"sweep", "--rig", kRig, "--devices", "0,7"}, 2, "usage", {"'7'", "0000:01:00.0"}},
        BadInput{"DeviceWord", {"sweep", "--rig", kRig, "--devices", "first"}, 2, "usage", {"'first'", "0000:01:00.0"}},
        BadInput{"DeviceTwice", {"sweep", "--rig", kRig, "--devices", "1,1"}, 2, "usage", {"'1'", "--ranks-per-gpu"}},
        BadInput{"OneGpu", {"sweep", "--rig", kRig, "--devices", "0"}, 2, "usage", {"two ranks", "name two"}},
        BadInput{"MoreRanksThanGpus", {"sweep", "--rig", kRig, "--ranks", "4"}, 2, "usage", {"'4'", "--ranks-per-gpu"}},
        BadInput{"RanksPerGpuOfARig", {"sweep", "--rig", kRig, "--ranks-per-gpu", "2"}, 2, "usage", {"--ranks-per-gpu"}},
        BadInput{"RanksPerGpuTooMany", {"sweep", "--rig", kRig, "--ranks-per-gpu", "99"}, 2, "usage", {"--ranks-per-gpu", "8"}},
        BadInput{"RigName", {"sweep", "--rig", "nope"}, 2, "usage", {"'nope'", kRig}},
        BadInput{"RigFile", {"sweep", "--rig", "./nope.json"}, 2, "unreadable-input", {"./nope.json"}},
        BadInput{"NcclOnARig", {"sweep", "--rig", kRig, "--nccl", "x.so"}, 2, "usage", {"--nccl"}},
        BadInput{"ProfileWithoutTuned", {"sweep", "--rig", kRig, "--profile", "p.json"}, 2, "usage", {"--path tuned"}},
        BadInput{"ResumeWithoutOutput", {"sweep", "--rig", kRig, "--resume"}, 2, "usage", {"--resume", "-o"}},
        BadInput{"TunedWithoutProfile", {"sweep", "--rig", kRig, "--path", "tuned"}, 2, "unreadable-input", {"ar-tune tune", "--profile"}},
        BadInput{"NumericsWord", {"tune", "--rig", kRig, "--numerics", "exact"}, 2, "usage", {"'exact'", "uniform"}},
        BadInput{"ColorWord", {"version", "--color", "maybe"}, 2, "usage", {"--color", "always"}},
        BadInput{"ExplainWithoutBytes", {"explain", "p.json"}, 2, "usage", {"--bytes"}},
        BadInput{"OutputInNoFolder", {"sweep", "--rig", kRig, "-o", "/nonexistent/x.json"}, 2, "unwritable-output", {"/nonexistent/x.json", "-o"}},
        BadInput{"OutputIsAFolder", {"tune", "--rig", kRig, "-o", "/"}, 2, "unwritable-output", {"/"}},
        BadInput{"ProbeOutput", {"probe", "--rig", kRig, "-o", "/nonexistent/x.json"}, 2, "unwritable-output", {"/nonexistent/x.json"}},
        BadInput{"SweepOutputOfTune", {"tune", "--rig", kRig, "--sweep-output", "/nonexistent/x.json"}, 2, "unwritable-output", {"/nonexistent/x.json"}},
        BadInput{"SweepDocumentMissing", {"tune", "--from", "nope.json"}, 2, "unreadable-input", {"nope.json"}},
        BadInput{"PrivateVerb", {"wroker"}, 2, "usage", {"'wroker'"}}),
    [](const auto& chosen) { return std::string(chosen.param.name); });

TEST(BadInput, ErrorsAreJsonOnDemand) {
  Tool tool;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"sweep", "--json", "--rig", kRig, "--sizes", "4Q"}, {"sweep", "--json", "--colour"}, {"sweep", "--json", "--color", "red"}}) {
    const Ran ran = tool.run(arguments);
    EXPECT_EQ(ran.status, 2);
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["kind"], "ar-tune/error");
    EXPECT_EQ(json["reason"], "usage");
    EXPECT_EQ(json["exit_status"], 2);
    EXPECT_EQ("ar-tune: " + json["message"].get<std::string>() + " [usage]", ran.last_error_line());
  }
}

TEST(BadInput, WorkerIsPrivate) {
  Tool tool;
  const Ran ran = tool.run({"worker"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("private"));
  EXPECT_THAT(tool.run({"--help"}).out, Not(HasSubstr("worker")));
}

TEST(BadInput, MachineWithoutAnyGpuIsToldAboutRigs) {
  if (std::filesystem::exists("/dev/nvidiactl") || std::filesystem::exists("/proc/driver/nvidia")) GTEST_SKIP() << "this machine has an NVIDIA driver";
  Tool tool;
  for (const char* verb : {"probe", "sweep", "tune"}) {
    const Ran ran = tool.run({verb});
    EXPECT_EQ(ran.status, 3) << verb;
    EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("--rig"), EndsWith("[no-usable-gpu]"))) << verb;
  }
  EXPECT_FALSE(std::filesystem::exists(tool.file("ar-tune-profile.json"))) << "nothing was tuned";
}

/// A profile of the small rig to break in all ways.
class BadProfileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Ran ran = tool_.run({"tune", "--rig", kRig, "--sizes", "4K", "--mode", "graph", "--budget", "1s", "-o", "good.json"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    good_ = tool_.read("good.json");
    json_ = nlohmann::ordered_json::parse(good_);
  }
  Ran explain(const std::string& text) {
    tool_.write("bad.json", text);
    return tool_.run({"explain", "bad.json", "--bytes", "4K"});
  }

  Tool tool_;
  std::string good_;
  nlohmann::ordered_json json_;
};

TEST_F(BadProfileTest, Truncated) {
  const Ran ran = explain(good_.substr(0, good_.size() / 2));
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("bad.json"), EndsWith("[unreadable-input]")));
}

TEST_F(BadProfileTest, WrongKind) {
  json_["kind"] = "ar-tune/sweep";
  const Ran ran = explain(json_.dump());
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("bad.json/kind"), HasSubstr("ar-tune/profile"), EndsWith("[unreadable-input]")));
}

TEST_F(BadProfileTest, NewerVersion) {
  json_["version"] = 99;
  const Ran ran = explain(json_.dump());
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("bad.json/version"), HasSubstr("update ar-tune"), EndsWith("[unreadable-input]")));
}

TEST_F(BadProfileTest, HoleBetweenRanges) {
  json_["tables"][0]["ranges"][0]["min_bytes"] = 2;
  const Ran ran = explain(json_.dump());
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.last_error_line(), HasSubstr("bad.json/tables/0/ranges/0/min_bytes"));
}

TEST_F(BadProfileTest, MissingFile) {
  const Ran ran = tool_.run({"explain", "nope.json", "--bytes", "4K"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("nope.json"), EndsWith("[unreadable-input]")));
}

TEST_F(BadProfileTest, NoSuchTableListsWhatThereIs) {
  const Ran ran = tool_.run({"explain", "good.json", "--bytes", "4K", "--dtype", "f16"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("bf16, 2 ranks, graph"), EndsWith("[usage]")));
}

TEST_F(BadProfileTest, OfAnotherMachineIsRefusedWhereItWouldBeUsed) {
  const Ran ran = tool_.run({"sweep", "--rig", "4x-rtx-pro-6000-switch", "--sizes", "4K", "--path", "tuned", "--profile", "good.json"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("RTX 4070"), HasSubstr("RTX PRO 6000"), EndsWith("[foreign-profile]")));
}

TEST_F(BadProfileTest, IsReadBeforeAnythingIsMeasured) {
  tool_.write("bad.json", good_.substr(0, good_.size() / 2));
  const Ran ran = tool_.run({"sweep", "--rig", kRig, "--sizes", "4K", "--path", "tuned", "--profile", "bad.json"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.last_error_line(), EndsWith("[unreadable-input]"));
}

TEST_F(BadProfileTest, ProfileIsNoSweep) {
  const Ran ran = tool_.run({"tune", "--from", "good.json"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.last_error_line(), AllOf(HasSubstr("good.json/kind"), HasSubstr("ar-tune/sweep"), EndsWith("[unreadable-input]")));
}

}  // namespace
}  // namespace artune::testing
