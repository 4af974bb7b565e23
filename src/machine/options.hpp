// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What a Machine is made from: the command line's choices, as the supervisor hands them to its worker.
// A plain struct with a JSON form, because the two sides are two processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "machine/machine.hpp"

namespace artune {

struct MachineOptions {
  std::string rig;                  ///< name or file of a rig; empty = the GPUs of this machine
  std::vector<int> devices;         ///< nvidia-smi (or rig) indices, ordered: the group; empty = all
  int ranks_per_gpu = 1;
  std::vector<int> ranks;           ///< world sizes that will be asked for; empty = devices x ranks_per_gpu
  std::string nccl_file;            ///< `--nccl FILE`; empty = ARTUNE_NCCL_LIB, then the loader's search
  std::size_t max_memory_bytes = std::size_t{64} << 20;  ///< per GPU, over all families of slabs
  double timeout_s = 10;            ///< a spin that lasts longer is a hang
  std::uint64_t seed = 1;           ///< of test inputs and of the order of rounds
  bool risky = false;               ///< run active peer tests although the facts say they may wedge the machine
  std::string profile;              ///< file that the candidate `tuned` dispatches by; empty = no such candidate

  /// Set by the supervisor when it goes on in a new worker: what the gate found before. A machine that gets
  /// these does not run the gate again, above all not when the gate itself took the last worker down.
  std::optional<std::vector<PairVerdict>> known_verdicts;

  bool operator==(const MachineOptions&) const = default;
};

Json options_to_json(const MachineOptions& options);
/// Throws JsonError.
MachineOptions options_from_json(const JsonReader& object);

}  // namespace artune
