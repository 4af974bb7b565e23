// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The worker's side: answers requests (wire.hpp) about one machine until the supervisor closes the socket. All
// CUDA, NCCL and NVML work of the tool happens below this call.
//
//   return serve_worker({.make_machine = open_rig_or_gpus, .probe = probe_document}, fd);
#pragma once

#include <functional>
#include <memory>

#include "base/json.hpp"
#include "base/result.hpp"
#include "machine/options.hpp"

namespace artune {

struct WorkerDuties {
  /// Called once, at the request `start`. Failures it throws and Errors it returns both go to the supervisor.
  std::function<Result<std::unique_ptr<Machine>>(const MachineOptions&)> make_machine;
  /// The probe document; needs no machine, and makes none.
  std::function<Result<Json>(const MachineOptions&)> probe;
};

/// Returns the exit status of the process: 0 when the supervisor closed the socket, 1 on a request that can't be read.
int serve_worker(const WorkerDuties& duties, int socket);

}  // namespace artune
