// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.hpp"

namespace artune {

/// `ar-tune version`: which ar-tune this is and what it was built with.
extern const Verb kVersionVerb;

}  // namespace artune
