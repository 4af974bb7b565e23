// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One corpus for the reader and the schema: what the schema can express, both refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include "base/file.hpp"
#include "machine/rig.hpp"
#include "rig_schema.hpp"

namespace artune {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kSource = ARTUNE_SOURCE_DIR;
const std::vector<std::string> kRigs = {"4x-rtx-pro-6000-switch", "rtx4070-rtx3060-x4"};

Json rig_document(const std::string& name) {
  const Result<std::string> text = read_file(kSource + "/profiles/rigs/" + name + ".json");
  return Json::parse(*text);
}

bool schema_accepts(const Json& document) {
  return test::fits_schema(kSource + "/profiles/schema/rig.schema.json", document.dump());
}

std::string error_of(const Json& document) {
  const Result<Rig> rig = rig_from_json(document, "r.json");
  return rig ? "" : rig.error().message;
}

class ShippedRig : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedRig, ReadsAndFitsTheSchema) {
  const Json document = rig_document(GetParam());
  EXPECT_TRUE(schema_accepts(document));
  const Result<Rig> rig = load_rig(GetParam());
  ASSERT_TRUE(rig) << rig.error().message;
  EXPECT_EQ(rig->name, GetParam());
}

/// Nobody may add a number without saying where it comes from, nor leave a source behind that nothing uses.
TEST_P(ShippedRig, EverySourceIsUsed) {
  const Json document = rig_document(GetParam());
  std::set<std::string> used;
  const std::function<void(const Json&)> collect = [&](const Json& value) {
    if (value.is_object() && value.contains("source")) used.insert(value["source"].get<std::string>());
    for (const auto& [key, child] : value.items()) {
      if (key != "sources" && child.is_structured()) collect(child);
    }
  };
  collect(document);
  for (const auto& [key, unused] : document["sources"].items()) EXPECT_TRUE(used.contains(key)) << key;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedRig, ::testing::ValuesIn(kRigs), [](const auto& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return "rig_" + name;
});

TEST(RigReader, KnownRigsAreListed) {
  for (const std::string& name : kRigs) EXPECT_THAT(known_rigs(), Contains(name));
}

TEST(RigReader, UnknownNameListsTheKnownOnes) {
  const Result<Rig> rig = load_rig("dgx");
  ASSERT_FALSE(rig);
  EXPECT_EQ(rig.error().reason, Reason::usage);
  EXPECT_THAT(rig.error().message, HasSubstr("no rig 'dgx'"));
  for (const std::string& name : kRigs) EXPECT_THAT(rig.error().message, HasSubstr(name));
}

TEST(RigReader, FilesAreReadByPath) {
  EXPECT_TRUE(load_rig(kSource + "/profiles/rigs/rtx4070-rtx3060-x4.json"));
  const Result<Rig> missing = load_rig("/nowhere/box.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().reason, Reason::unreadable_input);
  EXPECT_THAT(missing.error().message, HasSubstr("/nowhere/box.json"));

  const std::string broken = ::testing::TempDir() + "/broken-rig.json";
  std::ofstream(broken) << "{\"kind\": ";
  const Result<Rig> rig = load_rig(broken);
  ASSERT_FALSE(rig);
  EXPECT_THAT(rig.error().message, HasSubstr("not valid JSON"));
}

struct BadCase {
  std::string name;
  std::function<void(Json&)> spoil;
  std::string message;
  bool schema_sees_it = true;
};

class BadRig : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadRig, IsRefusedWithThePath) {
  Json document = rig_document("4x-rtx-pro-6000-switch");
  GetParam().spoil(document);
  EXPECT_THAT(error_of(document), HasSubstr(GetParam().message));
  EXPECT_EQ(schema_accepts(document), !GetParam().schema_sees_it);
}

