// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A topology for people: tables, and the plain lines that close a run.
#pragma once

#include <string>
#include <vector>

#include "probe/topology.hpp"

namespace artune {

/// GPUs, links, the matrix of pairs, NUMA, versions and other processes. Plain text, ends with a newline.
std::string topology_tables(const Topology& topology);

/// At most six lines: what is there, what CUDA allows between the GPUs, what stands against it, what to do next.
/// Facts only: nothing here was measured, and the lines say so. `next_command`: what the last line proposes.
std::vector<std::string> topology_closing_lines(const Topology& topology, const std::string& next_command);

}  // namespace artune
