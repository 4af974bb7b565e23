// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/lookup.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace artune {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Lookup : public testing::Test {
 protected:
  Lookup() {
    std::string name = (std::filesystem::temp_directory_path() / "artune-lookup-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    places_.config_home = root_ + "/config";
    places_.system = root_ + "/etc";
    std::filesystem::create_directories(root_ + "/config/ar-tune/profiles");
    std::filesystem::create_directories(places_.system);
  }
  ~Lookup() override { std::filesystem::remove_all(root_); }
  std::string make(const std::string& relative) {
    std::ofstream(root_ + "/" + relative) << "{}";
    return root_ + "/" + relative;
  }
  std::string root_;
  ProfilePlaces places_;
};

TEST_F(Lookup, FirstPlaceWins) {
  EXPECT_EQ(find_profile(places_, "print"), std::nullopt);

  const std::string system = make("etc/print.json");
  EXPECT_EQ(find_profile(places_, "print")->path, system);
  EXPECT_EQ(find_profile(places_, "print")->source, "system");

  const std::string user = make("config/ar-tune/profiles/print.json");
  EXPECT_EQ(find_profile(places_, "print")->path, user);
  EXPECT_EQ(find_profile(places_, "other"), std::nullopt);

  places_.environment = make("environment.json");
  EXPECT_EQ(find_profile(places_, "print")->path, places_.environment);
  EXPECT_EQ(find_profile(places_, "print")->source, "ARTUNE_PROFILE");

  places_.named = make("named.json");
  EXPECT_EQ(find_profile(places_, "print")->path, places_.named);
}

TEST_F(Lookup, WhatWasNamedIsNotPassedOver) {
  make("etc/print.json");
  places_.environment = root_ + "/missing.json";
  EXPECT_EQ(find_profile(places_, "print")->path, places_.environment);
}

TEST_F(Lookup, RelativeConfigHomeIsIgnored) {
  places_.config_home = "config";
  EXPECT_THAT(profile_candidates(places_, "print"), ElementsAre(root_ + "/etc/print.json"));
  places_.system.clear();
  EXPECT_THAT(profile_candidates(places_, "print"), IsEmpty());
}

TEST_F(Lookup, ListsItsPlaces) {
  EXPECT_THAT(profile_candidates(places_, "print"),
              ElementsAre(root_ + "/config/ar-tune/profiles/print.json", root_ + "/etc/print.json"));
  EXPECT_THAT(profile_candidates(ProfilePlaces{}, "print"), ElementsAre("/etc/ar-tune/profiles/print.json"));
}

TEST(OutputName, SimulatedSaysSo) {
  EXPECT_EQ(default_output_name(true), "simulated-ar-tune-profile.json");
  EXPECT_EQ(default_output_name(false), "ar-tune-profile.json");
}

}  // namespace
}  // namespace artune
