// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <gmock/gmock.h>

#include <functional>

namespace artune {
namespace {

using testing::HasSubstr;

Json parsed(const std::string& text) {
  const Result<Json> json = parse_json(text, "t.json");
  EXPECT_TRUE(static_cast<bool>(json)) << text;
  return json ? *json : Json();
}

std::string error_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const JsonError& error) {
    return error.what();
  }
  return "no error";
}

TEST(JsonReader, ReadsWhatIsThere) {
  const Json json = parsed(R"({"a": [{"b": "word"}, 7, true, null, 2.5], "mode": "graph"})");
  const JsonReader reader(json, "t.json");
  EXPECT_EQ(reader.at("a").at(0).at("b").string(), "word");
  EXPECT_EQ(reader.at("a").at(1).integer(0, 10), 7);
  EXPECT_EQ(reader.at("a").at(1).number(), 7.0);
  EXPECT_TRUE(reader.at("a").at(2).boolean());
  EXPECT_TRUE(reader.at("a").at(3).is_null());
  EXPECT_EQ(reader.at("a").at(4).number(), 2.5);
  EXPECT_EQ(reader.at("a").size(), 5U);
  EXPECT_EQ(reader.at("mode").word<Mode>(), Mode::graph);
  EXPECT_FALSE(reader.find("z").has_value());
  EXPECT_EQ(reader.at("a").at(0).at("b").path(), "t.json/a/0/b");
}

TEST(JsonReader, ErrorsCarryThePath) {
  const Json json = parsed(R"({"a": [{"b": "word"}], "n": -3, "big": 18446744073709551615, "f": 1.5, "mode": "Graph", "o": {}})");
  const JsonReader reader(json, "t.json");
  EXPECT_EQ(error_of([&] { reader.at("z"); }), "t.json: missing key 'z'");
  EXPECT_EQ(error_of([&] { reader.at("a").at(0).at("c"); }), "t.json/a/0: missing key 'c'");
  EXPECT_EQ(error_of([&] { reader.at("a").at(1); }), "t.json/a: has no element 1");
  EXPECT_EQ(error_of([&] { reader.at("a").at("b"); }), "t.json/a: expected an object");
  EXPECT_EQ(error_of([&] { (void)reader.at("o").size(); }), "t.json/o: expected an array");
  EXPECT_EQ(error_of([&] { (void)reader.at("a").at(0).at("b").number(); }), "t.json/a/0/b: expected a number");
  EXPECT_EQ(error_of([&] { (void)reader.at("a").at(0).at("b").boolean(); }), "t.json/a/0/b: expected true or false");
  EXPECT_EQ(error_of([&] { (void)reader.at("n").string(); }), "t.json/n: expected a string");
  EXPECT_EQ(error_of([&] { (void)reader.at("n").integer(0, 5); }), "t.json/n: -3 is outside 0..5");
  EXPECT_EQ(error_of([&] { (void)reader.at("n").bytes(); }), "t.json/n: -3 is outside 0..9007199254740992");
  EXPECT_EQ(error_of([&] { (void)reader.at("big").integer(0, 5); }), "t.json/big: is above 5");
  EXPECT_EQ(error_of([&] { (void)reader.at("f").integer(0, 5); }), "t.json/f: expected an integer");
  EXPECT_EQ(error_of([&] { (void)reader.at("mode").word<Mode>(); }), "t.json/mode: 'Graph' is none of graph, eager");
}

TEST(JsonReader, UnknownKeysAreErrorsExceptInfo) {
  const Json json = parsed(R"({"a": 1, "info": {"x": 1}, "b": 2})");
  const JsonReader reader(json, "t.json");
  EXPECT_NO_THROW(reader.expect_keys({"a", "b"}));
  EXPECT_NO_THROW(reader.expect_keys({"a", "b", "c"}));
  EXPECT_EQ(error_of([&] { reader.expect_keys({"a"}); }), "t.json: unknown key 'b'");
  EXPECT_EQ(error_of([&] { reader.at("a").expect_keys({}); }), "t.json/a: expected an object");
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\": 1,}", "nul", "{'a': 1}", "[1] 2", "\"\xff\"", "1e999", "NaN", "// no\n{}", "{\"a\" 1}"}) {
    const Result<Json> json = parse_json(text, "t.json");
    ASSERT_FALSE(static_cast<bool>(json)) << text;
    EXPECT_EQ(json.error().reason, Reason::unreadable_input) << text;
    EXPECT_THAT(json.error().message, HasSubstr("t.json: not valid JSON")) << text;
  }
}

TEST(ParseJson, RefusesAKeyThatIsThereTwice) {
  const auto refusal = [](const std::string& text) {
    const Result<Json> json = parse_json(text, "t.json");
    if (json) return std::string("none");
    EXPECT_EQ(json.error().reason, Reason::unreadable_input);
    return json.error().message;
  };
  EXPECT_EQ(refusal(R"({"a": 1, "a": 1})"), "t.json/a: the key is there twice");
  EXPECT_EQ(refusal(R"({"a": {"b": [0, {}, {"c": 1, "d": [], "c": 2}]}})"), "t.json/a/b/2/c: the key is there twice");
  EXPECT_EQ(refusal(R"([[1, 2], [[], {"a": null, "a": {"x": 1}}]])"), "t.json/1/1/a: the key is there twice");
  EXPECT_EQ(refusal(R"({"a": 1, "\u0061": 2})"), "t.json/a: the key is there twice") << "the key, not its spelling";
  EXPECT_EQ(refusal(R"({"a": 1, "a": 2, "b": 3, "b": 4})"), "t.json/a: the key is there twice") << "the first of them";
  EXPECT_EQ(refusal(R"({"info": {"x": 1, "x": 2}})"), "t.json/info/x: the key is there twice") << "also where keys are free";
  EXPECT_EQ(refusal(R"({"": 1, "": 2})"), "t.json/: the key is there twice");
  EXPECT_EQ(refusal(R"({"a": {"x": 1}, "b": {"x": 1}, "c": [{"x": 1}, {"x": 1}]})"), "none") << "one each";
  EXPECT_EQ(refusal(R"({"a": {"a": {"a": 1}}})"), "none") << "one inside the other";
}

TEST(ParseJson, RefusesDepthAndSize) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_TRUE(static_cast<bool>(parse_json(nested(60), "t.json")));
  const Result<Json> deep = parse_json(nested(100), "t.json");
  ASSERT_FALSE(static_cast<bool>(deep));
  EXPECT_EQ(deep.error().message, "t.json: nested deeper than 64 levels");
  EXPECT_FALSE(static_cast<bool>(parse_json(nested(1000000), "t.json"))) << "must not exhaust the stack";
  std::string objects = "1";
  for (int level = 0; level < 100; ++level) objects = R"({"a": )" + objects + R"(, "b": [1], "a": 2})";
  const Result<Json> deep_objects = parse_json(objects, "t.json");
  ASSERT_FALSE(static_cast<bool>(deep_objects));
  EXPECT_EQ(deep_objects.error().message, "t.json: nested deeper than 64 levels");
  const Result<Json> large = parse_json("\"" + std::string(std::size_t{65} << 20, 'x') + "\"", "t.json");
  ASSERT_FALSE(static_cast<bool>(large));
  EXPECT_THAT(large.error().message, HasSubstr("larger than 64 MiB"));
}

}  // namespace
}  // namespace artune
