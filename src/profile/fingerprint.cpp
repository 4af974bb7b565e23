// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/fingerprint.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/failure.hpp"
#include "base/sha256.hpp"

namespace artune {
namespace {

constexpr std::size_t kHashDigits = 16;
constexpr std::size_t kMostSlugCharacters = 100;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// "NVIDIA RTX PRO 6000" -> "nvidia-rtx-pro-6000"
std::string slug(std::string_view text) {
  std::string result;
  for (const unsigned char c : text) {
    if (c < 128 && std::isalnum(c)) {
      result += static_cast<char>(std::tolower(c));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result.empty() ? "gpu" : result;
}

/// Runs of one model: "2x NVIDIA A, 1x NVIDIA B".
template <typename Name>
std::string model_runs(const std::vector<GroupGpu>& gpus, const char* times, const char* between, const Name& name) {
  std::string text;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t end = i;
    while (end < gpus.size() && gpus[end].name == gpus[i].name) ++end;
    text += (text.empty() ? "" : between) + std::to_string(end - i) + times + name(gpus[i].name);
    i = end;
  }
  return text;
}

std::string models_of(const std::vector<GroupGpu>& gpus) {
  return model_runs(gpus, "x ", ", ", [](const std::string& name) { return name; });
}

std::string yes_no(bool value) { return value ? "yes" : "no"; }

const GpuFacts* find_gpu(const MachineFacts& machine, int index) {
  const auto found =
      std::find_if(machine.gpus.begin(), machine.gpus.end(), [&](const GpuFacts& gpu) { return gpu.index == index; });
  return found == machine.gpus.end() ? nullptr : &*found;
}

std::vector<GroupGpu> group_gpus(const MachineFacts& machine, const World& world) {
  std::vector<GroupGpu> gpus;
  for (const int index : world.devices) {
    const GpuFacts* gpu = find_gpu(machine, index);
    if (gpu == nullptr)
      throw Failure("group_facts_from", "the world names GPU " + std::to_string(index) + ", the machine has no such GPU", 0);
    gpus.push_back({gpu->name, gpu->compute_capability, {gpu->link_max.generation, gpu->link_now.width}});
  }
  return gpus;
}

std::size_t gpus_of_ranks(int ranks, int ranks_per_gpu) {
  return static_cast<std::size_t>((ranks + ranks_per_gpu - 1) / ranks_per_gpu);
}

constexpr std::string_view kNotReadable = "not readable";

void compare_setting(std::vector<Difference>& into, const char* key, const std::string& in_profile, const std::string& here) {
  if (in_profile == kNotReadable || here == kNotReadable || in_profile == here) return;
  const auto shown = [](const std::string& setting) { return setting.empty() ? std::string("none") : setting; };
  into.push_back({key, shown(in_profile), shown(here)});
}

void compare(std::vector<Difference>& into, const char* key, const std::string& in_profile, const std::string& here) {
  if (!in_profile.empty() && !here.empty()) compare_setting(into, key, in_profile, here);
}

void compare_models(Match& match, const std::vector<GroupGpu>& profile_gpus, const GroupFacts& here) {
  const auto same_model = [](const GroupGpu& a, const GroupGpu& b) {
    return a.name == b.name && a.compute_capability == b.compute_capability;
  };
  if (!std::equal(profile_gpus.begin(), profile_gpus.end(), here.gpus.begin(), here.gpus.end(), same_model)) {
    match.refused.push_back({"GPUs in order", models_of(profile_gpus), models_of(here.gpus)});
  }
}

void compare_links(Match& match, const std::vector<GroupGpu>& profile_gpus, const GroupFacts& here) {
  for (std::size_t i = 0; i < profile_gpus.size(); ++i) {
    const LinkState& then = profile_gpus[i].link;
    const LinkState& now = here.gpus[i].link;
    const std::string rank_gpu = " of GPU " + std::to_string(i) + " of the group";
    const auto compare_number = [&](const std::string& key, int in_profile, int found) {
      if (in_profile > 0 && found > 0 && in_profile != found)
        match.soft.push_back({key + rank_gpu, std::to_string(in_profile), std::to_string(found)});
    };
    compare_number("link width", then.width, now.width);
    compare_number("link generation", then.generation, now.generation);
  }
}

}  // namespace

std::string pair_class(std::string_view level, bool nvlink) { return nvlink ? "nvlink" : lower(level); }

GroupFacts group_facts_from(const MachineFacts& machine, const World& world, bool simulated,
                            const std::function<std::string(int from, int to)>& pair_class_of) {
  GroupFacts facts;
  facts.gpus = group_gpus(machine, world);
  for (std::size_t i = 0; i < world.devices.size(); ++i) {
    for (std::size_t j = i + 1; j < world.devices.size(); ++j)
      facts.pair_classes.push_back(pair_class_of(world.devices[i], world.devices[j]));
  }
  facts.ranks_per_gpu = world.ranks_per_gpu;
  facts.simulated = simulated;
  return facts;
}

World first_ranks(const World& whole, int ranks) {
  World first = whole;
  first.devices.resize(std::min(whole.devices.size(), gpus_of_ranks(ranks, whole.ranks_per_gpu)));
  first.ranks_per_gpu = std::min(ranks, whole.ranks_per_gpu);
  return first;
}

GroupFacts first_ranks(const GroupFacts& whole, int ranks) {
  GroupFacts first = whole;
  first.gpus.resize(std::min(whole.gpus.size(), gpus_of_ranks(ranks, whole.ranks_per_gpu)));
  first.ranks_per_gpu = std::min(ranks, whole.ranks_per_gpu);
  first.pair_classes.clear();
  std::size_t pair = 0;
  for (std::size_t i = 0; i < whole.gpus.size(); ++i) {
    for (std::size_t j = i + 1; j < whole.gpus.size(); ++j, ++pair) {
      if (j < first.gpus.size()) first.pair_classes.push_back(whole.pair_classes[pair]);
    }
  }
  return first;
}

std::string fingerprint(const GroupFacts& facts) {
  // Every fact on a line of its own: no two groups share a text.
  std::string text = "artune-group 1\nabi " + std::to_string(facts.table_abi) + "\nsimulated " + yes_no(facts.simulated) +
                     "\nranks per gpu " + std::to_string(facts.ranks_per_gpu) + "\n";
  for (const GroupGpu& gpu : facts.gpus) text += "gpu " + gpu.compute_capability + " " + gpu.name + "\n";
  for (const std::string& word : facts.pair_classes) text += "pair " + word + "\n";

  std::string readable_part = facts.simulated ? "simulated-" : "";
  readable_part += model_runs(facts.gpus, "x-", "-", slug);
  if (facts.shared_gpu()) readable_part += "-" + std::to_string(facts.ranks_per_gpu) + "-ranks-each";
  for (const std::string& word : std::set<std::string>(facts.pair_classes.begin(), facts.pair_classes.end()))
    readable_part += "-" + slug(word);
  readable_part.resize(std::min(readable_part.size(), kMostSlugCharacters));
  return readable_part + "-" + sha256_hex(text).substr(0, kHashDigits);
}

std::string Difference::text() const { return key + ": " + in_profile + " in the profile, " + here + " here"; }

std::string Match::refusal() const {
  if (usable()) return {};
  const char* way_out = reason == Reason::simulated_profile ? "such a profile is a rehearsal; tune on this machine"
                                                            : "tune on this machine, or name another profile";
  std::string text = "the profile isn't for this group (";
  for (std::size_t i = 0; i < refused.size(); ++i) text += (i == 0 ? "" : "; ") + refused[i].text();
  return text + "); " + way_out;
}

std::vector<std::string> Match::warnings() const {
  std::vector<std::string> lines;
  for (const Difference& difference : boot_state_changed) {
    lines.push_back("p2p and ce rest, the machine was set up anew since tuning (" + difference.text() + "); run ar-tune check");
  }
  for (const Difference& difference : soft)
    lines.push_back("changed since tuning: " + difference.text() + "; tune again to be sure");
  return lines;
}

Match match_profile(const Profile& profile, const GroupFacts& here, const MachineFacts& machine) {
  Match match;
  const MachineFacts& tuned = profile.header.machine;
  const World world = profile.header.world.value_or(World{});

  if (profile.header.simulated != here.simulated) {
    match.refused.push_back({"simulated", yes_no(profile.header.simulated), yes_no(here.simulated)});
    match.reason = Reason::simulated_profile;
  }
  if (profile.header.shared_gpu && !here.shared_gpu()) {
    match.refused.push_back({"ranks share a GPU", "yes", "no"});
    match.reason = Reason::simulated_profile;
  } else if (world.ranks_per_gpu != here.ranks_per_gpu) {
    match.refused.push_back({"ranks per GPU", std::to_string(world.ranks_per_gpu), std::to_string(here.ranks_per_gpu)});
  }
  if (profile.table_abi != here.table_abi) {
    match.refused.push_back({"table ABI", std::to_string(profile.table_abi), std::to_string(here.table_abi)});
  }
  const std::vector<GroupGpu> profile_gpus = group_gpus(tuned, world);
  compare_models(match, profile_gpus, here);
  // What remains of the hard facts is only in the hash: the kind of way between the pairs.
  if (match.refused.empty() && profile.fingerprint != fingerprint(here)) {
    match.refused.push_back({"ways between the GPUs", profile.fingerprint, fingerprint(here)});
  }
  if (!match.refused.empty()) return match;

  compare(match.boot_state_changed, "IOMMU", tuned.iommu_mode, machine.iommu_mode);
  compare(match.boot_state_changed, "kernel", tuned.kernel, machine.kernel);
  compare(match.boot_state_changed, "BIOS", tuned.bios, machine.bios);
  // Here empty means "none set", which is a setting like any other.
  compare_setting(match.boot_state_changed, "kernel command line", tuned.boot_switches, machine.boot_switches);
  compare_setting(match.boot_state_changed, "RegistryDwords", tuned.registry_dwords, machine.registry_dwords);
  compare(match.soft, "driver", tuned.driver, machine.driver);
  compare(match.soft, "CUDA driver", tuned.cuda_driver, machine.cuda_driver);
  compare(match.soft, "CUDA runtime", tuned.cuda_runtime, machine.cuda_runtime);
  compare(match.soft, "NCCL", tuned.nccl_version, machine.nccl_version);
  compare_links(match, profile_gpus, here);
  return match;
}

}  // namespace artune
