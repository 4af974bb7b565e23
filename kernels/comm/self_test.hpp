// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The minimal functional check of a pair of GPUs, before anything of it is believed: capability queries say yes on
// machines where the data is wrong. Bounded in time; works for two ranks on one GPU too.
//
// What is proved: words stored by a kernel on `from` into memory of `to`, and words copied there by a copy engine, are
// read by `to` through its own mapping (never back through the window, where a mirror would look right); and flags
// stored by running kernels reach each other. What is not: other pages, concurrent traffic, other processes.
#pragma once

#include <string>

namespace artune {

struct PairTestResult {
  std::string store_fault;      ///< empty = SM stores arrive; else what was found
  bool store_hangs = false;     ///< the flag ping ran out of time
  std::string copy_fault;       ///< empty = copies arrive
  double one_way_us = 0;        ///< half a flag round trip between running kernels
};

/// CUDA ordinals. Peer access `from` -> `to` and back must be enabled. `nonce` varies the pattern from call to call.
/// Throws Failure when CUDA itself fails.
PairTestResult test_pair(int from, int to, unsigned nonce);

}  // namespace artune
