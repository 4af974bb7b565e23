// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seams/nvml.hpp"

namespace artune {
namespace {

using testing::HasSubstr;

TEST(LoadNvml, ReadsADevice) {
  const auto nvml = load_nvml(FAKE_NVML);
  ASSERT_TRUE(nvml->device_count()) << nvml->device_count().error().message;
  EXPECT_EQ(*nvml->device_count(), 2);
  const Result<NvmlSystem> system = nvml->system();
  ASSERT_TRUE(system);
  EXPECT_EQ(system->driver_version, "580.159.03");
  EXPECT_EQ(system->cuda_driver_version, 13000);

  const Result<NvmlDevice> device = nvml->device(0);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->name, "NVIDIA Fake 9000");
  EXPECT_EQ(device->uuid, "GPU-00000000-0000-0000-0000-00000000000a");
  EXPECT_EQ(device->pci_address, "0000:0a:00.0");
  EXPECT_EQ(device->memory_bytes, std::size_t{24} << 30);
  EXPECT_EQ(device->bar1_bytes, std::size_t{32} << 30);
  EXPECT_EQ(device->link_now, (LinkState{1, 8}));
  EXPECT_EQ(device->link_max, (LinkState{4, 16}));
  EXPECT_EQ(device->gpu_max_generation, 5);
  EXPECT_EQ(device->vbios, "95.02.18");
  EXPECT_EQ(device->power_limit_w, 350.5);
  EXPECT_EQ(device->display_active, true);
  EXPECT_EQ(nvml->device(1)->pci_address, "00010001:0b:00.0") << "domains above 16 bits keep their digits";
}

TEST(LoadNvml, ReadsPairsByDirection) {
  const auto nvml = load_nvml(FAKE_NVML);
  const Result<NvmlPair> forth = nvml->pair(0, 1), back = nvml->pair(1, 0);
  ASSERT_TRUE(forth);
  EXPECT_EQ(forth->level, PeerLevel::phb);
  EXPECT_EQ(forth->write, P2pStatus::ok);
  EXPECT_EQ(forth->read, P2pStatus::chipset_not_supported);
  EXPECT_EQ(forth->atomics, P2pStatus::disabled_by_registry);
  EXPECT_EQ(forth->nvlink, P2pStatus::not_supported);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->write, P2pStatus::unknown);
}

TEST(LoadNvml, ListsMoreProcessesThanTheFirstGuess) {
  const auto nvml = load_nvml(FAKE_NVML);
  const auto processes = nvml->compute_processes(0);
  ASSERT_TRUE(processes);
  ASSERT_EQ(processes->size(), 40U);
  EXPECT_EQ((*processes)[0].pid, 1000U);
  EXPECT_EQ((*processes)[0].memory_bytes, std::nullopt) << "the driver doesn't tell";
  EXPECT_EQ((*processes)[0].name, "python3");
  EXPECT_EQ((*processes)[1].memory_bytes, std::size_t{64} << 20);
  EXPECT_EQ((*processes)[1].name, "");
  const auto refused = nvml->compute_processes(1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no permission"));
}

TEST(LoadNvml, BadIndexIsAnError) {
  const auto nvml = load_nvml(FAKE_NVML);
  EXPECT_FALSE(nvml->device(2));
  EXPECT_FALSE(nvml->pair(0, 2));
}

TEST(LoadNvml, MissingOptionalSymbolsLeaveFieldsOpen) {
  const auto nvml = load_nvml(FAKE_NVML_SPARSE_FILE);
  const Result<NvmlDevice> device = nvml->device(0);
  ASSERT_TRUE(device);
  EXPECT_EQ(device->bar1_bytes, std::nullopt);
  EXPECT_EQ(device->link_now, LinkState{});
  EXPECT_EQ(device->display_active, std::nullopt);
  EXPECT_EQ(nvml->pair(0, 1)->level, PeerLevel::unknown);
  EXPECT_EQ(nvml->pair(0, 1)->write, P2pStatus::unknown);
  EXPECT_FALSE(nvml->compute_processes(0));
}

TEST(LoadNvml, MissingRequiredSymbolIsNamed) {
  const Result<int> count = load_nvml(FAKE_NVML_BROKEN)->device_count();
  ASSERT_FALSE(count);
  EXPECT_EQ(count.error().reason, Reason::unavailable);
  EXPECT_THAT(count.error().message, HasSubstr("nvmlDeviceGetUUID"));
}

TEST(LoadNvml, MissingLibraryAndMissingDriverAreReasons) {
  const auto missing = load_nvml("libartune-nowhere.so.1");
  EXPECT_THAT(missing->device_count().error().message, HasSubstr("libartune-nowhere.so.1"));
  EXPECT_FALSE(missing->system());
  EXPECT_FALSE(missing->device(0));
  EXPECT_FALSE(missing->pair(0, 1));
  EXPECT_FALSE(missing->compute_processes(0));
  EXPECT_THAT(load_nvml(FAKE_NVML_NO_DRIVER)->device_count().error().message, HasSubstr("driver is not loaded"));
}

TEST(NvmlWords, UnknownNumbersAreUnknown) {
  EXPECT_EQ(peer_level_from_nvml(0), PeerLevel::same);
  EXPECT_EQ(peer_level_from_nvml(50), PeerLevel::sys);
  EXPECT_EQ(peer_level_from_nvml(7), PeerLevel::unknown);
  EXPECT_EQ(p2p_status_from_nvml(3), P2pStatus::topology_not_supported);
  EXPECT_EQ(p2p_status_from_nvml(6), P2pStatus::unknown);
  EXPECT_EQ(p2p_status_from_nvml(99), P2pStatus::unknown);
}

}  // namespace
}  // namespace artune
