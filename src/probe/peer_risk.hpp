// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Facts come before tests: why an active peer-to-peer test may wedge a machine, told without touching it.
// A pair with any reason is tested only with --risky.
//
//   for (const std::string& why : peer_test_risks({.iommu_types = {"DMA-FQ"}})) tell(why);
#pragma once

#include <string>
#include <vector>

#include "seams/nvml.hpp"
#include "seams/system_files.hpp"

namespace artune {

struct PeerRiskFacts {
  PeerLevel level = PeerLevel::unknown;
  bool nvlink = false;                         ///< the driver routes this pair over NVLink
  std::vector<std::string> iommu_types;        ///< group types of the two GPUs
  std::vector<std::string> redirecting_ports;  ///< addresses of ports between the two that redirect requests or completions
  std::string registry_dwords;
  bool intel_client = false;
};

/// One line per reason, each with its way out. Empty = nothing known against a test.
std::vector<std::string> peer_test_risks(const PeerRiskFacts& facts);

/// The value of `key` in RegistryDwords ("ForceP2P=0x11;RMForceP2PType=1"), whatever its case; empty when absent.
std::string registry_value(const std::string& registry_dwords, const std::string& key);

/// "8086:a700": vendor and device at 0000:00:00.0, empty when not readable.
std::string read_host_bridge(const SystemFiles& files);
/// Whether the root complex is that of an Intel client processor, which drops or corrupts peer traffic between root ports.
bool is_intel_client(const SystemFiles& files, const std::string& host_bridge);

}  // namespace artune
