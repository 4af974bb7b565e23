// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace artune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Environment read(const std::map<std::string, std::string>& variables) {
  return Environment::read([&](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional<std::string>(it->second);
  });
}

TEST(Environment, NothingSetMeansDefaults) {
  const Environment environment = read({});
  EXPECT_EQ(environment.profile, "");
  EXPECT_FALSE(environment.disable);
  EXPECT_FALSE(environment.paths.has_value());
  EXPECT_FALSE(environment.timeout_s.has_value());
  EXPECT_EQ(environment.config_home, "");
  EXPECT_EQ(environment.runtime_dir, "/tmp");
  EXPECT_THAT(environment.problems, IsEmpty());
}

TEST(Environment, ReadsEveryVariable) {
  const Environment environment = read({{"ARTUNE_PROFILE", "/p.json"},
                                        {"ARTUNE_NCCL_LIB", "/n.so"},
                                        {"ARTUNE_DISABLE", "1"},
                                        {"ARTUNE_PATHS", "nccl,host,nccl"},
                                        {"ARTUNE_LOG", "1"},
                                        {"ARTUNE_TIMEOUT", "500ms"},
                                        {"XDG_CONFIG_HOME", "/cfg"},
                                        {"HOME", "/home/a"},
                                        {"CUDA_VISIBLE_DEVICES", "1,0"},
                                        {"XDG_RUNTIME_DIR", "/run/user/1"}});
  EXPECT_EQ(environment.profile, "/p.json");
  EXPECT_EQ(environment.nccl_lib, "/n.so");
  EXPECT_TRUE(environment.disable);
  EXPECT_TRUE(environment.log);
  EXPECT_THAT(environment.paths.value(), ElementsAre(Path::nccl, Path::host));
  EXPECT_DOUBLE_EQ(environment.timeout_s.value(), 0.5);
  EXPECT_EQ(environment.config_home, "/cfg");
  EXPECT_EQ(environment.cuda_visible_devices, "1,0");
  EXPECT_EQ(environment.runtime_dir, "/run/user/1");
  EXPECT_THAT(environment.problems, IsEmpty());
}

TEST(Environment, ZeroTimeoutIsOffAndZeroSwitchesAreOff) {
  const Environment environment = read({{"ARTUNE_TIMEOUT", "0"}, {"ARTUNE_DISABLE", "0"}, {"ARTUNE_LOG", ""}});
  EXPECT_DOUBLE_EQ(environment.timeout_s.value(), 0);
  EXPECT_FALSE(environment.disable);
  EXPECT_FALSE(environment.log);
  EXPECT_THAT(environment.problems, IsEmpty());
}

TEST(Environment, MalformedValuesAreNamedAndIgnored) {
  const Environment environment = read({{"ARTUNE_PATHS", "nccl,pcie"}, {"ARTUNE_DISABLE", "yes"}, {"ARTUNE_TIMEOUT", "10"}});
  EXPECT_FALSE(environment.paths.has_value());
  EXPECT_FALSE(environment.disable);
  EXPECT_FALSE(environment.timeout_s.has_value());
  EXPECT_THAT(environment.problems,
              ElementsAre(HasSubstr("ARTUNE_DISABLE: 'yes'"), HasSubstr("ARTUNE_PATHS: 'pcie'"), HasSubstr("ARTUNE_TIMEOUT")));
}

TEST(Environment, RelativeFoldersAreIgnored) {
  EXPECT_EQ(read({{"XDG_CONFIG_HOME", "cfg"}, {"HOME", "/home/a"}}).config_home, "/home/a/.config");
  EXPECT_EQ(read({{"XDG_CONFIG_HOME", ""}, {"HOME", "/home/a"}}).config_home, "/home/a/.config");
  EXPECT_EQ(read({{"HOME", "home"}}).config_home, "");
  EXPECT_EQ(read({{"XDG_RUNTIME_DIR", "run"}}).runtime_dir, "/tmp");
}

TEST(Environment, ColoursAreForTerminalsThatCanAndPeopleWhoDoNotMind) {
  EXPECT_TRUE(read({{"TERM", "xterm"}}).wants_color);
  EXPECT_TRUE(read({{"TERM", "xterm"}, {"NO_COLOR", ""}}).wants_color) << "no-color.org: when present and not empty";
  EXPECT_FALSE(read({{"TERM", "xterm"}, {"NO_COLOR", "0"}}).wants_color) << "whatever its value";
  EXPECT_FALSE(read({{"TERM", "dumb"}}).wants_color);
  EXPECT_FALSE(read({}).wants_color);
}

TEST(Environment, TheTableShowsWhatIsSet) {
  const Environment environment = read({{"ARTUNE_PATHS", "pcie"}});
  int set = 0;
  for (const auto& row : environment.table()) {
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    if (row.value) ++set;
    if (row.name == "ARTUNE_PATHS") {
      EXPECT_EQ(row.value, "pcie");
    }
  }
  EXPECT_EQ(set, 1);
}

}  // namespace
}  // namespace artune
