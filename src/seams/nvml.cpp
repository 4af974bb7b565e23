// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/nvml.hpp"

#include <algorithm>
#include <cctype>

#include "seams/nvml_abi.hpp"
#include "seams/shared_library.hpp"

namespace artune {
namespace {

using namespace nvml_abi;

/// NVML's functions that are used. The first group must exist; a null pointer in the second means "can't tell".
struct Functions {
  Return (*init)() = nullptr;
  Return (*device_count)(unsigned*) = nullptr;
  Return (*device_by_index)(unsigned, Device*) = nullptr;
  Return (*name)(Device, char*, unsigned) = nullptr;
  Return (*uuid)(Device, char*, unsigned) = nullptr;
  Return (*pci_info)(Device, PciInfo*) = nullptr;

  Return (*shutdown)() = nullptr;
  Return (*driver_version)(char*, unsigned) = nullptr;
  Return (*cuda_driver_version)(int*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*bar1)(Device, Bar1Memory*) = nullptr;
  Return (*generation_now)(Device, unsigned*) = nullptr;
  Return (*width_now)(Device, unsigned*) = nullptr;
  Return (*generation_max)(Device, unsigned*) = nullptr;
  Return (*width_max)(Device, unsigned*) = nullptr;
  Return (*gpu_generation_max)(Device, unsigned*) = nullptr;
  Return (*vbios)(Device, char*, unsigned) = nullptr;
  Return (*enforced_power_limit)(Device, unsigned*) = nullptr;
  Return (*display_active)(Device, int*) = nullptr;
  Return (*common_ancestor)(Device, Device, unsigned*) = nullptr;
  Return (*p2p_status)(Device, Device, unsigned, unsigned*) = nullptr;
  Return (*compute_processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Return (*process_name)(unsigned, char*, unsigned) = nullptr;
};

template <typename Pointer>
bool resolve(const SharedLibrary& library, const char* symbol, Pointer& target) {
  target = reinterpret_cast<Pointer>(library.symbol(symbol));
  return target != nullptr;
}

/// The name of the first required symbol that is missing, or nullptr.
const char* resolve_all(const SharedLibrary& library, Functions& nvml) {
  if (!resolve(library, "nvmlInit_v2", nvml.init)) return "nvmlInit_v2";
  if (!resolve(library, "nvmlDeviceGetCount_v2", nvml.device_count)) return "nvmlDeviceGetCount_v2";
  if (!resolve(library, "nvmlDeviceGetHandleByIndex_v2", nvml.device_by_index)) return "nvmlDeviceGetHandleByIndex_v2";
  if (!resolve(library, "nvmlDeviceGetName", nvml.name)) return "nvmlDeviceGetName";
  if (!resolve(library, "nvmlDeviceGetUUID", nvml.uuid)) return "nvmlDeviceGetUUID";
  if (!resolve(library, "nvmlDeviceGetPciInfo_v3", nvml.pci_info)) return "nvmlDeviceGetPciInfo_v3";
  resolve(library, "nvmlShutdown", nvml.shutdown);
  resolve(library, "nvmlSystemGetDriverVersion", nvml.driver_version);
  resolve(library, "nvmlSystemGetCudaDriverVersion_v2", nvml.cuda_driver_version);
  resolve(library, "nvmlDeviceGetMemoryInfo", nvml.memory);
  resolve(library, "nvmlDeviceGetBAR1MemoryInfo", nvml.bar1);
  resolve(library, "nvmlDeviceGetCurrPcieLinkGeneration", nvml.generation_now);
  resolve(library, "nvmlDeviceGetCurrPcieLinkWidth", nvml.width_now);
  resolve(library, "nvmlDeviceGetMaxPcieLinkGeneration", nvml.generation_max);
  resolve(library, "nvmlDeviceGetMaxPcieLinkWidth", nvml.width_max);
  resolve(library, "nvmlDeviceGetGpuMaxPcieLinkGeneration", nvml.gpu_generation_max);
  resolve(library, "nvmlDeviceGetVbiosVersion", nvml.vbios);
  resolve(library, "nvmlDeviceGetEnforcedPowerLimit", nvml.enforced_power_limit);
  resolve(library, "nvmlDeviceGetDisplayActive", nvml.display_active);
  resolve(library, "nvmlDeviceGetTopologyCommonAncestor", nvml.common_ancestor);
  resolve(library, "nvmlDeviceGetP2PStatus", nvml.p2p_status);
  resolve(library, "nvmlDeviceGetComputeRunningProcesses_v3", nvml.compute_processes);
  resolve(library, "nvmlSystemGetProcessName", nvml.process_name);
  return nullptr;
}

Error failed(const std::string& call, Return code) {
  return {Reason::unavailable, call + ": " + std::string(nvml_error_words(code)) + " (NVML code " + std::to_string(code) + ")"};
}

/// NVML writes "00000000:01:00.0" in capitals; the kernel, and we, "0000:01:00.0". Domains above 16 bits keep their digits.
std::string kernel_pci_address(std::string address) {
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::size_t colon = address.find(':');
  if (colon == 8 && address.compare(0, 4, "0000") == 0) address.erase(0, 4);
  return address;
}

template <typename Call>
std::optional<unsigned> number(Call call, Device device) {
  unsigned value = 0;
  if (call == nullptr || call(device, &value) != kSuccess) return std::nullopt;
  return value;
}

class LoadedNvml : public Nvml {
 public:
  explicit LoadedNvml(const Functions& functions) : nvml_(functions) {}
  ~LoadedNvml() override {
    if (nvml_.shutdown != nullptr) nvml_.shutdown();
  }
  LoadedNvml(const LoadedNvml&) = delete;
  LoadedNvml& operator=(const LoadedNvml&) = delete;

