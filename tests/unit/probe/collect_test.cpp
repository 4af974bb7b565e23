// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/collect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/sha256.hpp"
#include "test_box.hpp"

namespace artune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Topology collected(TestBox& box) {
  Result<Topology> topology = box.collect();
  if (!topology) {
    ADD_FAILURE() << topology.error().message;
    return {};
  }
  return *topology;
}

TEST(PciTree, ReadsBridgesAndNumaThroughHwloc) {
  const PciTree tree = TestBox::pci_tree();
  EXPECT_EQ(tree.packages, 2);
  EXPECT_EQ(tree.numa_nodes, 2);
  EXPECT_THAT(tree.cpus_of_node, ElementsAre(std::pair(0, 2), std::pair(1, 2)));
  const PciFunction* gpu = tree.find("0000:84:00.0");
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->parent, "0000:82:10.0");
  EXPECT_EQ(gpu->root_bus, "0000:80");
  EXPECT_EQ(gpu->vendor, 0x10de);
  EXPECT_EQ(gpu->device, 0x2bb1);
  EXPECT_EQ(gpu->numa_node, 1);
  EXPECT_EQ(gpu->package, 1);
  const PciFunction* root_port = tree.find("0000:80:01.1");
  ASSERT_NE(root_port, nullptr);
  EXPECT_EQ(root_port->parent, "");
  EXPECT_EQ(tree.find(""), nullptr);
}

TEST(CollectTopology, FillsGpus) {
  TestBox box;
  const Topology topology = collected(box);
  ASSERT_EQ(topology.gpus.size(), 4U);
  const GpuFacts& gpu = topology.header.machine.gpus[2];
  EXPECT_EQ(gpu.index, 2);
  EXPECT_EQ(gpu.pci_address, "0000:83:00.0");
  EXPECT_EQ(gpu.name, "NVIDIA RTX PRO 6000");
  EXPECT_EQ(gpu.uuid_sha256, sha256_hex(uuid_of_box_gpu(2)).substr(0, 16));
  EXPECT_EQ(gpu.memory_bytes, std::size_t{96} << 30) << "NVML's figure: CUDA's leaves out what the driver keeps";
  EXPECT_EQ(gpu.bar1_bytes, std::size_t{128} << 30);
  EXPECT_EQ(gpu.l2_bytes, std::size_t{128} << 20);
  EXPECT_EQ(gpu.compute_capability, "12.0");
  EXPECT_EQ(gpu.multiprocessors, 188);
  EXPECT_EQ(gpu.link_now, (LinkState{1, 16}));
  EXPECT_EQ(gpu.numa_node, 1);
  EXPECT_EQ(topology.header.machine.driver, "580.159.03");
  EXPECT_EQ(topology.header.machine.cuda_driver, "13.0");
  EXPECT_EQ(topology.header.machine.cuda_runtime, "12.8");
  EXPECT_EQ(topology.header.machine.iommu_mode, "identity");
  EXPECT_EQ(topology.header.machine.numa_nodes, 2);
  EXPECT_EQ(topology.header.kind, "ar-tune/probe");
  EXPECT_FALSE(topology.header.world.has_value());
  EXPECT_THAT(topology.findings, IsEmpty());
  ASSERT_EQ(topology.numa.size(), 2U);
  EXPECT_THAT(topology.numa[1].gpus, ElementsAre(2, 3));
}

TEST(CollectTopology, ListsEveryHopOnceAndWalksUpwards) {
  TestBox box;
  const Topology topology = collected(box);
  EXPECT_EQ(topology.links.size(), 12U) << "4 GPUs, 4 downstream ports, 2 upstream ports, 2 root ports";
  const auto path = topology.path_of(3);
  ASSERT_EQ(path.size(), 4U);
  EXPECT_EQ(path[0]->kind, LinkKind::gpu);
  EXPECT_EQ(path[1]->address, "0000:82:10.0");
  EXPECT_EQ(path[1]->kind, LinkKind::downstream_port);
  EXPECT_EQ(path[1]->name, "Broadcom PEX 89000 series");
  EXPECT_THAT(path[1]->gpus, ElementsAre(3));
  EXPECT_EQ(path[2]->kind, LinkKind::upstream_port);
  EXPECT_THAT(path[2]->gpus, ElementsAre(2, 3));
  EXPECT_EQ(path[3]->kind, LinkKind::root_port);
  EXPECT_EQ(path[3]->vendor_device, "1022:14ab");
  EXPECT_EQ(path[3]->now, (LinkState{5, 8}));
  EXPECT_EQ(path[3]->max, (LinkState{5, 16}));
  EXPECT_EQ(path[3]->acs_redirect, AcsRedirect::unread);
}

