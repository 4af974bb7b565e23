// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace artune {

/// Columns of the terminal on standard output or standard error; `fallback` where neither is one.
std::size_t terminal_columns(std::size_t fallback);

}  // namespace artune