  Result<NvmlSystem> system() override {
    NvmlSystem system;
    char text[kTextBytes] = {};
    if (nvml_.driver_version != nullptr && nvml_.driver_version(text, kTextBytes) == kSuccess) system.driver_version = text;
    int version = 0;
    if (nvml_.cuda_driver_version != nullptr && nvml_.cuda_driver_version(&version) == kSuccess)
      system.cuda_driver_version = version;
    return system;
  }

  Result<int> device_count() override {
    unsigned count = 0;
    if (const Return code = nvml_.device_count(&count); code != kSuccess) return failed("nvmlDeviceGetCount_v2", code);
    return static_cast<int>(count);
  }

  Result<NvmlDevice> device(int index) override {
    const Result<Device> handle = handle_of(index);
    if (!handle) return handle.error();
    NvmlDevice device;
    char text[kTextBytes] = {};
    if (const Return code = nvml_.name(*handle, text, kTextBytes); code != kSuccess) return failed("nvmlDeviceGetName", code);
    device.name = text;
    if (const Return code = nvml_.uuid(*handle, text, kTextBytes); code != kSuccess) return failed("nvmlDeviceGetUUID", code);
    device.uuid = text;
    PciInfo pci{};
    if (const Return code = nvml_.pci_info(*handle, &pci); code != kSuccess) return failed("nvmlDeviceGetPciInfo_v3", code);
    device.pci_address = kernel_pci_address(pci.bus_id);

    if (Memory memory{}; nvml_.memory != nullptr && nvml_.memory(*handle, &memory) == kSuccess)
      device.memory_bytes = memory.total;
    if (Bar1Memory bar1{}; nvml_.bar1 != nullptr && nvml_.bar1(*handle, &bar1) == kSuccess) device.bar1_bytes = bar1.total;
    device.link_now = {static_cast<int>(number(nvml_.generation_now, *handle).value_or(0)),
                       static_cast<int>(number(nvml_.width_now, *handle).value_or(0))};
    device.link_max = {static_cast<int>(number(nvml_.generation_max, *handle).value_or(0)),
                       static_cast<int>(number(nvml_.width_max, *handle).value_or(0))};
    device.gpu_max_generation = static_cast<int>(number(nvml_.gpu_generation_max, *handle).value_or(0));
    if (nvml_.vbios != nullptr && nvml_.vbios(*handle, text, kTextBytes) == kSuccess) device.vbios = text;
    if (const auto milliwatts = number(nvml_.enforced_power_limit, *handle)) device.power_limit_w = *milliwatts / 1000.0;
    int active = 0;
    if (nvml_.display_active != nullptr && nvml_.display_active(*handle, &active) == kSuccess)
      device.display_active = active != 0;
    return device;
  }

