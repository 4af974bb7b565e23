// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the ar-tune binary as a person would, in a folder and with a home of its own.
//
//   Tool tool;                                                     // fresh folder
//   Ran ran = tool.run({"sweep", "--rig", "nope"});
//   EXPECT_EQ(ran.status, 2);
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace artune::testing {

struct Ran {
  int status = -1;        ///< exit status; 128 + signal when one killed it
  std::string out, err;
  /// The line before the end of `err`: what a failing run says last.
  std::string last_error_line() const;
};

class Tool {
 public:
  Tool();
  ~Tool();
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  std::map<std::string, std::string> environment;   ///< beside a plain one
  const std::filesystem::path& folder() const { return folder_; }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  std::string read(const std::string& name) const;
  void write(const std::string& name, const std::string& text) const;

  Ran run(const std::vector<std::string>& arguments) const;

  /// For runs that are interrupted: start, look, signal, finish.
  pid_t start(const std::vector<std::string>& arguments) const;
  Ran finish(pid_t pid) const;

 private:
  std::filesystem::path folder_;
};

/// What differs from run to run is made the same: times and cells of tables ("7.09*" -> "#*"), dates, hashes, geometries
/// (near ties), and the spaces that their widths move.
std::string normalized(const std::string& text);
/// Compares with tests/cli/golden/NAME; with ARTUNE_UPDATE_GOLDEN=1 writes it instead.
void expect_golden(const std::string& text, const std::string& name);

}  // namespace artune::testing
