// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a document fits a JSON Schema. In a file of its own: valijson takes long to compile.
#pragma once

#include <string>

namespace artune::test {

bool fits_schema(const std::string& schema_file, const std::string& document);

}  // namespace artune::test
