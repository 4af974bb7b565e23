// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/environment.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/units.hpp"

namespace artune {
namespace {

struct Variable {
  const char* name;
  std::string_view meaning;
};

constexpr Variable kVariables[] = {
    {"ARTUNE_PROFILE", "profile file to load, before the search in the configuration folders"},
    {"ARTUNE_NCCL_LIB", "NCCL library file, where no --nccl is given (default: the loader's search for libnccl.so.2)"},
    {"ARTUNE_DISABLE", "1: libartune sends every all-reduce to NCCL"},
    {"ARTUNE_PATHS", "paths that may be used, comma separated (nccl, host, p2p, ce; default: all)"},
    {"ARTUNE_LOG", "1: libartune logs to standard error"},
    {"ARTUNE_TIMEOUT", "longest wait for a peer, as 10s, 500ms or 2m; 0: no limit"},
    {"XDG_CONFIG_HOME", "folder that holds ar-tune/profiles (absolute; default: $HOME/.config)"},
    {"HOME", "used where XDG_CONFIG_HOME isn't set"},
    {"CUDA_VISIBLE_DEVICES", "CUDA's own: hides and reorders GPUs; ar-tune's indices stay those of nvidia-smi"},
    {"XDG_RUNTIME_DIR", "folder for the lock files that keep two ar-tune off one GPU (default: /tmp)"},
    {"NO_COLOR", "anything: no colours, unless --color always"},
    {"TERM", "dumb or not set: no colours, unless --color always"},
};

bool read_switch(const std::string& name, const std::string& value, std::vector<std::string>& problems) {
  if (value == "1") return true;
  if (!value.empty() && value != "0") problems.push_back(name + ": '" + value + "' is neither 0 nor 1");
  return false;
}

std::optional<std::vector<Path>> read_paths(const std::string& value, std::vector<std::string>& problems) {
  if (value.empty()) return std::nullopt;
  std::vector<Path> paths;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t comma = std::min(value.find(',', begin), value.size());
    const std::string word = value.substr(begin, comma - begin);
    const auto path = parse_word<Path>(word);
    if (!path) {
      problems.push_back("ARTUNE_PATHS: '" + word + "' is none of " + word_list<Path>());
      return std::nullopt;
    }
    if (std::find(paths.begin(), paths.end(), *path) == paths.end()) paths.push_back(*path);
    begin = comma + 1;
  }
  return paths;
}

std::optional<double> read_timeout(const std::string& value, std::vector<std::string>& problems) {
  if (value.empty()) return std::nullopt;
  if (value == "0") return 0.0;
  const Result<double> seconds = parse_duration(value);
  if (seconds) return *seconds;
  problems.push_back("ARTUNE_TIMEOUT: " + seconds.error().message);
  return std::nullopt;
}

bool is_absolute(const std::optional<std::string>& path) { return path && !path->empty() && path->front() == '/'; }

}  // namespace

Environment Environment::read(const Getter& get) {
  Environment environment;
  for (const auto& variable : kVariables) environment.rows_.push_back({variable.name, variable.meaning, get(variable.name)});

  environment.profile = get("ARTUNE_PROFILE").value_or("");
  environment.nccl_lib = get("ARTUNE_NCCL_LIB").value_or("");
  environment.disable = read_switch("ARTUNE_DISABLE", get("ARTUNE_DISABLE").value_or(""), environment.problems);
  environment.paths = read_paths(get("ARTUNE_PATHS").value_or(""), environment.problems);
  environment.log = read_switch("ARTUNE_LOG", get("ARTUNE_LOG").value_or(""), environment.problems);
  environment.timeout_s = read_timeout(get("ARTUNE_TIMEOUT").value_or(""), environment.problems);
  environment.cuda_visible_devices = get("CUDA_VISIBLE_DEVICES");
  if (const auto xdg = get("XDG_CONFIG_HOME"); is_absolute(xdg)) {
    environment.config_home = *xdg;
  } else if (const auto home = get("HOME"); is_absolute(home)) {
    environment.config_home = *home + "/.config";
  }
  if (const auto runtime = get("XDG_RUNTIME_DIR"); is_absolute(runtime)) environment.runtime_dir = *runtime;
  environment.wants_color = get("NO_COLOR").value_or("").empty() && get("TERM").value_or("dumb") != "dumb";
  return environment;
}

Environment Environment::of_process() {
  return read([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace artune
