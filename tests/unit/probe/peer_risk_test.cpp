// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/peer_risk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_tree.hpp"

namespace artune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PeerRiskFacts harmless() {
  PeerRiskFacts facts;
  facts.level = PeerLevel::phb;
  facts.iommu_types = {"identity", "off"};
  return facts;
}

TEST(PeerTestRisks, PassThroughIsHarmless) { EXPECT_THAT(peer_test_risks(harmless()), IsEmpty()); }

TEST(PeerTestRisks, NamesEveryReason) {
  PeerRiskFacts facts = harmless();
  facts.iommu_types = {"identity", "DMA"};
  facts.redirecting_ports = {"0000:00:01.1", "0000:40:01.1"};
  facts.registry_dwords = "ForceP2P=17";
  facts.intel_client = true;
  EXPECT_THAT(peer_test_risks(facts), ElementsAre(HasSubstr("ForceP2P=17"), HasSubstr("group type DMA)"),
                                                  HasSubstr("0000:00:01.1, 0000:40:01.1"), HasSubstr("Intel client")));
}

TEST(PeerTestRisks, UnreadableIommuIsNotATranslatingOne) {
  PeerRiskFacts facts = harmless();
  facts.iommu_types = {"not readable", "not readable"};
  EXPECT_THAT(peer_test_risks(facts), IsEmpty());
}

TEST(PeerTestRisks, NvlinkPairsDoNotUsePcieUnlessForced) {
  PeerRiskFacts facts = harmless();
  facts.nvlink = true;
  facts.iommu_types = {"DMA-FQ", "DMA-FQ"};
  EXPECT_THAT(peer_test_risks(facts), IsEmpty());
  facts.registry_dwords = "RMForceP2PType=1";
  EXPECT_THAT(peer_test_risks(facts), ElementsAre(HasSubstr("DMA-FQ")));
}

TEST(PeerTestRisks, IntelClientMattersOnlyThroughTheRootComplex) {
  PeerRiskFacts facts = harmless();
  facts.intel_client = true;
  for (const PeerLevel level : {PeerLevel::same, PeerLevel::pix, PeerLevel::pxb}) {
    facts.level = level;
    EXPECT_THAT(peer_test_risks(facts), IsEmpty()) << to_string(level);
  }
  for (const PeerLevel level : {PeerLevel::phb, PeerLevel::node, PeerLevel::sys, PeerLevel::unknown}) {
    facts.level = level;
    EXPECT_EQ(peer_test_risks(facts).size(), 1U) << to_string(level);
  }
}

TEST(PeerTestRisks, ForceP2pZeroOnlyForbids) {
  PeerRiskFacts facts = harmless();
  facts.registry_dwords = "ForceP2P=0x00";
  EXPECT_THAT(peer_test_risks(facts), IsEmpty());
}

TEST(RegistryValue, FindsWholeKeysInAnyCase) {
  const std::string dwords = "RMForceP2PType=1;ForceP2P=0x11;EnableResizableBar=1";
  EXPECT_EQ(registry_value(dwords, "ForceP2P"), "0x11");
  EXPECT_EQ(registry_value(dwords, "forcep2p"), "0x11");
  EXPECT_EQ(registry_value(dwords, "RMForceP2PType"), "1");
  EXPECT_EQ(registry_value(dwords, "P2P"), "");
  EXPECT_EQ(registry_value("", "ForceP2P"), "");
}

TEST(IntelClient, IsWhatIsNeitherServerNorVirtual) {
  const TemporaryTree tree;
  tree.write("/proc/cpuinfo", "vendor_id\t: GenuineIntel\n");
  EXPECT_TRUE(is_intel_client(tree.files(), "8086:a700"));   // Raptor Lake
  EXPECT_TRUE(is_intel_client(tree.files(), "8086:9b53"));   // Comet Lake
  EXPECT_FALSE(is_intel_client(tree.files(), "8086:09a2"));  // Sapphire Rapids
  EXPECT_FALSE(is_intel_client(tree.files(), "8086:2020"));  // Skylake-E
  EXPECT_FALSE(is_intel_client(tree.files(), "8086:29c0"));  // QEMU's Q35
  EXPECT_FALSE(is_intel_client(tree.files(), "1022:14a4"));
  EXPECT_FALSE(is_intel_client(tree.files(), ""));
}

TEST(HostBridge, ReadsVendorAndDevice) {
  const TemporaryTree tree;
  EXPECT_EQ(read_host_bridge(tree.files()), "");
  tree.pci_device("0000:00:00.0", "0x8086", "0xA700", "0x060000");
  EXPECT_EQ(read_host_bridge(tree.files()), "8086:a700");
}

}  // namespace
}  // namespace artune
