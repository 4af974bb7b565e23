// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Where profiles are looked for. The first place that is set or holds a file wins:
//   1. the path that the caller names (--profile, the config struct)
//   2. ARTUNE_PROFILE
//   3. $XDG_CONFIG_HOME/ar-tune/profiles/<fingerprint>.json   ($HOME/.config where that isn't set)
//   4. /etc/ar-tune/profiles/<fingerprint>.json
//
//   const ProfilePlaces places{.named = config.profile, .environment = env.profile, .config_home = env.config_home};
//   if (const auto found = find_profile(places, fingerprint(here))) profile = read_profile(found->path);
//   else log("no profile for this group: looked at " + join(profile_candidates(places, fingerprint(here))));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artune {

/// What the caller and the environment say. Empty = not set. Plain strings, so that tests need no environment;
/// src/seams/environment.hpp reads the real one.
struct ProfilePlaces {
  std::string named;        ///< --profile or the config struct
  std::string environment;  ///< ARTUNE_PROFILE
  std::string config_home;  ///< $XDG_CONFIG_HOME or $HOME/.config; only an absolute path counts
  std::string system = "/etc/ar-tune/profiles";
};

struct FoundProfile {
  std::string path;
  std::string_view source;  ///< "named", "ARTUNE_PROFILE", "user", "system": for one line in a log
  bool operator==(const FoundProfile&) const = default;
};

/// A named path is returned whether it exists or not: what was asked for by name must not be passed over in silence,
/// read_profile() says what is wrong with it. The other two only when a file is there.
std::optional<FoundProfile> find_profile(const ProfilePlaces& places, const std::string& fingerprint);

/// The paths that find_profile() looks at, in order.
std::vector<std::string> profile_candidates(const ProfilePlaces& places, const std::string& fingerprint);

/// Where `tune` writes without -o: a simulated profile must not be mistaken for a measured one.
std::string_view default_output_name(bool simulated);

}  // namespace artune
