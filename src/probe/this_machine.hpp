// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The probe of the real machine. It loads the driver's libraries, so only worker processes call it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "probe/topology.hpp"

namespace artune {

/// `nccl_file`: --nccl, empty = ARTUNE_NCCL_LIB, then the loader's search. No NCCL is no error unless a file was named.
Result<Topology> probe_this_machine(const std::string& nccl_file);

}  // namespace artune
