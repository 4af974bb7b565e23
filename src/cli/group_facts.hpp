// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The facts that a fingerprint is made of, from what a probe or a rig tells.
#pragma once

#include "machine/rig.hpp"
#include "probe/topology.hpp"
#include "profile/fingerprint.hpp"

namespace artune {

GroupFacts group_facts_of(const Topology& topology, const World& world);
/// `header`: what the rig's machine says of itself.
GroupFacts group_facts_of(const Rig& rig, const DocumentHeader& header);

/// How two GPUs of a rig lie to each other, in the classes that a driver would give: "pix" below one switch, "pxb"
/// over several, "phb" over the root complex of one socket, "sys" across sockets.
std::string rig_pair_class(const Rig& rig, std::size_t a, std::size_t b);

}  // namespace artune
