// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/usable_gpu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_nvml.hpp"
#include "temporary_tree.hpp"

namespace artune {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kAddress = "0000:01:00.0";

struct NoGpu : testing::Test {
  TemporaryTree tree;
  FakeNvml nvml;
  CudaFacts cuda{true, 12080, 12080, {}, {}, 100, "no CUDA-capable device is detected", std::nullopt};

  void add_card() const { tree.pci_device(kAddress, "0x10de", "0x2684", "0x030000"); }
  void load_driver() const {
    tree.write("/proc/driver/nvidia/version", "NVRM version\n");
    tree.write("/dev/nvidiactl", "");
    tree.write("/dev/nvidia0", "");
  }
  std::string why() {
    const auto error = why_no_usable_gpu(cuda, nvml, tree.files());
    if (!error) return "usable";
    EXPECT_EQ(error->reason, Reason::no_usable_gpu);
    EXPECT_EQ(error->message.find('\n'), std::string::npos);
    return error->message;
  }
};

TEST_F(NoGpu, NoneInTheMachineSpeaksOfRigs) {
  tree.pci_device("0000:02:00.0", "0x1002", "0x744c", "0x030000");
  tree.pci_device("0000:01:00.1", "0x10de", "0x22ba", "0x040300");  // a card's sound function is no GPU
  EXPECT_FALSE(nvidia_device_on_bus(tree.files()));
  EXPECT_THAT(why(), AllOf(HasSubstr("no NVIDIA GPU"), HasSubstr("--rig")));
}

TEST_F(NoGpu, UsableOneIsNoError) {
  cuda.error_code = 0;
  cuda.devices.push_back({0, "x", "GPU-x", kAddress, 8, 9, 1, 1, 1});
  EXPECT_EQ(why(), "usable");
  cuda.devices[0].major = 6;
  EXPECT_THAT(why(), AllOf(HasSubstr("compute capability 6.9"), HasSubstr("7.0")));
}

TEST_F(NoGpu, DriverNotLoaded) {
  add_card();
  EXPECT_TRUE(nvidia_device_on_bus(tree.files()));
  EXPECT_THAT(why(), AllOf(HasSubstr(kAddress), HasSubstr("driver is not loaded"), HasSubstr("modprobe nvidia"),
                           testing::Not(HasSubstr("--rig"))));
}

TEST_F(NoGpu, HeldByNouveau) {
  add_card();
  tree.link("/sys/bus/pci/devices/0000:01:00.0/driver", "../../../bus/pci/drivers/nouveau");
  EXPECT_THAT(why(), HasSubstr("nouveau"));
}

TEST_F(NoGpu, HandedToAVirtualMachine) {
  add_card();
  tree.link("/sys/bus/pci/devices/0000:01:00.0/driver", "../../../bus/pci/drivers/vfio-pci");
  EXPECT_THAT(why(), HasSubstr("vfio-pci"));
}

TEST_F(NoGpu, ContainerWithoutDeviceNodes) {
  add_card();
  tree.write("/proc/driver/nvidia/version", "NVRM version\n");
  EXPECT_THAT(why(), AllOf(HasSubstr("/dev/nvidiactl is missing"), HasSubstr("--gpus all")));
}

TEST_F(NoGpu, NoPermission) {
  add_card();
  load_driver();
  tree.link("/dev/nvidia1", "/nowhere");  // listed but not to be opened: mode bits would not stop a test that runs as root
  EXPECT_THAT(why(), HasSubstr("no permission to open /dev/nvidia1"));
}

TEST_F(NoGpu, BuiltWithoutToolkit) {
  add_card();
  load_driver();
  cuda = {};
  EXPECT_THAT(why(), AllOf(HasSubstr("built without a CUDA toolkit"), HasSubstr("12.4")));
}

TEST_F(NoGpu, DriverTooOld) {
  add_card();
  load_driver();
  cuda.error_code = 35;
  cuda.driver_version = 11040;
  EXPECT_THAT(why(), AllOf(HasSubstr("CUDA 11.4"), HasSubstr("CUDA 12.8"), HasSubstr("update the driver")));
  cuda.driver_version = 0;
  EXPECT_THAT(why(), HasSubstr("libcuda.so.1"));
}

TEST_F(NoGpu, HiddenByVisibleDevices) {
  add_card();
  load_driver();
  EXPECT_THAT(why(), HasSubstr("MIG"));
  cuda.visible_devices = "";
  EXPECT_THAT(why(), HasSubstr("CUDA_VISIBLE_DEVICES=''"));
}

TEST_F(NoGpu, VersionsDiffer) {
  add_card();
  load_driver();
  const auto mismatch =
      unavailable_nvml({Reason::unavailable, "nvmlInit_v2: " + std::string(nvml_error_words(18)) + " (NVML code 18)"});
  EXPECT_THAT(why_no_usable_gpu(cuda, *mismatch, tree.files())->message, HasSubstr("reboot"));
}

TEST_F(NoGpu, OtherErrorsKeepTheirText) {
  add_card();
  load_driver();
  cuda.error_code = 999;
  cuda.error = "unknown error";
  EXPECT_THAT(why(), AllOf(HasSubstr("unknown error"), HasSubstr("999")));
  cuda.error_code = 802;
  EXPECT_THAT(why(), HasSubstr("fabricmanager"));
}

TEST_F(NoGpu, AContainerThatHidesTheBusStillHasANode) {
  load_driver();
  EXPECT_TRUE(nvidia_device_on_bus(tree.files()));
  EXPECT_THAT(why(), HasSubstr("an NVIDIA GPU is present"));
}

}  // namespace
}  // namespace artune
