// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Strict reading of JSON documents with errors that carry the JSON path:
//
//   JsonReader reader(value, "profile.json");
//   const std::string name = reader.at("machine").at("gpus").at(0).at("name").string();
//   reader.at("ranges").expect_keys({"min_bytes", "max_bytes", "use"});   // anything else but "info" is an error
//
// Every accessor throws JsonError; read_document() turns that into a Result at the edge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/words.hpp"

namespace artune {

using Json = nlohmann::ordered_json;

class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class JsonReader {
 public:
  JsonReader(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  const Json& raw() const { return *value_; }
  const std::string& path() const { return path_; }

  JsonReader at(std::string_view key) const;             ///< error when missing or this is no object
  std::optional<JsonReader> find(std::string_view key) const;  ///< nullopt when missing
  JsonReader at(std::size_t index) const;
  std::size_t size() const;                              ///< of an array; error otherwise
  bool is_null() const { return value_->is_null(); }

  std::string string() const;
  bool boolean() const;
  double number() const;                                 ///< finite
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  std::size_t bytes() const { return static_cast<std::size_t>(integer(0, std::int64_t{1} << 53)); }

  template <typename Enum>
  Enum word() const {
    const std::string text = string();
    if (const auto value = parse_word<Enum>(text)) return *value;
    fail("'" + text + "' is none of " + word_list<Enum>());
  }

  /// Unknown keys are errors, except `info`, which is additive and ignorable by definition.
  void expect_keys(std::initializer_list<std::string_view> known) const;

  [[noreturn]] void fail(const std::string& why) const;

 private:
  const Json* value_;
  std::string path_;
};

/// Parses a whole document. `name` is what messages call it (a file name). Limits: 64 MiB, nesting 64. A key that an
/// object has twice is an error: whoever wrote it meant one of the two, and which one can't be known.
Result<Json> parse_json(std::string_view text, const std::string& name);

}  // namespace artune
