// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A profile for people: what is used from where to where, how fast, and against what.
//
//   fmt::print("{}", profile_table(profile));
#pragma once

#include <string>

#include "profile/profile.hpp"

namespace artune {

/// Plain text, lines end in newline, no colour. Says "simulated" and "ranks sharing one GPU" where so.
std::string profile_table(const Profile& profile);

}  // namespace artune
