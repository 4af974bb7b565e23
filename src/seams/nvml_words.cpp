// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// NVML's numbers as words.
#include "seams/nvml.hpp"

namespace artune {

PeerLevel peer_level_from_nvml(unsigned level) {
  switch (level) {  // nvmlGpuTopologyLevel_t
    case 0:
      return PeerLevel::same;
    case 10:
      return PeerLevel::pix;
    case 20:
      return PeerLevel::pxb;
    case 30:
      return PeerLevel::phb;
    case 40:
      return PeerLevel::node;
    case 50:
      return PeerLevel::sys;
    default:
      return PeerLevel::unknown;
  }
}

P2pStatus p2p_status_from_nvml(unsigned status) {
  switch (status) {  // nvmlGpuP2PStatus_t
    case 0:
      return P2pStatus::ok;
    case 1:
      return P2pStatus::chipset_not_supported;
    case 2:
      return P2pStatus::gpu_not_supported;
    case 3:
      return P2pStatus::topology_not_supported;
    case 4:
      return P2pStatus::disabled_by_registry;
    case 5:
      return P2pStatus::not_supported;
    default:
      return P2pStatus::unknown;
  }
}

std::string_view nvml_error_words(int code) {
  switch (code) {  // nvmlReturn_t
    case 3:
      return "not supported by this GPU or driver";
    case 4:
      return "no permission";
    case 9:
      return "the NVIDIA driver is not loaded";
    case 12:
      return "a library of the driver is missing";
    case 15:
      return "the GPU has fallen off the bus";
    case 16:
      return "the GPU needs a reset";
    case 17:
      return "the GPU's device node is blocked by the operating system or a container";
    case 18:
      return "driver and library versions differ";
    case 28:
      return "no GPU was found";
    default:
      return "an error of the driver";
  }
}

}  // namespace artune
