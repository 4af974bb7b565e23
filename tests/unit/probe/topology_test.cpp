// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "base/file.hpp"
#include "test_box.hpp"

namespace artune {
namespace {

using testing::HasSubstr;

bool schema_accepts(const Json& document) {
  const auto text = read_file(ARTUNE_SOURCE_DIR "/profiles/schema/probe.schema.json");
  if (!text) throw std::runtime_error(text.error().message);
  const nlohmann::json schema_json = nlohmann::json::parse(*text), plain = nlohmann::json::parse(document.dump());
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), schema);
  valijson::Validator validator;
  return validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(plain), nullptr);
}

/// A document that uses every field.
Json full_document() {
  TestBox box;
  box.nvml.processes[1] = {{4242, "python3", std::size_t{1} << 30}, {4243, "", std::nullopt}};
  box.tree.write("/sys/bus/pci/devices/0000:04:00.0/iommu_group/type", "DMA-FQ\n");
  box.write_acs("0000:02:10.0", 0x1d);
  box.cuda.devices.pop_back();
  Topology topology = *box.collect();
  topology.findings.push_back({"narrow-link", "warning", {"GPU 2"}, "x4 of x16", "slow", "reseat", "test"});
  return topology_to_json(topology);
}

TEST(TopologyJson, RoundTripKeepsEverything) {
  const Json document = full_document();
  const Result<Topology> read = topology_from_json(document, "probe.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(topology_to_json(*read), document);
  EXPECT_TRUE(schema_accepts(document));
}

TEST(TopologyJson, TextParsesToTheSameDocument) {
  const Json document = full_document();
  const Topology topology = *topology_from_json(document, "probe.json");
  const std::string text = topology_to_text(topology);
  EXPECT_EQ(Json::parse(text), document);
  EXPECT_THAT(text, HasSubstr("\n  {\"from\":0,\"to\":2,")) << "one pair per line";
}

TEST(TopologyJson, UuidsTravelToTheSupervisorButNotIntoDocuments) {
  const Topology topology = *TestBox().collect();
  EXPECT_EQ(topology_to_json(topology).dump().find("GPU-"), std::string::npos);
  EXPECT_EQ(topology_to_text(topology).find("GPU-"), std::string::npos);
  const Result<Topology> read = topology_from_json(topology_to_wire_json(topology), "probe");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->gpus[3].uuid, uuid_of_box_gpu(3));
}

TEST(TopologyJson, ForeignInfoIsIgnored) {
  Json document = full_document();
  document["info"] = {{"uuids", {1, 2}}, {"other", true}};
  document["pairs"][0]["info"] = "x";
  document["machine"]["info"] = nullptr;
  EXPECT_TRUE(topology_from_json(document, "p"));
  EXPECT_TRUE(schema_accepts(document));
  document["info"] = 7;
  EXPECT_TRUE(topology_from_json(document, "p"));
}

struct Spoiled {
  const char* name;
  std::function<void(Json&)> spoil;
  const char* message;
  bool schema_sees_it = true;
};
class SpoiledTopology : public testing::TestWithParam<Spoiled> {};
TEST_P(SpoiledTopology, IsRefusedWithItsPath) {
  Json document = full_document();
  GetParam().spoil(document);
  const Result<Topology> read = topology_from_json(document, "p.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason, Reason::unreadable_input);
  EXPECT_THAT(read.error().message, HasSubstr(GetParam().message));
  EXPECT_EQ(schema_accepts(document), !GetParam().schema_sees_it);
}
INSTANTIATE_TEST_SUITE_P(
    Corpus, SpoiledTopology,
    testing::Values(
        Spoiled{"kind", [](Json& d) { d["kind"] = "ar-tune/sweep"; }, "p.json/kind"},
        Spoiled{"version", [](Json& d) { d["version"] = 2; }, "p.json/version"},
        Spoiled{"unknown_key", [](Json& d) { d["pairs"][3]["speed"] = 1; }, "p.json/pairs/3: unknown key 'speed'"},
        Spoiled{"missing_key", [](Json& d) { d["links"][0].erase("parent"); }, "p.json/links/0: missing key 'parent'"},
        Spoiled{"level", [](Json& d) { d["pairs"][0]["level"] = "NEAR"; }, "p.json/pairs/0/level"},
        Spoiled{"status", [](Json& d) { d["pairs"][0]["nvml"]["read"] = "maybe"; }, "p.json/pairs/0/nvml/read"},
        Spoiled{"type", [](Json& d) { d["pairs"][0]["access"] = "yes"; }, "p.json/pairs/0/access"},
        Spoiled{"ordinal", [](Json& d) { d["gpus"][0]["cuda_ordinal"] = -1; }, "p.json/gpus/0/cuda_ordinal"},
        Spoiled{"severity", [](Json& d) { d["findings"][0]["severity"] = "bad"; }, "p.json/findings/0/severity"},
        Spoiled{"risks", [](Json& d) { d["pairs"][0]["risks"] = Json::array({1}); }, "p.json/pairs/0/risks/0"},
        Spoiled{"no_object", [](Json& d) { d = Json::array(); }, "p.json: expected an object"},
        Spoiled{"unlisted_gpu", [](Json& d) { d["pairs"][0]["from"] = 9; }, "names GPU 9", false},
        Spoiled{"itself", [](Json& d) { d["pairs"][0]["to"] = d["pairs"][0]["from"]; }, "with itself", false},
        Spoiled{"dangling_parent", [](Json& d) { d["links"][0]["parent"] = "0000:77:00.0"; }, "not listed further down", false},
        Spoiled{"loop", [](Json& d) { d["links"][11]["parent"] = d["links"][0]["address"]; }, "not listed further down", false},
        Spoiled{"fewer_gpus", [](Json& d) { d["gpus"].erase(0); }, "another length", false}),
    [](const auto& test) { return test.param.name; });

TEST(RestrictedTo, KeepsOrderAndDropsTheRest) {
  const Topology topology = restricted_to(*TestBox().collect(), {3, 0});
  ASSERT_EQ(topology.gpus.size(), 2U);
  EXPECT_EQ(topology.gpus[0].index, 3);
  EXPECT_EQ(topology.header.machine.gpus[0].index, 3);
  EXPECT_EQ(topology.pairs.size(), 2U);
  EXPECT_EQ(topology.links.size(), 8U);
  EXPECT_THAT(topology.find_link("0000:81:00.0")->gpus, testing::ElementsAre(3));
  EXPECT_TRUE(topology_from_json(topology_to_json(topology), "p"));
}

}  // namespace
}  // namespace artune
