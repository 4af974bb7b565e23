// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// How far the model of rigs is off what people have published, as Markdown. docs/model.md holds this text between two
// marks; rig_report_test.cpp keeps the two equal, `artune_model_report` prints it.
#pragma once

#include <string>

namespace artune::test {

std::string model_report();

inline constexpr const char* kReportBegin = "<!-- artune_model_report begins -->\n";
inline constexpr const char* kReportEnd = "<!-- artune_model_report ends -->\n";

}  // namespace artune::test
