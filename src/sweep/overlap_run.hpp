// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One shape with Load::overlap: verify, then rounds in which every candidate is timed beside the compute load in both
// launch orders, verify again. All geometries are: how many blocks wait is what compute pays for.
#pragma once

#include "sweep/shape_run.hpp"

namespace artune {

/// `until_s`: on the context's clock; every candidate is timed once even after that.
ShapeResult run_overlap_shape(ShapeContext& context, const Shape& shape, std::size_t index, double until_s);

}  // namespace artune
