// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Feeds one corpus to a reader and to its JSON Schema, so that the two can't drift apart: see tests/corpus/README.md.
#pragma once

#ifndef VALIJSON_USE_EXCEPTIONS
#error "compile with VALIJSON_USE_EXCEPTIONS=1: a schema that valijson can't parse must fail the test, not end the process"
#endif

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"

namespace artune::test {

inline std::string source_path(const std::string& relative) { return std::string(ARTUNE_SOURCE_DIR) + "/" + relative; }

/// "profile/reject" -> all its files, sorted. Fails the test when there is none: an empty folder must not pass.
inline std::vector<std::string> corpus_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/corpus/" + folder)))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty()) << folder;
  return files;
}

inline std::string text_of(const std::string& file) {
  const Result<std::string> text = read_file(file);
  EXPECT_TRUE(static_cast<bool>(text)) << file;
  return text ? *text : std::string();
}

class SchemaFile {
 public:
  explicit SchemaFile(const std::string& name)
      : document_(nlohmann::json::parse(text_of(source_path("profiles/schema/" + name)))) {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(document_), schema_);
  }
  bool accepts(const std::string& text) const {
    const nlohmann::json document = nlohmann::json::parse(text);
    valijson::Validator validator(valijson::Validator::kStrongTypes);
    return validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(document), nullptr);
  }
  const nlohmann::json& document() const { return document_; }

 private:
  nlohmann::json document_;
  valijson::Schema schema_;
};

/// `read`: Json, name -> Result of the document; `write`: document -> its text.
template <typename Read, typename Write>
void check_corpus(const std::string& kind, const Read& read, const Write& write) {
  const SchemaFile schema(kind + ".schema.json");
  // What isn't JSON at all fails the test by what SchemaFile::accepts() throws.
  const auto read_text = [&](const std::string& text, const std::string& name) -> decltype(read(Json(), name)) {
    const Result<Json> document = parse_json(text, name);
    if (!document) return document.error();
    return read(*document, name);
  };
  for (const std::string& file : corpus_files(kind + "/accept")) {
    const std::string text = text_of(file);
    const auto document = read_text(text, file);
    ASSERT_TRUE(static_cast<bool>(document)) << document.error().message;
    EXPECT_TRUE(schema.accepts(text)) << file;
    const std::string written = write(*document);
    EXPECT_TRUE(schema.accepts(written)) << file << " as written";
    const auto again = read_text(written, file);
    ASSERT_TRUE(static_cast<bool>(again)) << again.error().message;
    EXPECT_EQ(write(*again), written) << file;
  }
  for (const char* folder : {"/reject", "/reject-reader-only"}) {
    const bool reader_only = std::string(folder) == "/reject-reader-only";
    for (const std::string& file : corpus_files(kind + folder)) {
      const std::string text = text_of(file);
      const auto document = read_text(text, file);
      ASSERT_FALSE(static_cast<bool>(document)) << file << ": the reader took it";
      EXPECT_EQ(document.error().reason, Reason::unreadable_input) << file;
      EXPECT_EQ(document.error().message.rfind(file, 0), 0U) << document.error().message;
      EXPECT_EQ(document.error().message.find('\n'), std::string::npos) << document.error().message;
      EXPECT_EQ(schema.accepts(text), reader_only) << file;
    }
  }
}

}  // namespace artune::test
