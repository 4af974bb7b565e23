// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/profile.hpp"

#include <gmock/gmock.h>

#include "base/failure.hpp"
#include "base/file.hpp"
#include "profile/document_text.hpp"

namespace artune {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const std::string kExample = std::string(ARTUNE_SOURCE_DIR) + "/profiles/examples/four-gpus.json";

Json example() {
  const Result<std::string> text = read_file(kExample);
  return *parse_json(*text, kExample);
}

std::string message_for(const Json& document) {
  const Result<Profile> profile = profile_from_json(document, "p.json");
  return profile ? "accepted" : profile.error().message;
}

TEST(Profile, ExampleIsWrittenAsItWasRead) {
  const Result<Profile> profile = read_profile(kExample);
  ASSERT_TRUE(static_cast<bool>(profile)) << profile.error().message;
  EXPECT_EQ(profile_to_text(*profile), *read_file(kExample));
}

TEST(Profile, EachRangeStandsOnOneLine) {
  const std::string text = profile_to_text(*read_profile(kExample));
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line.find("min_bytes") != std::string::npos) {
      ++lines;
      EXPECT_THAT(line, HasSubstr("extrapolated"));
    }
    at = end + 1;
  }
  EXPECT_EQ(lines, 3U);
}

TEST(Profile, LookupIsHalfOpen) {
  const Result<Profile> profile = read_profile(kExample);
  const Table* table = profile->find({.ranks = 4});
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->lookup(0).use.name, "p2p/one-shot/ll");
  EXPECT_EQ(table->lookup(92681).use.name, "p2p/one-shot/ll");
  EXPECT_EQ(table->lookup(92682).use.name, "p2p/one-shot/flag");
  EXPECT_EQ(table->lookup(741456).use.name, "nccl");
  EXPECT_EQ(table->lookup(std::size_t{1} << 50).use.name, "nccl");
  EXPECT_EQ(profile->find({.dtype = DType::f32, .ranks = 4}), nullptr);
  EXPECT_EQ(profile->find({.ranks = 2}), nullptr);
  EXPECT_THROW(Table{}.lookup(1), Failure);
}

TEST(Profile, ErrorsNameThePlaceAndTheWord) {
  Json document = example();
  document["tables"][0]["ranges"][1]["min_bytes"] = 92690;
  EXPECT_EQ(message_for(document), "p.json/tables/0/ranges/1/min_bytes: 92690 leaves a hole after 92682");
  document = example();
  document["tables"][0]["ranges"][1]["min_bytes"] = 1000;
  EXPECT_EQ(message_for(document), "p.json/tables/0/ranges/1/min_bytes: 1000 overlaps the range before, which ends at 92682");
  document = example();
  document["tables"][0]["ranges"][0]["use"] = "p2p/two-shots";
  EXPECT_THAT(message_for(document),
              HasSubstr("p.json/tables/0/ranges/0/use: unknown candidate 'p2p/two-shots', known are nccl, p2p/one-shot/ll"));
  document = example();
  document["version"] = 2;
  EXPECT_THAT(message_for(document), HasSubstr("p.json/version: is 2"));
  EXPECT_THAT(message_for(document), HasSubstr("update ar-tune"));
  document = example();
  document["kind"] = "ar-tune/sweep";
  EXPECT_EQ(message_for(document), "p.json/kind: is 'ar-tune/sweep', expected 'ar-tune/profile'");
  document = example();
  document["tables"][0]["ranges"][0]["gian"] = 2.0;
  EXPECT_EQ(message_for(document), "p.json/tables/0/ranges/0: unknown key 'gian'");
  document = example();
  document["tables"][0]["ranges"][2]["numerics"] = "rank-order-fp32";
  EXPECT_EQ(message_for(document),
            "p.json/tables/0/ranges/2/numerics: 'rank-order-fp32' isn't the class of nccl, which is 'nccl'");
  document = example();
  document["tables"].push_back(document["tables"][0]);
  EXPECT_EQ(message_for(document), "p.json/tables/1: a second table for the same key");
}

TEST(Profile, UnreadableFilesSayWhy) {
  const Result<Profile> missing = read_profile("/nonexistent/profile.json");
  ASSERT_FALSE(static_cast<bool>(missing));
  EXPECT_EQ(missing.error().reason, Reason::unreadable_input);
  EXPECT_EQ(missing.error().message, "can't read /nonexistent/profile.json: No such file or directory");

  // Truncated at every byte: never accepted, always one line.
  const std::string whole = *read_file(kExample);
  for (std::size_t length = 0; length + 2 < whole.size(); length += 97) {
    const Result<Json> part = parse_json(std::string_view(whole).substr(0, length), "cut.json");
    ASSERT_FALSE(static_cast<bool>(part)) << length;
    EXPECT_EQ(part.error().message.find('\n'), std::string::npos);
  }
}

TEST(DocumentText, SurvivesBytesThatAreNotUtf8) {
  const std::string text = document_text(Json{{"bios",
                                               "A\xff"
                                               "B"},
                                              {"rows", Json::array({Json{{"a", 1}, {"b", Json::array({1, 2})}}})}});
  EXPECT_EQ(text,
            "{\n  \"bios\": \"A\xef\xbf\xbd"
            "B\",\n  \"rows\": [\n    {\"a\": 1, \"b\": [1, 2]}\n  ]\n}\n");
  EXPECT_TRUE(static_cast<bool>(parse_json(text, "t")));
  EXPECT_THAT(document_text(Json::array()), EndsWith("[]\n"));
}

}  // namespace
}  // namespace artune