  Result<NvmlPair> pair(int from, int to) override {
    const Result<Device> a = handle_of(from), b = handle_of(to);
    if (!a) return a.error();
    if (!b) return b.error();
    NvmlPair pair;
    unsigned level = 0;
    if (nvml_.common_ancestor != nullptr && nvml_.common_ancestor(*a, *b, &level) == kSuccess)
      pair.level = peer_level_from_nvml(level);
    pair.read = status(*a, *b, kCapsRead);
    pair.write = status(*a, *b, kCapsWrite);
    pair.nvlink = status(*a, *b, kCapsNvlink);
    pair.atomics = status(*a, *b, kCapsAtomics);
    pair.pci = status(*a, *b, kCapsPci);
    return pair;
  }

  Result<std::vector<NvmlProcess>> compute_processes(int index) override {
    const Result<Device> handle = handle_of(index);
    if (!handle) return handle.error();
    if (nvml_.compute_processes == nullptr) return failed("nvmlDeviceGetComputeRunningProcesses_v3", kNotSupported);
    // Processes come and go between the call that counts and the call that lists: leave room, and try again when it was too
    // little.
    std::vector<ProcessInfo> list(32);
    Return code = kInsufficientSize;
    for (int attempt = 0; attempt < 4 && code == kInsufficientSize; ++attempt) {
      auto count = static_cast<unsigned>(list.size());
      code = nvml_.compute_processes(*handle, &count, list.data());
      list.resize(code == kInsufficientSize ? count + 32 : count);
    }
    if (code != kSuccess) return failed("nvmlDeviceGetComputeRunningProcesses_v3", code);
    std::vector<NvmlProcess> processes;
    for (const auto& info : list) processes.push_back(describe(info));
    return processes;
  }

 private:
  Result<Device> handle_of(int index) const {
    Device handle = nullptr;
    if (const Return code = nvml_.device_by_index(static_cast<unsigned>(index), &handle); code != kSuccess) {
      return failed("nvmlDeviceGetHandleByIndex_v2(" + std::to_string(index) + ")", code);
    }
    return handle;
  }

  P2pStatus status(Device a, Device b, unsigned caps) const {
    unsigned value = 0;
    if (nvml_.p2p_status == nullptr || nvml_.p2p_status(a, b, caps, &value) != kSuccess) return P2pStatus::unknown;
    return p2p_status_from_nvml(value);
  }

  NvmlProcess describe(const ProcessInfo& info) const {
    NvmlProcess process;
    process.pid = info.pid;
    if (info.used_gpu_memory != kValueNotAvailable) process.memory_bytes = info.used_gpu_memory;
    char name[256] = {};
    if (nvml_.process_name != nullptr && nvml_.process_name(info.pid, name, sizeof name) == kSuccess) process.name = name;
    return process;
  }

  Functions nvml_;
};

class UnavailableNvml : public Nvml {
 public:
  explicit UnavailableNvml(Error why) : why_(std::move(why)) {}
  Result<NvmlSystem> system() override { return why_; }
  Result<int> device_count() override { return why_; }
  Result<NvmlDevice> device(int) override { return why_; }
  Result<NvmlPair> pair(int, int) override { return why_; }
  Result<std::vector<NvmlProcess>> compute_processes(int) override { return why_; }

 private:
  Error why_;
};

}  // namespace

std::unique_ptr<Nvml> unavailable_nvml(Error why) { return std::make_unique<UnavailableNvml>(std::move(why)); }

std::unique_ptr<Nvml> load_nvml(const std::string& library) {
  const Result<SharedLibrary> loaded = SharedLibrary::open(library);
  if (!loaded) return unavailable_nvml(loaded.error());
  Functions functions;
  if (const char* missing = resolve_all(*loaded, functions)) {
    return unavailable_nvml({Reason::unavailable, library + " has no symbol " + missing + ": update the NVIDIA driver"});
  }
  if (const Return code = functions.init(); code != kSuccess) return unavailable_nvml(failed("nvmlInit_v2", code));
  return std::make_unique<LoadedNvml>(functions);
}

}  // namespace artune
