// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/usable_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace artune {
namespace {

// cudaError_t, by number: this file is built without CUDA's headers too.
constexpr int kInsufficientDriver = 35;
constexpr int kStubLibrary = 34;
constexpr int kNoDevice = 100;
constexpr int kSystemNotReady = 802;
constexpr int kSystemDriverMismatch = 803;

/// Volta: the oldest GPU whose memory model has the acquire and release operations that the kernels are made of.
constexpr int kOldestMajor = 7;

const std::string kDevices = "/sys/bus/pci/devices/";

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string device_text(const std::vector<std::string>& addresses) {
  if (addresses.empty()) return "an NVIDIA GPU is present";
  return fmt::format("NVIDIA GPU at {}{}", addresses.front(),
                     addresses.size() > 1 ? fmt::format(" (and {} more)", addresses.size() - 1) : "");
}

/// What keeps the kernel driver from serving the device, empty = it does.
std::string driver_trouble(const SystemFiles& files, const std::vector<std::string>& addresses) {
  if (files.exists("/proc/driver/nvidia/version") || files.exists("/dev/nvidiactl")) return "";
  for (const auto& address : addresses) {
    const std::string driver = files.link_name(kDevices + address + "/driver").value_or("");
    if (driver == "nouveau" || driver == "nova") {
      return "the open-source driver " + driver + " holds it: install NVIDIA's driver (it blacklists " + driver + ") and reboot";
    }
    if (driver == "vfio-pci")
      return "it is handed over to a virtual machine (vfio-pci): run ar-tune inside that machine, or unbind it";
  }
  return "NVIDIA's kernel driver is not loaded: install it (`nvidia-smi` must work), or load it with `modprobe nvidia`";
}

std::string node_trouble(const SystemFiles& files) {
  if (!files.exists("/dev/nvidiactl")) {
    return "the device node /dev/nvidiactl is missing: run `nvidia-modprobe -u -c=0`; a container needs `--gpus all`";
  }
  if (!files.accessible("/dev/nvidiactl")) {
    return "no permission to open /dev/nvidiactl: ask for access to it (often the group `video` or `render`), or run as root";
  }
  for (const auto& name : files.list("/dev")) {
    const bool is_gpu =
        name.size() > 6 && name.compare(0, 6, "nvidia") == 0 && name.find_first_not_of("0123456789", 6) == std::string::npos;
    if (is_gpu && !files.accessible("/dev/" + name)) {
      return "no permission to open /dev/" + name +
             ": ask for access to it (often the group `video` or `render`), or run as root";
    }
  }
  return "";
}

std::string cuda_trouble(const CudaFacts& cuda) {
  switch (cuda.error_code) {
    case kInsufficientDriver:
      if (cuda.driver_version == 0)
        return "CUDA finds no driver library (libcuda.so.1): install the driver's user-space libraries; a container needs "
               "`--gpus all`";
      return fmt::format(
          "its driver is too old: it serves CUDA {}, ar-tune was built with CUDA {}: update the driver or build with an older "
          "toolkit",
          cuda_version_text(cuda.driver_version), cuda_version_text(cuda.runtime_version));
    case kStubLibrary:
      return "CUDA's stub library was loaded instead of the driver's libcuda.so.1: take .../lib64/stubs out of LD_LIBRARY_PATH";
    case kNoDevice:
      if (cuda.visible_devices) {
        return fmt::format("CUDA_VISIBLE_DEVICES='{}' hides every GPU: unset it or name one that exists", *cuda.visible_devices);
      }
      return "CUDA lists no device: check `nvidia-smi`, and MIG mode (an enabled MIG without instances hides the GPU)";
    case kSystemNotReady:
      return "CUDA says the system is not ready: start nvidia-fabricmanager (NVSwitch machines need it)";
    case kSystemDriverMismatch:
      return "kernel driver and CUDA library have different versions: reboot, or reload the driver";
    default:
      break;
  }
  if (cuda.error_code != 0)
    return fmt::format("CUDA can't use it: {} (code {}); check `nvidia-smi` and the kernel log", cuda.error, cuda.error_code);
  return "CUDA lists no device; check `nvidia-smi`";
}

}  // namespace

std::vector<std::string> nvidia_devices_on_bus(const SystemFiles& files) {
  std::vector<std::string> addresses;
  for (const auto& address : files.list(kDevices)) {
    const std::string vendor = files.text(kDevices + address + "/vendor").value_or("");
    const std::string device_class = files.text(kDevices + address + "/class").value_or("");
    if (vendor == "0x10de" && device_class.compare(0, 4, "0x03") == 0) addresses.push_back(address);
  }
  return addresses;
}

bool nvidia_device_on_bus(const SystemFiles& files) {
  return !nvidia_devices_on_bus(files).empty() || files.exists("/dev/nvidia0") || !files.list("/proc/driver/nvidia/gpus").empty();
}

std::optional<Error> why_no_usable_gpu(const CudaFacts& cuda, Nvml& nvml, const SystemFiles& files) {
  const auto is_new_enough = [](const CudaDevice& device) { return device.major >= kOldestMajor; };
  if (std::any_of(cuda.devices.begin(), cuda.devices.end(), is_new_enough)) return std::nullopt;
  const auto refuse = [](std::string message) { return Error{Reason::no_usable_gpu, std::move(message)}; };

  if (!cuda.devices.empty()) {
    const CudaDevice& device = cuda.devices.front();
    return refuse(fmt::format("{} has compute capability {}.{}, ar-tune needs {}.0 or newer; --rig NAME works without a GPU",
                              device.name, device.major, device.minor, kOldestMajor));
  }
  if (!nvidia_device_on_bus(files)) {
    return refuse("no NVIDIA GPU in this machine; give --rig NAME to work with a simulated one (profiles/rigs lists them)");
  }
  const std::string who = device_text(nvidia_devices_on_bus(files));
  if (const std::string why = driver_trouble(files, nvidia_devices_on_bus(files)); !why.empty())
    return refuse(who + ", but " + why);
  if (const std::string why = node_trouble(files); !why.empty()) return refuse(who + ", but " + why);
  if (const auto count = nvml.device_count(); !count && count.error().message.find("versions differ") != std::string::npos) {
    return refuse(who + ", but kernel driver and user-space library have different versions: reboot, or reload the driver");
  }
  if (!cuda.built_with_cuda) {
    return refuse(who +
                  ", but this ar-tune was built without a CUDA toolkit: install CUDA 12.4 or newer, run cmake again (it says "
                  "which CUDA it found) and build");
  }
  return refuse(who + ", but " + cuda_trouble(cuda));
}

}  // namespace artune
