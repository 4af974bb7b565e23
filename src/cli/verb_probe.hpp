// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.hpp"

namespace artune {

/// `ar-tune probe`: what this machine is. Facts only: it asks the driver and the kernel, and moves no byte between GPUs.
extern const Verb kProbeVerb;

}  // namespace artune
