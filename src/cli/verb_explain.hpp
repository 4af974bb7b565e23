// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/context.hpp"

namespace artune {

/// `ar-tune explain PROFILE --bytes N`: which range a message falls into, what it uses, and why.
extern const Verb kExplainVerb;

}  // namespace artune
