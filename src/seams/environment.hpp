// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Every environment variable that ar-tune and libartune read, in one place, parsed once.
//
//   const Environment environment = Environment::of_process();
//   for (const std::string& problem : environment.problems) complain(problem);   // "ARTUNE_PATHS: 'pcie' is none of ..."
//   for (const EnvironmentRow& row : environment.table()) print(row);            // what `ar-tune env` shows
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.hpp"

namespace artune {

struct EnvironmentRow {
  std::string_view name;
  std::string_view meaning;          ///< one line
  std::optional<std::string> value;  ///< as set; nullopt = not set
};

struct Environment {
  /// ARTUNE_PROFILE: profile file that libartune and `run` load before they search.
  std::string profile;
  /// ARTUNE_NCCL_LIB: NCCL library file, used where no --nccl is given.
  std::string nccl_lib;
  /// ARTUNE_DISABLE: 1 = libartune sends everything to NCCL.
  bool disable = false;
  /// ARTUNE_PATHS: the paths that may be used ("nccl,host"); nullopt = all.
  std::optional<std::vector<Path>> paths;
  /// ARTUNE_LOG: 1 = libartune logs to standard error.
  bool log = false;
  /// ARTUNE_TIMEOUT: longest wait for a peer inside a kernel, in seconds; 0 = no limit; nullopt = default.
  std::optional<double> timeout_s;
  /// $XDG_CONFIG_HOME, else $HOME/.config; empty when neither is set. Relative values are ignored, as the XDG specification says.
  std::string config_home;
  /// CUDA_VISIBLE_DEVICES: named in messages about hidden GPUs; CUDA itself acts on it.
  std::optional<std::string> cuda_visible_devices;
  /// $XDG_RUNTIME_DIR, /tmp where that isn't set or not absolute: holds the command line's locks.
  std::string runtime_dir = "/tmp";
  /// NO_COLOR and TERM (no-color.org) don't speak against colours on a terminal.
  bool wants_color = false;

  /// One line per malformed variable; such a variable counts as not set.
  std::vector<std::string> problems;

  using Getter = std::function<std::optional<std::string>(const char* name)>;
  static Environment read(const Getter& get);
  static Environment of_process();

  const std::vector<EnvironmentRow>& table() const { return rows_; }

 private:
  std::vector<EnvironmentRow> rows_;
};

}  // namespace artune
