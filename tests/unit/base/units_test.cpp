// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <gmock/gmock.h>

namespace artune {
namespace {

using testing::HasSubstr;

TEST(Size, EverySpelling) {
  const std::pair<const char*, std::size_t> words[] = {{"0", 0},
                                                       {"1", 1},
                                                       {"256", 256},
                                                       {"256b", 256},
                                                       {"64K", 65536},
                                                       {"64k", 65536},
                                                       {"64KB", 65536},
                                                       {"64kb", 65536},
                                                       {"64KiB", 65536},
                                                       {"64kib", 65536},
                                                       {"64KIB", 65536},
                                                       {"1M", 1048576},
                                                       {"1mb", 1048576},
                                                       {"1.5M", 1572864},
                                                       {"1.5MiB", 1572864},
                                                       {"0.5K", 512},
                                                       {".5K", 512},
                                                       {"2.K", 2048},
                                                       {"1G", 1073741824},
                                                       {"1gib", 1073741824},
                                                       {"0.1K", 102},
                                                       {"007", 7},
                                                       {"8388607G", 9007198180999168}};
  for (const auto& [word, bytes] : words) {
    const Result<std::size_t> size = parse_size(word);
    ASSERT_TRUE(static_cast<bool>(size)) << word;
    EXPECT_EQ(*size, bytes) << word;
  }
}

TEST(Size, BadWordsAreNamed) {
  for (const char* word : {"",
                           " ",
                           "K",
                           "64Q",
                           "64 K",
                           " 64K",
                           "64K ",
                           "-1",
                           "+1",
                           "1e3",
                           "0x10",
                           "1.2.3",
                           ".",
                           ".K",
                           "1,5M",
                           "64T",
                           "64KK",
                           "64KiBs",
                           "64iB",
                           "inf",
                           "nan",
                           "infK",
                           "1M1",
                           "0b1",
                           "１K",
                           "1_000",
                           "64K\n",
                           "1\t",
                           "99999999999999999999999",
                           "9007199254740992",
                           "8388608G",
                           "auto",
                           "64Kb/s",
                           "--1",
                           "1e400",
                           "K64"}) {
    const Result<std::size_t> size = parse_size(word);
    ASSERT_FALSE(static_cast<bool>(size)) << "'" << word << "' gave " << *size;
    EXPECT_EQ(size.error().reason, Reason::usage) << word;
    EXPECT_THAT(size.error().message, HasSubstr("size '" + std::string(word) + "'"));
    EXPECT_THAT(size.error().message, HasSubstr("64K")) << "names the way out";
  }
  EXPECT_FALSE(static_cast<bool>(parse_size(std::string_view("64K\0", 4)))) << "an embedded zero is no end";
}

TEST(Duration, EverySpelling) {
  const std::pair<const char*, double> words[] = {{"10s", 10},   {"500ms", 0.5}, {"2m", 120},    {"0s", 0},
                                                  {"1.5s", 1.5}, {"90S", 90},    {"250MS", .25}, {".5m", 30}};
  for (const auto& [word, seconds] : words) {
    const Result<double> duration = parse_duration(word);
    ASSERT_TRUE(static_cast<bool>(duration)) << word;
    EXPECT_DOUBLE_EQ(*duration, seconds) << word;
  }
}

TEST(Duration, BadWordsAreNamed) {
  for (const char* word : {"", "10", "s", "10 s", "-10s", "10h", "10us", "1e3s", "infs", "nan", "10sec", "1m30s", "10s ", "ms"}) {
    const Result<double> duration = parse_duration(word);
    ASSERT_FALSE(static_cast<bool>(duration)) << word;
    EXPECT_EQ(duration.error().reason, Reason::usage);
    EXPECT_THAT(duration.error().message, HasSubstr("duration '" + std::string(word) + "'"));
  }
}

TEST(FormatSize, ShortestExactSpellingReadsBack) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(1024), "1K");
  EXPECT_EQ(format_size(65536), "64K");
  EXPECT_EQ(format_size(1572864), "1.5M");
  EXPECT_EQ(format_size(1280), "1.25K");
  EXPECT_EQ(format_size(std::size_t{3} << 30), "3G");
  EXPECT_EQ(format_size(92682), "92682");
  for (std::size_t bytes = 1; bytes < std::size_t{1} << 50; bytes = bytes * 5 / 4 + 1)
    EXPECT_EQ(*parse_size(format_size(bytes)), bytes);
}

}  // namespace
}  // namespace artune
