// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/lookup.hpp"

#include <unistd.h>

namespace artune {
namespace {

std::vector<FoundProfile> all_places(const ProfilePlaces& places, const std::string& fingerprint) {
  if (!places.named.empty()) return {{places.named, "named"}};
  if (!places.environment.empty()) return {{places.environment, "ARTUNE_PROFILE"}};
  std::vector<FoundProfile> found;
  if (places.config_home.starts_with('/'))
    found.push_back({places.config_home + "/ar-tune/profiles/" + fingerprint + ".json", "user"});
  if (!places.system.empty()) found.push_back({places.system + "/" + fingerprint + ".json", "system"});
  return found;
}

}  // namespace

std::optional<FoundProfile> find_profile(const ProfilePlaces& places, const std::string& fingerprint) {
  const bool asked_for = !places.named.empty() || !places.environment.empty();
  for (FoundProfile& place : all_places(places, fingerprint)) {
    // Existence, not readability: a profile that may not be read is an error to report, not a reason to look elsewhere.
    if (asked_for || ::access(place.path.c_str(), F_OK) == 0) return std::move(place);
  }
  return std::nullopt;
}

std::vector<std::string> profile_candidates(const ProfilePlaces& places, const std::string& fingerprint) {
  std::vector<std::string> paths;
  for (FoundProfile& place : all_places(places, fingerprint)) paths.push_back(std::move(place.path));
  return paths;
}

std::string_view default_output_name(bool simulated) {
  return simulated ? "simulated-ar-tune-profile.json" : "ar-tune-profile.json";
}

}  // namespace artune
