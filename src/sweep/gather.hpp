// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Who is tried at a shape: what the machine offers, less what the filter, the menu and earlier verdicts leave out.
#pragma once

#include <vector>

#include "sweep/shape_run.hpp"

namespace artune {

/// Every geometry that is to be tried, in the machine's order; why the others aren't goes to `left_out`.
std::vector<Candidate> gather_candidates(const ShapeContext& context, const Shape& shape, std::vector<LeftOut>& left_out);

}  // namespace artune