TEST(CollectTopology, ListsEveryOrderedPair) {
  TestBox box;
  box.cuda.peers[0].access = false;  // 0 -> 1 only
  const Topology topology = collected(box);
  EXPECT_EQ(topology.pairs.size(), 12U);
  EXPECT_EQ(topology.find_pair(0, 1)->access, false);
  EXPECT_EQ(topology.find_pair(1, 0)->access, true);
  EXPECT_EQ(topology.find_pair(0, 1)->level, PeerLevel::pix);
  EXPECT_EQ(topology.find_pair(0, 2)->level, PeerLevel::sys);
  EXPECT_EQ(topology.find_pair(0, 2)->performance_rank, 1);
  EXPECT_EQ(topology.find_pair(0, 2)->native_atomics, false);
  EXPECT_EQ(topology.find_pair(0, 2)->nvml_write, P2pStatus::ok);
  EXPECT_THAT(topology.find_pair(0, 2)->risks, IsEmpty());
  EXPECT_EQ(topology.find_pair(0, 0), nullptr);
}

TEST(CollectTopology, LevelsComeFromTheTreeWhereNvmlIsSilent) {
  TestBox box;
  box.nvml.pairs.clear();
  const Topology topology = collected(box);
  EXPECT_EQ(topology.find_pair(0, 1)->level, PeerLevel::pix);
  EXPECT_EQ(topology.find_pair(0, 2)->level, PeerLevel::sys);
  EXPECT_EQ(topology.find_pair(0, 2)->nvml_write, P2pStatus::unknown);
}

TEST(CollectTopology, NvidiaSmiIndexIsNotTheCudaOrdinal) {
  TestBox box;
  // CUDA_VISIBLE_DEVICES=3,1: CUDA calls index 3 "0" and index 1 "1", and shows nothing else.
  CudaDevice first = box.cuda.devices[3], second = box.cuda.devices[1];
  first.ordinal = 0;
  second.ordinal = 1;
  box.cuda.devices = {first, second};
  box.cuda.peers = {{0, 1, true, 4, false}, {1, 0, false, 5, true}};
  const Topology topology = collected(box);
  ASSERT_EQ(topology.gpus.size(), 4U);
  EXPECT_EQ(topology.gpus[3].cuda_ordinal, 0);
  EXPECT_EQ(topology.gpus[1].cuda_ordinal, 1);
  EXPECT_EQ(topology.gpus[0].cuda_ordinal, std::nullopt);
  EXPECT_EQ(topology.find_pair(3, 1)->performance_rank, 4);
  EXPECT_EQ(topology.find_pair(3, 1)->access, true);
  EXPECT_EQ(topology.find_pair(1, 3)->access, false);
  EXPECT_EQ(topology.find_pair(1, 3)->native_atomics, true);
  EXPECT_EQ(topology.find_pair(0, 1)->access, std::nullopt);
}

TEST(CollectTopology, ABlockedGpuLeavesAGapInTheIndices) {
  TestBox box;
  box.nvml.blocked = 1;
  box.cuda.devices.erase(box.cuda.devices.begin() + 1);
  const Topology topology = collected(box);
  ASSERT_EQ(topology.gpus.size(), 3U);
  EXPECT_EQ(topology.gpus[1].index, 2);
  EXPECT_EQ(topology.gpus[1].pci_address, "0000:83:00.0");
  EXPECT_EQ(topology.find_pair(0, 2)->level, PeerLevel::sys);
}

TEST(CollectTopology, WorksWithoutNvmlAndWithoutHwloc) {
  TestBox box;
  std::swap(box.cuda.devices[0], box.cuda.devices[3]);
  const auto nvml = unavailable_nvml({Reason::unavailable, "no library"});
  const Result<Topology> topology = collect_topology(box.cuda, *nvml, box.tree.files(), PciTree(), nullptr);
  ASSERT_TRUE(topology) << topology.error().message;
  ASSERT_EQ(topology->gpus.size(), 4U);
  EXPECT_EQ(topology->gpus[0].pci_address, "0000:03:00.0") << "in the order of PCI addresses, as nvidia-smi counts";
  EXPECT_EQ(topology->header.machine.gpus[0].memory_bytes, std::size_t{95} << 30);
  EXPECT_EQ(topology->gpus[0].display_active, std::nullopt);
  EXPECT_EQ(topology->links.size(), 4U);
  EXPECT_EQ(topology->find_pair(0, 1)->level, PeerLevel::unknown);
  EXPECT_EQ(topology->header.machine.driver, "");
  EXPECT_EQ(topology->header.machine.cuda_driver, "13.0");
}

