// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Journal: finished shapes, one JSON line each, so that a sweep that was stopped, by Ctrl-C or by a machine that went
// down, goes on where it was. The first line holds the plan and the machine: a journal of another plan or machine is
// refused, since numbers of two machines in one document would be nobody's. A last line cut short by a crash is dropped,
// its shape is measured again.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "sweep/plan.hpp"
#include "sweep/shape_run.hpp"

namespace artune {

class Journal {
 public:
  /// A new journal; one of an earlier sweep at `path` is replaced. Reason::unwritable_output when that can't be done.
  static Result<Journal> create(const std::string& path, const Plan& plan, const DocumentHeader& header);
  /// Opens `path` to go on. Reason::unreadable_input when it is no journal, or of another plan or machine.
  static Result<Journal> resume(const std::string& path, const Plan& plan, const DocumentHeader& header);

  /// What resume() found; empty after create(), and after the first call.
  std::vector<ShapeResult> take_finished() { return std::exchange(finished_, {}); }
  /// On the disk when it returns.
  Status append(const ShapeResult& result);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Journal(std::string path, DocumentHeader header, std::FILE* file) : path_(std::move(path)), header_(std::move(header)), file_(file) {}
  Status write_line(const Json& line);

  std::string path_;
  DocumentHeader header_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<ShapeResult> finished_;
};

}  // namespace artune
