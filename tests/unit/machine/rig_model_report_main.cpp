// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// artune_model_report: prints the tables of docs/model.md. `artune_model_report FILE` puts them into FILE, between its marks.
#include <cstdio>
#include <string>

#include "base/file.hpp"
#include "rig_model_report.hpp"

int main(int argc, char** argv) {
  using namespace artune;
  const std::string report = test::model_report();
  if (argc < 2) {
    std::fputs(report.c_str(), stdout);
    return 0;
  }
  Result<std::string> document = read_file(argv[1]);
  if (!document) {
    std::fprintf(stderr, "%s\n", document.error().message.c_str());
    return 2;
  }
  const std::string begin_mark = test::kReportBegin;
  const std::size_t begin = document->find(begin_mark);
  const std::size_t end = document->find(test::kReportEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    std::fprintf(stderr, "%s has no marks for the report\n", argv[1]);
    return 2;
  }
  const std::size_t first = begin + begin_mark.size();
  document->replace(first, end - first, report);
  if (const Status written = write_file_atomically(argv[1], *document); !written) {
    std::fprintf(stderr, "%s\n", written.error().message.c_str());
    return 2;
  }
  return 0;
}
