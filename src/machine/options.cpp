// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/options.hpp"

#include <climits>

#include "machine/wire.hpp"

namespace artune {

Json options_to_json(const MachineOptions& options) {
  Json json = {{"rig", options.rig},
               {"devices", options.devices},
               {"ranks_per_gpu", options.ranks_per_gpu},
               {"ranks", options.ranks},
               {"nccl_file", options.nccl_file},
               {"max_memory_bytes", options.max_memory_bytes},
               {"timeout_s", options.timeout_s},
               {"seed", options.seed},
               {"risky", options.risky},
               {"profile", options.profile}};
  if (options.known_verdicts) json["known_verdicts"] = wire::list_to_json(*options.known_verdicts);
  return json;
}

MachineOptions options_from_json(const JsonReader& object) {
  object.expect_keys({"rig", "devices", "ranks_per_gpu", "ranks", "nccl_file", "max_memory_bytes", "timeout_s", "seed", "risky",
                      "profile", "known_verdicts"});
  const auto whole = [](std::int64_t low) {
    return [low](const JsonReader& item) { return static_cast<int>(item.integer(low, INT_MAX)); };
  };
  MachineOptions options;
  options.rig = object.at("rig").string();
  options.devices = wire::list_from_json(object.at("devices"), whole(0));
  options.ranks_per_gpu = whole(1)(object.at("ranks_per_gpu"));
  options.ranks = wire::list_from_json(object.at("ranks"), whole(1));
  options.nccl_file = object.at("nccl_file").string();
  options.max_memory_bytes = object.at("max_memory_bytes").bytes();
  options.timeout_s = object.at("timeout_s").number();
  if (!object.at("seed").raw().is_number_unsigned()) object.at("seed").fail("expected a whole number from 0 on");
  options.seed = object.at("seed").raw().get<std::uint64_t>();
  options.risky = object.at("risky").boolean();
  options.profile = object.at("profile").string();
  if (const auto verdicts = object.find("known_verdicts")) {
    options.known_verdicts = wire::list_from_json(*verdicts, wire::pair_verdict_from_json);
  }
  return options;
}

}  // namespace artune
