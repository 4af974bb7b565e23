// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The verbs on rigs, from sweep to explanation: what they print, write and leave behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "run_tool.hpp"

namespace artune::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

std::vector<std::string> small(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--rig", "rtx4070-rtx3060-x4", "--sizes", "4K,64K", "--mode", "graph", "--budget", "3s"});
  return arguments;
}

TEST(Help, EveryVerbShowsAnExample) {
  Tool tool;
  for (const char* verb : {"probe", "sweep", "tune", "explain", "env", "version"}) {
    const Ran ran = tool.run({verb, "--help"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.out, HasSubstr("Example:\n  ar-tune " + std::string(verb))) << verb;
    EXPECT_THAT(ran.out, HasSubstr("--json")) << verb;
  }
}

TEST(Help, MainPage) {
  Tool tool;
  const Ran ran = tool.run({"--help"});
  EXPECT_EQ(ran.status, 0);
  expect_golden(ran.out, "help.txt");
}

TEST(Version, BothForms) {
  Tool tool;
  const Ran text = tool.run({"version"});
  const Json json = Json::parse(tool.run({"version", "--json"}).out);
  EXPECT_THAT(text.out, HasSubstr(json["tool"].get<std::string>()));
  EXPECT_THAT(tool.run({"--version"}).out, HasSubstr(json["tool"].get<std::string>()));
}

TEST(Env, ListsVariablesAndComplainsOfBadOnes) {
  Tool tool;
  tool.environment = {{"ARTUNE_PROFILE", "/x/p.json"}, {"ARTUNE_PATHS", "pcie"}};
  const Ran ran = tool.run({"env", "--json"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.err, HasSubstr("'pcie'"));
  std::map<std::string, Json> values;
  const Json document = Json::parse(ran.out);
  for (const Json& variable : document["variables"]) {
    EXPECT_NE(variable["meaning"], "");
    EXPECT_TRUE(values.emplace(variable["name"], variable["value"]).second) << variable["name"] << " is there twice";
  }
  EXPECT_EQ(values.at("ARTUNE_PROFILE"), "/x/p.json");
  EXPECT_EQ(values.at("NO_COLOR"), nullptr);
  EXPECT_TRUE(values.contains("XDG_RUNTIME_DIR"));
}

TEST(Sweep, TextForPeople) {
  Tool tool;
  const Ran ran = tool.run(small({"sweep"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.err, "") << "no progress in a pipe, nothing to remark";
  expect_golden(normalized(ran.out), "sweep.txt");
}

TEST(Sweep, BesideComputeTextForPeople) {
  Tool tool;
  const Ran ran = tool.run({"sweep", "--rig", "rtx4070-rtx3060-x4", "--sizes", "64K,1M", "--mode", "graph", "--overlap", "--budget", "20s", "-o", "s.json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  expect_golden(normalized(ran.out), "sweep_overlap.txt");
  const Ran tuned = tool.run({"tune", "--from", "s.json", "--json", "-o", "p.json"});
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const Json profile = Json::parse(tuned.out);
  std::set<std::string> loads;
  for (const Json& table : profile["tables"]) loads.insert(table["load"].get<std::string>());
  EXPECT_EQ(loads, (std::set<std::string>{"idle", "overlap"}));
}

TEST(Sweep, JsonAloneOnStandardOutput) {
  Tool tool;
  const Ran ran = tool.run(small({"sweep", "--json", "-o", "sweep.json"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  const Json document = Json::parse(ran.out);   // throws when anything else is there
  EXPECT_EQ(document["kind"], "ar-tune/sweep");
  EXPECT_EQ(document["simulated"], true);
  EXPECT_EQ(document["complete"], true);
  EXPECT_EQ(document, Json::parse(tool.read("sweep.json")));
  EXPECT_THAT(ran.err, HasSubstr("SIMULATED")) << "people's text moves to standard error";
  EXPECT_FALSE(std::filesystem::exists(tool.file("sweep.json.journal"))) << "of no use after a complete sweep";
  for (const Json& row : document["rows"]) {
    if (row["candidate"] != "nccl") { EXPECT_EQ(row["verified"], true) << row["candidate"]; }
  }
}

TEST(Sweep, ColourOnlyOnDemandInAPipe) {
  Tool tool;
  EXPECT_THAT(tool.run(small({"sweep"})).out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(tool.run(small({"sweep", "--color", "always"})).out, HasSubstr("\x1b["));
}

TEST(Sweep, DevicesByAddressInTheirOrder) {
  Tool tool;
  const Ran ran = tool.run(small({"sweep", "--json", "--devices", "02:00.0,0"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["world"]["devices"], Json({1, 0}));
}

TEST(Tune, WritesRangesAndSaysSimulated) {
  Tool tool;
  const Ran ran = tool.run(small({"tune", "--sweep-output", "sweep.json"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("SIMULATED"));
  expect_golden(normalized(ran.out), "tune.txt");
  const Json profile = Json::parse(tool.read("simulated-ar-tune-profile.json"));
  EXPECT_EQ(profile["kind"], "ar-tune/profile");
  EXPECT_EQ(profile["simulated"], true);
  EXPECT_EQ(profile["tables"][0]["ranges"][0]["min_bytes"], 1);
  EXPECT_FALSE(std::filesystem::exists(tool.file(".config"))) << "a simulated profile is installed nowhere";

  // The same decision from the document, without measuring.
  const Ran again = tool.run({"tune", "--from", "sweep.json", "-o", "again.json"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(tool.read("again.json"), tool.read("simulated-ar-tune-profile.json"));

  const Ran explained = tool.run({"explain", "again.json", "--bytes", "64K"});
  EXPECT_EQ(explained.status, 0) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("SIMULATED"));
  EXPECT_THAT(explained.out, HasSubstr("64K is in the range"));
  const Json answer = Json::parse(tool.run({"explain", "again.json", "--bytes", "64K", "--json"}).out);
  EXPECT_EQ(answer["bytes"], 65536);
  const Json ranges = profile["tables"][0]["ranges"];
  EXPECT_EQ(answer["tables"][0]["range"], ranges.back()) << "64K is the largest size that was measured";
}

TEST(Tune, FewerRanksAreAGroupOfTheirOwn) {
  Tool tool;
  const Ran ran = tool.run({"tune", "--rig", "4x-rtx-pro-6000-switch", "--ranks", "2,4", "--sizes", "4K", "--mode", "graph", "--budget",
                            "2s", "-o", "p.json", "--sweep-output", "s.json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("p.json is for the whole group, a communicator over fewer GPUs doesn't use its tables for 2 ranks"));
  const Json sweep = Json::parse(tool.read("s.json"));
  ASSERT_EQ(sweep["smaller_groups"].size(), 1U);
  EXPECT_EQ(sweep["smaller_groups"][0]["ranks"], 2);
  EXPECT_THAT(sweep["smaller_groups"][0]["fingerprint"].get<std::string>(), HasSubstr("2x-"));
  EXPECT_THAT(sweep["fingerprint"].get<std::string>(), HasSubstr("4x-"));

  ASSERT_EQ(tool.run({"tune", "--rig", "4x-rtx-pro-6000-switch", "--ranks", "2", "--devices", "0,1", "--sizes", "4K", "--mode", "graph",
                      "--budget", "1s", "-o", "two.json"})
                .status,
            0);
  EXPECT_EQ(Json::parse(tool.read("two.json"))["fingerprint"], sweep["smaller_groups"][0]["fingerprint"]) << "the same group, named by hand";
}

TEST(Tune, JsonAloneOnStandardOutput) {
  Tool tool;
  const Ran ran = tool.run(small({"tune", "--json", "-o", "p.json"}));
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out), Json::parse(tool.read("p.json")));
}

TEST(Tune, TunedDispatchIsOneMoreCandidate) {
  Tool tool;
  ASSERT_EQ(tool.run(small({"tune", "-o", "p.json"})).status, 0);
  const Ran ran = tool.run(small({"sweep", "--json", "--path", "tuned,nccl", "--profile", "p.json"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::size_t tuned = 0;
  const Json document = Json::parse(ran.out);
  for (const Json& row : document["rows"]) tuned += row["candidate"] == "tuned" ? 1 : 0;
  EXPECT_EQ(tuned, 2U) << "one row a size";
}

TEST(Tune, ALossyWireHasATableOfItsOwn) {
  Tool tool;
  const Ran ran = tool.run({"tune", "--rig", "4x-rtx-pro-6000-switch", "--sizes", "64K,16M", "--mode", "graph", "--budget", "6s", "--dtype",
                            "f32,bf16", "--wire", "bf16", "-o", "p.json", "--sweep-output", "s.json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("--wire bf16 is for f32; bf16 goes over the links as it is"));
  EXPECT_THAT(ran.err, HasSubstr("--wire native is measured too"));
  EXPECT_THAT(ran.out, HasSubstr("\nf32 as bf16 on the wire, 4 ranks, graph: "));
  EXPECT_THAT(ran.out, HasSubstr("\nf32 as bf16 on the wire: faster than the best exact way at "));
  EXPECT_THAT(ran.out, HasSubstr("\nall_reduce f32 as bf16 on the wire, 4 ranks, graph"));
  EXPECT_THAT(ran.out, HasSubstr("nccl: unavailable, can't send f32 as bf16 on the wire"));
  const Json profile = Json::parse(tool.read("p.json"));
  ASSERT_EQ(profile["tables"].size(), 3U);
  std::size_t lossy = 0;
  for (const Json& table : profile["tables"]) {
    for (const Json& range : table["ranges"]) {
      if (range["numerics"].get<std::string>().find("wire-bf16") == std::string::npos) continue;
      EXPECT_EQ(table["dtype"], "f32");
      EXPECT_EQ(table["wire"], "bf16");
      ++lossy;
    }
  }
  EXPECT_GT(lossy, 0U) << "half the bytes of 16M must pay on a PCIe box";
  for (const Json& row : Json::parse(tool.read("s.json"))["rows"]) {
    const bool is_lossy = row["wire"] != row["dtype"];
    EXPECT_EQ(row["numerics"].get<std::string>().find("wire-bf16") != std::string::npos, is_lossy) << row;
  }

  const Ran explained = tool.run({"explain", "p.json", "--bytes", "16M", "--dtype", "f32"});
  EXPECT_THAT(explained.out, HasSubstr("all_reduce f32 as bf16 on the wire, 4 ranks"));
  EXPECT_THAT(explained.out, HasSubstr("bf16 on the wire\n"));

  // The dispatch itself: the wire's table where there is one, exact ranges in it included.
  const Ran tuned = tool.run({"sweep", "--rig", "4x-rtx-pro-6000-switch", "--sizes", "64K,16M", "--mode", "graph", "--budget", "4s", "--dtype",
                              "f32", "--wire", "bf16", "--path", "tuned", "--profile", "p.json", "--json"});
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const Json rows = Json::parse(tuned.out)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["wire"], "bf16");
}

TEST(Quiet, SaysNothingButErrors) {
  Tool tool;
  EXPECT_EQ(tool.run(small({"tune", "--quiet"})).err, "");
  EXPECT_THAT(tool.run({"sweep", "--quiet", "--rig", "nope"}).err, HasSubstr("[usage]"));
}

TEST(Probe, OfARig) {
  Tool tool;
  const Ran ran = tool.run({"probe", "--rig", "4x-rtx-pro-6000-switch", "--json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out)["kind"], "ar-tune/probe");
}

}  // namespace
}  // namespace artune::testing
