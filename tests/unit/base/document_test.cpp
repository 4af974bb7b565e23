// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/document.hpp"

#include <gmock/gmock.h>

namespace artune {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

DocumentHeader full_header() {
  DocumentHeader header;
  header.kind = "ar-tune/test";
  header.tool = tool_name();
  header.created = "2026-12-01T04:39:15Z";
  header.simulated = true;
  header.shared_gpu = true;
  GpuFacts gpu{3, "NVIDIA X", "0000:01:00.0", "0123456789abcdef", 1, 2, 3, "9.0", 132, {1, 8}, {5, 16}, 1, "96.00", 350.5};
  header.machine = {{gpu}, "580",      "13.0", "12.8",   "2.30.7", "/lib/libnccl.so.2", "6.1", "1.4", "DMA",
                    "A=1", "iommu=pt", 2,      "docker", "kvm"};
  header.world = World{{3, 3}, 2, Launch::thread_per_rank};
  return header;
}

std::string message_for(const Json& json, const std::string& kind = "ar-tune/test") {
  try {
    header_from_json(JsonReader(json, "d.json"), kind, 1);
  } catch (const JsonError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DocumentHeader, EveryFieldSurvives) {
  const Json json = header_to_json(full_header());
  const DocumentHeader read = header_from_json(JsonReader(json, "d.json"), "ar-tune/test", 1);
  EXPECT_EQ(header_to_json(read), json);
  EXPECT_EQ(read.machine.gpus.at(0).link_max, (LinkState{5, 16}));
  EXPECT_EQ(read.machine.boot_switches, "iommu=pt");
  EXPECT_EQ(read.machine.vm, "kvm");
  EXPECT_EQ(read.world->launch, Launch::thread_per_rank);
  EXPECT_EQ(read.world->devices, (std::vector<int>{3, 3}));
  EXPECT_NO_THROW(JsonReader(json, "d.json").expect_keys({ARTUNE_HEADER_KEYS}));
}

TEST(DocumentHeader, KindAndVersionAreChecked) {
  Json json = header_to_json(full_header());
  EXPECT_EQ(message_for(json, "ar-tune/other"), "d.json/kind: is 'ar-tune/test', expected 'ar-tune/other'");
  json["version"] = 2;
  EXPECT_THAT(message_for(json), StartsWith("d.json/version: is 2, this ar-tune "));
  EXPECT_THAT(message_for(json), HasSubstr("update ar-tune"));
  json["version"] = 0;
  EXPECT_THAT(message_for(json), HasSubstr("outside 1.."));
}

TEST(DocumentHeader, EveryMissingFieldIsNamed) {
  const Json whole = header_to_json(full_header());
  for (const auto& field : whole.items()) {
    if (field.key() == "world") continue;
    Json json = whole;
    json.erase(field.key());
    EXPECT_EQ(message_for(json), "d.json: missing key '" + field.key() + "'");
  }
  for (const auto& field : whole["machine"].items()) {
    Json json = whole;
    json["machine"].erase(field.key());
    EXPECT_EQ(message_for(json), "d.json/machine: missing key '" + field.key() + "'");
  }
  Json json = whole;
  json["machine"]["gpus"][0]["pci"] = "";
  EXPECT_EQ(message_for(json), "d.json/machine/gpus/0: unknown key 'pci'");
}

TEST(Geometry, ZeroFieldsAreLeftOut) {
  EXPECT_EQ(geometry_to_json({}), Json::object());
  const Geometry all{8, 512, 16, 4096};
  const Json json = geometry_to_json(all);
  EXPECT_EQ(json.dump(), R"({"blocks":8,"threads":512,"max_ctas":16,"chunk_bytes":4096})");
  EXPECT_EQ(geometry_from_json(JsonReader(json, "g")), all);
  EXPECT_THROW(geometry_from_json(JsonReader(Json{{"blocks", 0}}, "g")), JsonError);
  EXPECT_THROW(geometry_from_json(JsonReader(Json{{"warps", 1}}, "g")), JsonError);
}

TEST(Now, IsRfc3339) {
  EXPECT_THAT(now_rfc3339(), MatchesRegex("20[0-9][0-9]-[0-1][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z"));
}

}  // namespace
}  // namespace artune
