// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/worker_main.hpp"

#include <charconv>
#include <cstdio>
#include <string_view>

#include "machine/rig_machine.hpp"
#include "machine/worker.hpp"
#include "machine/worker_tuned.hpp"
#include "probe/this_machine.hpp"
#include "profile/profile.hpp"
#ifdef ARTUNE_HAVE_CUDA
#include "machine/gpu_machine.hpp"
#endif
#ifdef ARTUNE_TEST_FAULTS
#include "machine/faults.hpp"
#endif

namespace artune {
namespace {

Result<std::unique_ptr<Machine>> open_rig(const MachineOptions& options) {
  World world;
  world.devices = options.devices;
  world.ranks_per_gpu = options.ranks_per_gpu;
  Result<std::unique_ptr<Machine>> machine = make_rig_machine(options.rig, world, options.seed);
  if (!machine || options.profile.empty()) return machine;
  Result<Profile> profile = read_profile(options.profile);
  if (!profile) return profile.error();
  return with_tuned(std::move(*machine), std::move(*profile));
}

#ifdef ARTUNE_HAVE_CUDA
Result<std::unique_ptr<Machine>> open_gpus(const MachineOptions& options) { return make_gpu_machine(options); }
#else
Result<std::unique_ptr<Machine>> open_gpus(const MachineOptions&) {
  return Error{Reason::no_usable_gpu, "this ar-tune was built without CUDA; build it on a machine with the CUDA toolkit, or give --rig"};
}
#endif

Result<std::unique_ptr<Machine>> open_machine(const MachineOptions& options) {
  const bool simulated = !options.rig.empty();
#ifdef ARTUNE_TEST_FAULTS
  obey_slow_start();
  Result<std::unique_ptr<Machine>> machine = simulated ? open_rig(options) : open_gpus(options);
  if (!machine) return machine;
  return with_faults(std::move(*machine), /*lies=*/simulated);
#else
  return simulated ? open_rig(options) : open_gpus(options);
#endif
}

Result<Json> probe(const MachineOptions& options) {
  const Result<Topology> topology = probe_this_machine(options.nccl_file);
  if (!topology) return topology.error();
  return topology_to_wire_json(*topology);
}

}  // namespace

int worker_main(int argc, const char* const* argv) {
  int socket = -1;
  if (argc == 4 && std::string_view(argv[2]) == "--fd") {
    const std::string_view number = argv[3];
    std::from_chars(number.data(), number.data() + number.size(), socket);
  }
  if (socket < 0) {
    std::fputs("ar-tune: worker is private; it is started by the other verbs\n", stderr);
    return 2;
  }
  return serve_worker({.make_machine = open_machine, .probe = probe}, socket);
}

}  // namespace artune
