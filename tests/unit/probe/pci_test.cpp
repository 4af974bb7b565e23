// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "probe/pci_config.hpp"
#include "probe/pci_names.hpp"
#include "temporary_tree.hpp"

namespace artune {
namespace {

/// Configuration space with a chain of extended capabilities {identifier, offset}.
std::string config_with(const std::vector<std::pair<int, int>>& chain) {
  std::string config(4096, '\0');
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const int offset = chain[i].second, next = i + 1 < chain.size() ? chain[i + 1].second : 0;
    config[static_cast<std::size_t>(offset)] = static_cast<char>(chain[i].first);
    config[static_cast<std::size_t>(offset) + 2] = static_cast<char>(1 | (next & 0xf) << 4);
    config[static_cast<std::size_t>(offset) + 3] = static_cast<char>(next >> 4);
  }
  return config;
}

TEST(AcsRedirect, ReadsTheControlWord) {
  std::string config = config_with({{0x01, 0x100}, {0x0d, 0x2a0}, {0x1e, 0x400}});
  EXPECT_EQ(acs_redirect(config), AcsRedirect::clear);
  for (const int harmless : {0x01, 0x11, 0x53}) {
    config[0x2a6] = static_cast<char>(harmless);
    EXPECT_EQ(acs_redirect(config), AcsRedirect::clear) << harmless;
  }
  for (const int redirects : {0x04, 0x08, 0x1d}) {
    config[0x2a6] = static_cast<char>(redirects);
    EXPECT_EQ(acs_redirect(config), AcsRedirect::set) << redirects;
  }
}

TEST(AcsRedirect, AbsentUnreadAndBroken) {
  EXPECT_EQ(acs_redirect(config_with({{0x01, 0x100}})), AcsRedirect::absent);
  EXPECT_EQ(acs_redirect(std::string(4096, '\0')), AcsRedirect::absent);
  EXPECT_EQ(acs_redirect(std::string(64, '\0')), AcsRedirect::unread) << "all that anybody but root gets";
  EXPECT_EQ(acs_redirect(std::string(4096, '\xff')), AcsRedirect::unread) << "asleep or gone";
  EXPECT_EQ(acs_redirect(config_with({{0x01, 0x100}, {0x02, 0x140}, {0x01, 0x100}})), AcsRedirect::absent) << "a list that loops";
  EXPECT_EQ(acs_redirect(config_with({{0x01, 0x100}, {0x02, 0xffc}})), AcsRedirect::absent) << "a header that doesn't fit";
}

TEST(PcieLink, ReadsSysfs) {
  const TemporaryTree tree;
  const std::string folder = "/sys/bus/pci/devices/0000:01:00.0";
  tree.write(folder + "/current_link_speed", "2.5 GT/s PCIe\n");
  tree.write(folder + "/current_link_width", "4\n");
  tree.write(folder + "/max_link_speed", "Unknown\n");
  tree.write(folder + "/max_link_width", "255\n");
  EXPECT_EQ(read_link(tree.files(), "0000:01:00.0", "current"), (LinkState{1, 4}));
  EXPECT_EQ(read_link(tree.files(), "0000:01:00.0", "max"), (LinkState{0, 0}));
  EXPECT_EQ(read_link(tree.files(), "0000:02:00.0", "max"), (LinkState{0, 0}));
}

TEST(PcieLink, GenerationFromSpeed) {
  EXPECT_EQ(pcie_generation("5.0 GT/s PCIe"), 2);
  EXPECT_EQ(pcie_generation("8 GT/s"), 3);
  EXPECT_EQ(pcie_generation("16.0 GT/s PCIe"), 4);
  EXPECT_EQ(pcie_generation("32.0 GT/s PCIe"), 5);
  EXPECT_EQ(pcie_generation("64.0 GT/s PCIe"), 6);
  EXPECT_EQ(pcie_generation(""), 0);
}

TEST(IommuGroup, TellsOffFromNotReadable) {
  const TemporaryTree tree;
  tree.pci_device("0000:01:00.0", "0x10de", "0x2684", "0x030000");
  EXPECT_EQ(read_iommu_group_type(tree.files(), "0000:01:00.0"), "off");
  tree.write("/sys/bus/pci/devices/0000:01:00.0/iommu_group/type", "DMA-FQ\n");
  EXPECT_EQ(read_iommu_group_type(tree.files(), "0000:01:00.0"), "DMA-FQ");
  EXPECT_EQ(read_iommu_group_type(tree.files(), "0000:02:00.0"), "not readable");
}

TEST(SwitchNames, KnowsFamiliesAndNoControllers) {
  EXPECT_EQ(known_switch_name(0x1000, 0xc030), "Broadcom PEX 89000 series");
  EXPECT_EQ(known_switch_name(0x10b5, 0x8747), "PLX PEX 8700 series");
  EXPECT_EQ(known_switch_name(0x1000, 0x005d), "") << "a RAID controller";
  EXPECT_EQ(known_switch_name(0x1022, 0x14ab), "");
}

}  // namespace
}  // namespace artune
