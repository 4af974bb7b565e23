// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.hpp"
#include "machine/machine.hpp"
#include "profile/profile.hpp"

namespace artune {

/// Adds the candidate `tuned` to a simulated machine: at every shape it is what `profile` uses there. A real machine
/// does not need this: it times the runtime's own dispatch.
std::unique_ptr<Machine> with_tuned(std::unique_ptr<Machine> machine, Profile profile);

}  // namespace artune