std::vector<BadCase> corpus() {
  return {
      BadCase{"kind", [](Json& d) { d["kind"] = "ar-tune/sweep"; }, "r.json/kind: is 'ar-tune/sweep', expected 'ar-tune/rig'"},
      BadCase{"newer", [](Json& d) { d["version"] = 2; }, "r.json/version: is 2"},
      BadCase{"unknown_key", [](Json& d) { d["nvlink"] = true; }, "r.json: unknown key 'nvlink'"},
      BadCase{"unknown_inner_key", [](Json& d) { d["links"][0]["speed"] = 1; }, "r.json/links/0: unknown key 'speed'"},
      BadCase{"missing", [](Json& d) { d["gpus"][1].erase("bar1_bytes"); }, "r.json/gpus/1: missing key 'bar1_bytes'"},
      BadCase{"no_gpus", [](Json& d) { d["gpus"] = Json::array(); }, "r.json/gpus: is empty"},
      BadCase{"type", [](Json& d) { d["gpus"][0]["multiprocessors"] = "188"; },
              "r.json/gpus/0/multiprocessors: expected an integer"},
      BadCase{"bare_number", [](Json& d) { d["links"][2]["gb_per_s"] = 53; }, "r.json/links/2/gb_per_s: expected an object"},
      BadCase{"zero_bandwidth", [](Json& d) { d["links"][2]["gb_per_s"]["value"] = 0; },
              "r.json/links/2/gb_per_s/value: is outside"},
      BadCase{"negative_latency", [](Json& d) { d["links"][2]["latency_us"]["value"] = -1; },
              "r.json/links/2/latency_us/value: is outside"},
      BadCase{"fraction_above_one", [](Json& d) { d["kernels"]["store_fraction"]["value"] = 1.2; },
              "r.json/kernels/store_fraction/value: is outside"},
      BadCase{"no_source", [](Json& d) { d["launch"]["graph_us"].erase("source"); },
              "r.json/launch/graph_us: missing key 'source'"},
      BadCase{"transport", [](Json& d) { d["nccl"]["transport"] = "nvlink"; },
              "r.json/nccl/transport: 'nvlink' is none of p2p, host"},
      BadCase{"fault_kind",
              [](Json& d) {
                d["faults"] = {{{"name", "x"}, {"kind", "odd"}, {"from", "gpu0"}, {"to", "gpu1"}, {"source", "box"}}};
              },
              "r.json/faults/0/kind: 'odd' is none of wrong_data, hangs, wrong_sum"},
      BadCase{"three_ends",
              [](Json& d) {
                d["peer_access"][0]["between"] = {"gpu0", "gpu1", "gpu2"};
              },
              "r.json/peer_access/0/between: expected two GPU ids"},
      BadCase{"star_id", [](Json& d) { d["switches"][0]["id"] = "*"; }, "r.json/switches/0/id: '*' means every GPU"},
      // What only the reader can see:
      BadCase{"unknown_source", [](Json& d) { d["gpus"][0]["source"] = "hearsay"; },
              "r.json/gpus/0/source: 'hearsay' is no key of /sources", false},
      BadCase{"twice", [](Json& d) { d["gpus"][1]["id"] = "gpu0"; }, "r.json/gpus/1/id: 'gpu0' is used twice", false},
      BadCase{"nowhere", [](Json& d) { d["links"][0]["to"] = "switch9"; }, "r.json/links/0/to: there is no socket, root port",
              false},
      BadCase{"no_socket", [](Json& d) { d["root_ports"][0]["socket"] = "gpu0"; },
              "r.json/root_ports/0/socket: there is no socket 'gpu0'", false},
      BadCase{"circle", [](Json& d) { d["links"].push_back(d["links"][0]); }, "r.json/links/7: closes a circle", false},
      BadCase{"unconnected", [](Json& d) { d["links"].erase(d["links"].begin()); },
              "r.json/gpus/0: 'gpu0' is not connected to socket 'socket0'", false},
      BadCase{"rule_for_a_switch",
              [](Json& d) {
                d["peer_access"][0]["between"] = {"gpu0", "switch0"};
              },
              "r.json/peer_access/0/between/1: there is no GPU 'switch0'", false},
      BadCase{"fault_with_itself",
              [](Json& d) {
                d["faults"] = {{{"name", "x"}, {"kind", "hangs"}, {"from", "gpu0"}, {"to", "gpu0"}, {"source", "box"}}};
              },
              "r.json/faults/0/to: is the same GPU", false}};
}

INSTANTIATE_TEST_SUITE_P(Corpus, BadRig, ::testing::ValuesIn(corpus()), [](const auto& instance) { return instance.param.name; });

TEST(RigReader, InfoIsIgnored) {
  Json document = rig_document("rtx4070-rtx3060-x4");
  document["info"] = {{"note", "mine"}};
  document["gpus"][0]["info"] = 7;
  EXPECT_EQ(error_of(document), "");
  EXPECT_TRUE(schema_accepts(document));
}

TEST(RigReader, LastPeerRuleCountsBothWays) {
  Json document = rig_document("4x-rtx-pro-6000-switch");
  document["peer_access"].push_back({{"between", {"gpu2", "gpu1"}}, {"allowed", false}, {"source", "box"}});
  const Result<Rig> rig = rig_from_json(document, "r.json");
  ASSERT_TRUE(rig) << rig.error().message;
  EXPECT_TRUE(peer_access_allowed(*rig, 0, 3));
  EXPECT_FALSE(peer_access_allowed(*rig, 1, 2));
  EXPECT_FALSE(peer_access_allowed(*rig, 2, 1));
  EXPECT_TRUE(peer_access_allowed(*rig, 1, 1));
}

TEST(RigReader, WithoutARuleThereIsNoPeerAccess) {
  Json document = rig_document("rtx4070-rtx3060-x4");
  document["peer_access"] = Json::array();
  document["sources"].erase("access");
  const Result<Rig> rig = rig_from_json(document, "r.json");
  ASSERT_TRUE(rig) << rig.error().message;
  EXPECT_FALSE(peer_access_allowed(*rig, 0, 1));
}

}  // namespace
}  // namespace artune
