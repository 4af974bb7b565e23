// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/print.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_box.hpp"

namespace artune {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(TopologyTables, ShowWhatPeopleLookFor) {
  TestBox box;
  box.nvml.processes[1] = {{4242, "python3", std::size_t{1} << 30}};
  box.cuda.peers[0].access = false;
  box.nvml.pairs[{0, 1}].write = P2pStatus::chipset_not_supported;
  box.tree.write("/sys/bus/pci/devices/0000:84:00.0/iommu_group/type", "DMA\n");
  const std::string text = topology_tables(*box.collect());
  EXPECT_THAT(
      text, HasSubstr("0000:83:00.0  NVIDIA RTX PRO 6000  98304 MiB  131072 MiB  12.0  188  128 MiB  Gen1 x16 (idle)  Gen5 x16"));
  EXPECT_THAT(text, HasSubstr("0000:80:01.1  root-port"));
  EXPECT_THAT(text, HasSubstr("Gen5 x8 (narrow)"));
  EXPECT_THAT(text, HasSubstr("1000:c030 Broadcom PEX 89000 series"));
  EXPECT_THAT(text, AllOf(HasSubstr("PIX no (CNS)"), HasSubstr("SYS P2P (risk)"), HasSubstr("PIX P2P")));
  EXPECT_THAT(text, AllOf(HasSubstr("NUMA (2 CPU packages)"), HasSubstr("none found"), HasSubstr("6.1.0-28-amd64")));
  EXPECT_THAT(text, AllOf(HasSubstr("4242"), HasSubstr("1024 MiB"), HasSubstr("python3")));
  EXPECT_THAT(text, Not(HasSubstr("GPU-"))) << "no UUID in what people paste into forums";
}

TEST(ClosingLines, AreFactsAndAtMostSix) {
  TestBox box;
  box.nvml.processes[0] = {{4242, "python3", std::nullopt}, {4243, "", std::nullopt}};
  box.tree.write("/sys/bus/pci/devices/0000:84:00.0/iommu_group/type", "DMA\n");
  box.nvml.devices[2].link_now = {1, 4};
  const auto lines = topology_closing_lines(*box.collect(), "ar-tune tune");
  EXPECT_THAT(lines, ElementsAre("4x NVIDIA RTX PRO 6000: driver 580.159.03, CUDA 13.0, no NCCL (name one with --nccl FILE)",
                                 "P2P: CUDA allows it for all 12 ordered pairs (its answer; not tested here)",
                                 HasSubstr("Not tested without --risky, 6 of 12 pairs: the IOMMU translates"),
                                 HasSubstr("GPU 2: the link of the GPU itself runs on 4 of 16 lanes"),
                                 HasSubstr("GPU 0 is in use by python3 (pid 4242) and 1 more"), "Next: ar-tune tune"));
}

TEST(ClosingLines, TwoGpusWithoutP2p) {
  TestBox box;
  for (auto& peer : box.cuda.peers) peer.access = false;
  for (auto& [key, pair] : box.nvml.pairs) pair.read = P2pStatus::chipset_not_supported;
  const Topology topology = restricted_to(*box.collect(), {0, 2});
  const auto lines = topology_closing_lines(topology, "x");
  ASSERT_GE(lines.size(), 2U);
  EXPECT_EQ(lines[1], "P2P between 0 and 2: CUDA doesn't allow it (driver says CNS); NCCL and the host paths remain");
}

TEST(ClosingLines, OneGpu) {
  TestBox box;
  const Topology topology = restricted_to(*box.collect(), {1});
  EXPECT_THAT(topology_closing_lines(topology, "x")[1], HasSubstr("--ranks-per-gpu 2"));
  EXPECT_THAT(topology_tables(topology), Not(HasSubstr("from \\ to")));
}

TEST(ClosingLines, ASimulatedMachineSaysSo) {
  TestBox box;
  Topology topology = *box.collect();
  topology.header.simulated = true;
  const auto lines = topology_closing_lines(topology, "x");
  EXPECT_EQ(lines[0], "4x NVIDIA RTX PRO 6000: simulated, described by a rig");
  EXPECT_EQ(lines[1], "P2P: the rig allows it for all 12 ordered pairs");
  EXPECT_THAT(topology_tables(topology), Not(HasSubstr("Machine")));
}

TEST(ClosingLines, NvlinkIsNamed) {
  TestBox box;
  for (auto& [key, pair] : box.nvml.pairs) pair.nvlink = P2pStatus::ok;
  const Topology topology = *box.collect();
  EXPECT_EQ(topology_closing_lines(topology, "x")[1],
            "P2P: CUDA allows it for all 12 ordered pairs, over NVLink (its answer; not tested here)");
  EXPECT_THAT(topology_tables(topology), HasSubstr("SYS NVLink P2P"));
}

}  // namespace
}  // namespace artune
