// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

namespace artune {
namespace {
constexpr std::size_t kMaxDocumentBytes = std::size_t{64} << 20;
constexpr int kMaxDepth = 64;

/// Follows a parser's events and remembers the first key that an object has twice; the parser itself keeps the last.
class DuplicateKeys {
 public:
  void follow(Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        open_.push_back({.is_object = event == Event::object_start, .keys = {}, .key = {}, .elements = 0});
        return;
      case Event::key:
        open_.back().key = parsed.get_ref<const std::string&>();
        if (!open_.back().keys.insert(open_.back().key).second && first_.empty()) first_ = path();
        return;
      case Event::object_end:
      case Event::array_end:
        open_.pop_back();
        [[fallthrough]];
      case Event::value:
        if (!open_.empty()) ++open_.back().elements;
        return;
    }
  }
  /// "/ranges/0/use", empty when every key is there once.
  const std::string& first() const { return first_; }

 private:
  struct Container {
    bool is_object;
    std::unordered_set<std::string> keys;
    std::string key;       ///< the one whose value is being read
    std::size_t elements;  ///< read so far
  };
  std::string path() const {
    std::string text;
    for (const Container& container : open_)
      text += "/" + (container.is_object ? container.key : std::to_string(container.elements));
    return text;
  }

  std::vector<Container> open_;
  std::string first_;
};

}  // namespace

JsonReader JsonReader::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  fail("missing key '" + std::string(key) + "'");
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  if (!value_->is_object()) fail("expected an object");
  const auto it = value_->find(std::string(key));
  if (it == value_->end()) return std::nullopt;
  return JsonReader(*it, path_ + "/" + std::string(key));
}

JsonReader JsonReader::at(std::size_t index) const {
  if (index >= size()) fail("has no element " + std::to_string(index));
  return {(*value_)[index], path_ + "/" + std::to_string(index)};
}

std::size_t JsonReader::size() const {
  if (!value_->is_array()) fail("expected an array");
  return value_->size();
}

std::string JsonReader::string() const {
  if (!value_->is_string()) fail("expected a string");
  return value_->get<std::string>();
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) fail("expected true or false");
  return value_->get<bool>();
}

double JsonReader::number() const {
  if (!value_->is_number()) fail("expected a number");
  const double number = value_->get<double>();
  if (!std::isfinite(number)) fail("is not finite");
  return number;
}

std::int64_t JsonReader::integer(std::int64_t low, std::int64_t high) const {
  if (!value_->is_number_integer()) fail("expected an integer");
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(high)) {
    fail("is above " + std::to_string(high));
  }
  const auto number = value_->get<std::int64_t>();
  if (number < low || number > high) {
    fail(std::to_string(number) + " is outside " + std::to_string(low) + ".." + std::to_string(high));
  }
  return number;
}

void JsonReader::expect_keys(std::initializer_list<std::string_view> known) const {
  if (!value_->is_object()) fail("expected an object");
  for (const auto& [key, unused] : value_->items()) {
    if (key != "info" && std::find(known.begin(), known.end(), key) == known.end()) fail("unknown key '" + key + "'");
  }
}

void JsonReader::fail(const std::string& why) const { throw JsonError(path_ + ": " + why); }

Result<Json> parse_json(std::string_view text, const std::string& name) {
  if (text.size() > kMaxDocumentBytes)
    return Error{Reason::unreadable_input, name + ": larger than 64 MiB, not a document of ours"};
  int deepest = 0;
  DuplicateKeys duplicates;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    deepest = std::max(deepest, depth);
    if (deepest > kMaxDepth) return false;  // dropped, which makes events unpaired; the document is refused below
    duplicates.follow(event, parsed);
    return true;
  };
  try {
    Json document = Json::parse(text, watch);
    if (deepest > kMaxDepth) return Error{Reason::unreadable_input, name + ": nested deeper than 64 levels"};
    if (!duplicates.first().empty())
      return Error{Reason::unreadable_input, name + duplicates.first() + ": the key is there twice"};
    return document;
  } catch (const nlohmann::json::exception& error) {
    return Error{Reason::unreadable_input, name + ": not valid JSON (" + error.what() + ")"};
  }
}

}  // namespace artune
