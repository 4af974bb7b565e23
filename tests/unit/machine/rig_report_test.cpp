// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/file.hpp"
#include "rig_model_report.hpp"

namespace artune::test {
namespace {

TEST(ModelReport, TheDocumentSaysWhatTheProgramSays) {
  const Result<std::string> document = read_file(std::string(ARTUNE_SOURCE_DIR) + "/docs/model.md");
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_NE(document->find(kReportBegin + model_report() + kReportEnd), std::string::npos)
      << "the model has changed: run artune_model_report docs/model.md, read what it says, and commit it";
}

}  // namespace
}  // namespace artune::test