TEST(CollectTopology, OwnProcessesAreNoOtherProcesses) {
  TestBox box;
  box.nvml.processes[1] = {{static_cast<unsigned>(::getpid()), "me", std::nullopt},
                           {static_cast<unsigned>(::getppid()), "parent", std::nullopt},
                           {4242, "python3", std::size_t{1} << 30}};
  const Topology topology = collected(box);
  ASSERT_EQ(topology.gpus[1].other_processes.size(), 1U);
  EXPECT_EQ(topology.gpus[1].other_processes[0].pid, 4242U);
  EXPECT_THAT(topology.gpus[0].other_processes, IsEmpty());
}

TEST(CollectTopology, TranslatingIommuMakesItsPairsRisky) {
  TestBox box;
  box.tree.write("/sys/bus/pci/devices/0000:04:00.0/iommu_group/type", "DMA-FQ\n");
  const Topology topology = collected(box);
  EXPECT_EQ(topology.header.machine.iommu_mode, "DMA-FQ");
  EXPECT_THAT(topology.find_pair(0, 1)->risks, ElementsAre(HasSubstr("DMA-FQ")));
  EXPECT_THAT(topology.find_pair(1, 3)->risks, ElementsAre(HasSubstr("DMA-FQ")));
  EXPECT_THAT(topology.find_pair(0, 2)->risks, IsEmpty());
}

TEST(CollectTopology, RedirectCountsOnlyOnPortsBetweenTheTwo) {
  TestBox box;
  box.write_acs("0000:02:10.0", 0x1d);  // downstream port above GPU 1
  box.write_acs("0000:80:01.1", 0x1d);  // root port above GPUs 2 and 3
  box.write_acs("0000:01:00.0", 0x11);  // source validation alone harms nobody
  const Topology topology = collected(box);
  EXPECT_EQ(topology.find_link("0000:02:10.0")->acs_redirect, AcsRedirect::set);
  EXPECT_EQ(topology.find_link("0000:01:00.0")->acs_redirect, AcsRedirect::clear);
  EXPECT_THAT(topology.find_pair(0, 1)->risks, ElementsAre(HasSubstr("0000:02:10.0")));
  EXPECT_THAT(topology.find_pair(2, 3)->risks, IsEmpty()) << "they meet in the switch below the root port";
  EXPECT_THAT(topology.find_pair(0, 2)->risks, ElementsAre(HasSubstr("0000:80:01.1")));
  EXPECT_THAT(topology.find_pair(2, 1)->risks, ElementsAre(testing::AllOf(HasSubstr("0000:02:10.0"), HasSubstr("0000:80:01.1"))));
}

TEST(CollectTopology, ForcedP2pAndIntelClientsAreRisks) {
  TestBox box;
  box.tree.write("/proc/driver/nvidia/params", "RegistryDwords: \"ForceP2P=0x11;RMForceP2PType=1\"\n");
  box.tree.pci_device("0000:00:00.0", "0x8086", "0xa700", "0x060000");
  box.tree.write("/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu vme\n");
  const Topology topology = collected(box);
  EXPECT_TRUE(topology.intel_client);
  EXPECT_EQ(topology.host_bridge, "8086:a700");
  EXPECT_THAT(topology.find_pair(0, 1)->risks, ElementsAre(HasSubstr("ForceP2P=0x11")))
      << "behind one switch the root complex isn't involved";
  EXPECT_THAT(topology.find_pair(0, 2)->risks, ElementsAre(HasSubstr("ForceP2P"), HasSubstr("Intel client")));
}

TEST(CollectTopology, NoGpuIsAnError) {
  TestBox box;
  box.cuda.devices.clear();
  box.cuda.error_code = 100;
  const Result<Topology> topology = box.collect();
  ASSERT_FALSE(topology);
  EXPECT_EQ(topology.error().reason, Reason::no_usable_gpu);
}

}  // namespace
}  // namespace artune
