// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "corpus/corpus_check.hpp"

#include "paths/menu.hpp"
#include "profile/profile.hpp"

namespace artune {
namespace {

TEST(ProfileCorpus, ReaderAndSchemaAgree) { test::check_corpus("profile", profile_from_json, profile_to_text); }

template <typename Enum>
std::vector<std::string> words() {
  std::vector<std::string> list;
  for (const auto& entry : WordTable<Enum>::entries) list.emplace_back(entry.spelling);
  return list;
}

// A new word or candidate must reach the schemas.
TEST(ProfileCorpus, SchemasKnowEveryWord) {
  std::vector<std::string> candidates;
  for (const CandidateInfo& info : menu()) candidates.emplace_back(info.name);
  for (const char* name : {"profile.schema.json", "sweep.schema.json"}) {
    const test::SchemaFile schema(name);
    const nlohmann::json& definitions = schema.document().at("definitions");
    const nlohmann::json& key = definitions.at(name == std::string("profile.schema.json") ? "table" : "row").at("properties");
    EXPECT_EQ(definitions.at("candidate").at("enum").get<std::vector<std::string>>(), candidates);
    EXPECT_EQ(key.at("op").at("enum").get<std::vector<std::string>>(), words<Op>());
    EXPECT_EQ(key.at("dtype").at("enum").get<std::vector<std::string>>(), words<DType>());
    EXPECT_EQ(key.at("wire").at("enum").get<std::vector<std::string>>(), words<DType>());
    EXPECT_EQ(key.at("mode").at("enum").get<std::vector<std::string>>(), words<Mode>());
    EXPECT_EQ(key.at("launch").at("enum").get<std::vector<std::string>>(), words<Launch>());
    EXPECT_EQ(key.at("load").at("enum").get<std::vector<std::string>>(), words<Load>());
    EXPECT_EQ(definitions.at("verdict").at("properties").at("path").at("enum").get<std::vector<std::string>>(), words<Path>());
  }
  const test::SchemaFile profile("profile.schema.json");
  EXPECT_EQ(
      profile.document().at("definitions").at("range").at("properties").at("numerics").at("enum").get<std::vector<std::string>>(),
      words<Numerics>());
}

}  // namespace
}  // namespace artune
