// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/fingerprint.hpp"

#include <gmock/gmock.h>

#include <set>

#include "base/failure.hpp"

namespace artune {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

GpuFacts gpu(int index, const std::string& name = "NVIDIA H200", const std::string& capability = "9.0") {
  GpuFacts facts;
  facts.index = index;
  facts.name = name;
  facts.compute_capability = capability;
  facts.link_now = {1, 16};
  facts.link_max = {5, 16};
  return facts;
}

/// Two switches with two GPUs each: 0 and 1, 2 and 3.
std::string way(int from, int to) { return pair_class(from / 2 == to / 2 ? "PIX" : "NODE", false); }

struct Box {
  MachineFacts machine;
  World world;
  bool simulated = false;

  explicit Box(std::vector<int> devices = {0, 1}) {
    for (int i = 0; i < 4; ++i) machine.gpus.push_back(gpu(i));
    machine.driver = "580.159.03";
    machine.cuda_driver = "13.0";
    machine.nccl_version = "2.30.7";
    machine.kernel = "6.1.0";
    machine.bios = "1.4";
    machine.iommu_mode = "off";
    world.devices = std::move(devices);
  }
  GroupFacts facts() const { return group_facts_from(machine, world, simulated, way); }
  std::string print() const { return fingerprint(facts()); }
  Profile profile() const {
    Profile profile;
    profile.header.machine = machine;
    profile.header.world = world;
    profile.header.simulated = simulated;
    profile.header.shared_gpu = world.ranks_per_gpu > 1;
    profile.fingerprint = print();
    return profile;
  }
};

// A fingerprint names files on people's disks: a change here orphans them and must be meant.
TEST(Fingerprint, IsStable) {
  EXPECT_EQ(Box().print(), "2x-nvidia-h200-pix-73221dfb48b3a1d4");
  EXPECT_EQ(Box({0, 1, 2, 3}).print(), "4x-nvidia-h200-node-pix-bbcdf437dedf7710");
}

TEST(Fingerprint, ExampleProfileCarriesItsOwn) {
  const Result<Profile> example = read_profile(std::string(ARTUNE_SOURCE_DIR) + "/profiles/examples/four-gpus.json");
  ASSERT_TRUE(static_cast<bool>(example));
  const DocumentHeader& header = example->header;
  EXPECT_EQ(example->fingerprint, fingerprint(group_facts_from(header.machine, *header.world, header.simulated,
                                                               [](int, int) { return pair_class("PIX", false); })));
}

TEST(Fingerprint, IsomorphicGroupsShareIt) {
  EXPECT_EQ(Box({0, 1}).print(), Box({2, 3}).print());
  EXPECT_EQ(Box({0, 1}).print(), Box({1, 0}).print());
  EXPECT_EQ(Box({0, 2}).print(), Box({1, 3}).print());
  EXPECT_EQ(Box({0, 1, 2, 3}).print(), Box({2, 3, 0, 1}).print());
  Box other_driver;
  other_driver.machine.driver = "999";
  other_driver.machine.gpus[0].uuid_sha256 = "abcd";
  other_driver.machine.gpus[0].link_now.width = 4;
  EXPECT_EQ(Box().print(), other_driver.print());
}

TEST(Fingerprint, EveryHardFactCounts) {
  std::set<std::string> prints = {Box().print(), Box({0, 2}).print(), Box({0, 1, 2, 3}).print(), Box({0, 2, 1, 3}).print(),
                                  Box({0}).print()};
  Box model;
  model.machine.gpus[1].name = "NVIDIA H100";
  prints.insert(model.print());
  std::swap(model.machine.gpus[0].name, model.machine.gpus[1].name);
  prints.insert(model.print());  // the order of the models
  Box capability;
  capability.machine.gpus[0].compute_capability = "9.1";
  prints.insert(capability.print());
  Box shared;
  shared.world.ranks_per_gpu = 2;
  prints.insert(shared.print());
  Box simulated;
  simulated.simulated = true;
  prints.insert(simulated.print());
  GroupFacts abi = Box().facts();
  abi.table_abi = kTableAbi + 1;
  prints.insert(fingerprint(abi));
  EXPECT_THAT(prints, SizeIs(11));
}

TEST(Fingerprint, IsAFileName) {
  Box box({0, 1, 2, 3});
  box.machine.gpus[0].name = "NVIDIA  GeForce/RTX (4090) \xc3\xa9";
  box.machine.gpus[1].name = "../../etc";
  box.machine.gpus[2].name = std::string(300, 'x');
  box.machine.gpus[3].name = "";
  const std::string print = box.print();
  EXPECT_THAT(print, testing::MatchesRegex("[a-z0-9-]+"));
  EXPECT_LE(print.size(), 120U);
}

TEST(Fingerprint, PairClassIgnoresCaseAndPrefersNvlink) {
  EXPECT_EQ(pair_class("PIX", false), "pix");
  EXPECT_EQ(pair_class("SYS", true), "nvlink");
}

TEST(Fingerprint, UnknownGpuIsAFailure) { EXPECT_THROW(Box({0, 9}).facts(), Failure); }

TEST(Match, SameMachine) {
  const Box box;
  const Match match = match_profile(box.profile(), box.facts(), box.machine);
  EXPECT_TRUE(match.usable());
  EXPECT_THAT(match.warnings(), IsEmpty());
  EXPECT_EQ(match.refusal(), "");
}

TEST(Match, OtherModelsAreRefusedByName) {
  const Box box;
  Box other;
  other.machine.gpus[1].name = "NVIDIA A10";
  const Match match = match_profile(box.profile(), other.facts(), other.machine);
  EXPECT_FALSE(match.usable());
  EXPECT_EQ(match.reason, Reason::foreign_profile);
  EXPECT_EQ(
      match.refusal(),
      "the profile isn't for this group (GPUs in order: 2x NVIDIA H200 in the profile, 1x NVIDIA H200, 1x NVIDIA A10 here); "
      "tune on this machine, or name another profile");
}

TEST(Match, OtherWaysBetweenTheGpusAreRefused) {
  const Box near({0, 1}), far({0, 2});
  const Match match = match_profile(near.profile(), far.facts(), far.machine);
  EXPECT_EQ(match.reason, Reason::foreign_profile);
  EXPECT_THAT(match.refusal(), HasSubstr("ways between the GPUs: 2x-nvidia-h200-pix"));
  EXPECT_THAT(match.refusal(), HasSubstr("2x-nvidia-h200-node"));
}

TEST(Match, RanksPerGpuAndTableAbiAreRefused) {
  Box shared, more;
  shared.world.ranks_per_gpu = 2;
  more.world.ranks_per_gpu = 4;
  EXPECT_THAT(match_profile(shared.profile(), more.facts(), more.machine).refusal(),
              HasSubstr("ranks per GPU: 2 in the profile, 4 here"));
  EXPECT_TRUE(match_profile(shared.profile(), shared.facts(), shared.machine).usable());
  Profile old = Box().profile();
  old.table_abi = kTableAbi + 1;
  EXPECT_THAT(match_profile(old, Box().facts(), Box().machine).refusal(), HasSubstr("table ABI"));
}

TEST(Match, RehearsalsAreRefusedElsewhere) {
  const Box real;
  Box simulated, shared;
  simulated.simulated = true;
  shared.world.ranks_per_gpu = 2;
  for (const Box* rehearsal : {&simulated, &shared}) {
    const Match match = match_profile(rehearsal->profile(), real.facts(), real.machine);
    EXPECT_FALSE(match.usable());
    EXPECT_EQ(match.reason, Reason::simulated_profile);
    EXPECT_THAT(match.refusal(), HasSubstr("rehearsal"));
  }
  EXPECT_TRUE(match_profile(simulated.profile(), simulated.facts(), simulated.machine).usable());
  EXPECT_FALSE(match_profile(real.profile(), simulated.facts(), simulated.machine).usable());
}

TEST(Match, BootStateDemotes) {
  const std::vector<std::string MachineFacts::*> facts = {&MachineFacts::iommu_mode, &MachineFacts::kernel, &MachineFacts::bios,
                                                          &MachineFacts::boot_switches, &MachineFacts::registry_dwords};
  for (const auto fact : facts) {
    Box now;
    now.machine.*fact = "changed";
    const Match match = match_profile(Box().profile(), now.facts(), now.machine);
    EXPECT_TRUE(match.usable());
    ASSERT_THAT(match.boot_state_changed, SizeIs(1));
    EXPECT_THAT(match.warnings().at(0), HasSubstr("changed here"));
    EXPECT_THAT(match.warnings().at(0), HasSubstr("ar-tune check"));
    now.machine.*fact = "not readable";
    EXPECT_THAT(match_profile(Box().profile(), now.facts(), now.machine).boot_state_changed, IsEmpty());
  }
}

TEST(Match, SoftFactsWarn) {
  Box now;
  now.machine.driver = "590.10";
  now.machine.nccl_version = "2.31.0";
  now.machine.gpus[1].link_now.width = 4;
  now.machine.gpus[0].link_max.generation = 4;
  now.machine.gpus[3].link_now.width = 1;  // not of the group
  const Match match = match_profile(Box().profile(), now.facts(), now.machine);
  EXPECT_TRUE(match.usable());
  EXPECT_THAT(match.boot_state_changed, IsEmpty());
  ASSERT_THAT(match.soft, SizeIs(4));
  EXPECT_EQ(match.soft[0].text(), "driver: 580.159.03 in the profile, 590.10 here");
  EXPECT_EQ(match.soft[3].text(), "link width of GPU 1 of the group: 16 in the profile, 4 here");
  Box unreadable;
  unreadable.machine.driver = "";
  unreadable.machine.gpus[0].link_now.width = 0;
  EXPECT_THAT(match_profile(Box().profile(), unreadable.facts(), unreadable.machine).soft, IsEmpty());
}

}  // namespace
}  // namespace artune
