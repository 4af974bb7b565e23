// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace artune {

/// The name under which a machine with a profile offers its dispatch as one more candidate (`--path tuned`). It stands
/// beside the menu, not in it: what it runs is decided by the profile, message by message.
inline constexpr std::string_view kTunedName = "tuned";

}  // namespace artune
