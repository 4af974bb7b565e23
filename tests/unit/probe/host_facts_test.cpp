// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/host_facts.hpp"

#include <gtest/gtest.h>

#include "temporary_tree.hpp"

namespace artune {
namespace {

TEST(HostFacts, ReadsTheMachine) {
  const TemporaryTree tree;
  tree.write("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
  tree.write("/sys/class/dmi/id/bios_vendor", "American Megatrends Inc.\n");
  tree.write("/sys/class/dmi/id/bios_version", "1.40\n");
  tree.write("/sys/class/dmi/id/bios_date", "05/07/2025\n");
  tree.write("/sys/class/dmi/id/board_name", "TRX50-SAGE\n");
  tree.write("/proc/driver/nvidia/params",
             "EnableMSI: 1\nRegistryDwords: \"ForceP2P=0x11;RMForceP2PType=1\"\nRegistryDwordsPerDevice: \"\"\n");
  tree.write("/proc/cmdline",
             "BOOT_IMAGE=/vmlinuz root=UUID=secret ro iommu=pt pci=realloc nvidia-drm.modeset=1 password=secret\n");
  MachineFacts machine;
  read_host_facts(tree.files(), machine);
  EXPECT_EQ(machine.kernel, "6.8.0-45-generic");
  EXPECT_EQ(machine.bios, "American Megatrends Inc. 1.40 (05/07/2025) on TRX50-SAGE");
  EXPECT_EQ(machine.registry_dwords, "ForceP2P=0x11;RMForceP2PType=1");
  EXPECT_EQ(machine.boot_switches, "iommu=pt pci=realloc nvidia-drm.modeset=1");
  EXPECT_EQ(machine.container, "none");
  EXPECT_EQ(machine.vm, "none");
}

TEST(HostFacts, NothingReadableIsEmpty) {
  const TemporaryTree tree;
  MachineFacts machine;
  read_host_facts(tree.files(), machine);
  EXPECT_EQ(machine.kernel, "");
  EXPECT_EQ(machine.bios, "");
  EXPECT_EQ(machine.registry_dwords, "");
}

TEST(HostFacts, IommuModeIsTheMostDangerousOne) {
  EXPECT_EQ(combined_iommu_mode({"identity", "DMA-FQ", "DMA"}), "DMA-FQ");
  EXPECT_EQ(combined_iommu_mode({"identity", "DMA"}), "DMA");
  EXPECT_EQ(combined_iommu_mode({"identity", "not readable"}), "not readable");
  EXPECT_EQ(combined_iommu_mode({"off", "off"}), "off");
  EXPECT_EQ(combined_iommu_mode({}), "not readable");
}

struct ContainerCase {
  const char* path;
  const char* content;
  const char* container;
};
class DetectContainer : public testing::TestWithParam<ContainerCase> {};
TEST_P(DetectContainer, ByItsMarks) {
  const TemporaryTree tree;
  tree.write(GetParam().path, GetParam().content);
  EXPECT_EQ(detect_container(tree.files()), GetParam().container);
}
INSTANTIATE_TEST_SUITE_P(
    Marks, DetectContainer,
    testing::Values(ContainerCase{"/.dockerenv", "", "docker"}, ContainerCase{"/run/.containerenv", "", "podman"},
                    ContainerCase{"/run/systemd/container", "systemd-nspawn\n", "systemd-nspawn"},
                    ContainerCase{"/proc/1/cgroup", "0::/kubepods/burstable/pod1\n", "kubernetes"},
                    ContainerCase{"/proc/1/cgroup", "1:cpu:/lxc/box\n", "lxc"},
                    ContainerCase{"/proc/1/cgroup", "0::/init.scope\n", "none"},
                    ContainerCase{"/proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n", "gvisor"}));

TEST(DetectVm, NeedsTheProcessorsBit) {
  const TemporaryTree tree;
  tree.write("/sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
  tree.write("/proc/cpuinfo", "flags\t: fpu vme\n");
  EXPECT_EQ(detect_vm(tree.files()), "none") << "bare metal of a cloud";
  tree.write("/proc/cpuinfo", "flags\t: fpu hypervisor vme\n");
  EXPECT_EQ(detect_vm(tree.files()), "kvm");
  tree.write("/sys/class/dmi/id/sys_vendor", "Somebody\n");
  EXPECT_EQ(detect_vm(tree.files()), "unknown hypervisor");
}

}  // namespace
}  // namespace artune
