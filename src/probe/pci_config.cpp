// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/pci_config.hpp"

#include <charconv>
#include <cstdint>

namespace artune {
namespace {

constexpr std::size_t kConfigBytes = 4096;
constexpr std::size_t kExtendedCapabilities = 0x100;  // PCI Express base specification: first extended capability
constexpr std::uint16_t kAcsCapability = 0x000d;
constexpr std::size_t kAcsControlOffset = 6;
constexpr unsigned kRequestRedirect = 1U << 2, kCompletionRedirect = 1U << 3;

const std::string kDevices = "/sys/bus/pci/devices/";

std::uint16_t word_at(std::string_view config, std::size_t offset) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(config[offset]) | static_cast<unsigned char>(config[offset + 1])
                                                                                     << 8);
}

int number(const std::optional<std::string>& text, int otherwise) {
  int value = otherwise;
  if (text && std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{}) return otherwise;
  return value;
}

}  // namespace

AcsRedirect acs_redirect(std::string_view config) {
  if (config.size() < kConfigBytes) return AcsRedirect::unread;
  // A broken list may loop: no more steps than headers of 8 bytes fit.
  std::size_t offset = kExtendedCapabilities;
  for (std::size_t step = 0; step < (kConfigBytes - kExtendedCapabilities) / 8; ++step) {
    const std::uint16_t id = word_at(config, offset);
    if (id == 0xffff) return AcsRedirect::unread;  // the device doesn't answer: asleep or gone
    if (id == kAcsCapability) {
      const unsigned control = word_at(config, offset + kAcsControlOffset);
      return (control & (kRequestRedirect | kCompletionRedirect)) != 0 ? AcsRedirect::set : AcsRedirect::clear;
    }
    offset = word_at(config, offset + 2) >> 4 & 0xffcU;
    if (offset < kExtendedCapabilities || offset > kConfigBytes - 8) break;
  }
  return AcsRedirect::absent;
}

AcsRedirect read_acs_redirect(const SystemFiles& files, const std::string& pci_address) {
  const auto config = files.bytes(kDevices + pci_address + "/config", kConfigBytes);
  return config ? acs_redirect(*config) : AcsRedirect::unread;
}

int pcie_generation(std::string_view link_speed) {
  constexpr std::string_view kSpeeds[] = {"2.5", "5.0", "8.0", "16.0", "32.0", "64.0", "128.0"};
  const std::string_view speed = link_speed.substr(0, link_speed.find(' '));
  int generation = 1;
  for (const std::string_view known : kSpeeds) {
    // Older kernels write "5 GT/s" and "8 GT/s".
    if (speed == known || speed == known.substr(0, known.find(".0"))) return generation;
    ++generation;
  }
  return 0;
}

LinkState read_link(const SystemFiles& files, const std::string& pci_address, std::string_view current_or_max) {
  const std::string prefix = kDevices + pci_address + "/" + std::string(current_or_max);
  const int width = number(files.text(prefix + "_link_width"), 0);
  // The kernel writes 0 or 255 lanes where a port has no link.
  return {pcie_generation(files.text(prefix + "_link_speed").value_or("")), width > 32 || width < 0 ? 0 : width};
}

std::string read_iommu_group_type(const SystemFiles& files, const std::string& pci_address) {
  const std::string device = kDevices + pci_address;
  if (!files.exists(device)) return "not readable";
  if (!files.exists(device + "/iommu_group")) return "off";
  return files.text(device + "/iommu_group/type").value_or("not readable");
}

int read_numa_node(const SystemFiles& files, const std::string& pci_address) {
  return number(files.text(kDevices + pci_address + "/numa_node"), -1);
}

}  // namespace artune
