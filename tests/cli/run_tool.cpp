// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "run_tool.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

namespace artune::testing {
namespace {

std::string slurp(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const std::string& string : strings) list.push_back(const_cast<char*>(string.c_str()));
  list.push_back(nullptr);
  return list;
}

int open_or_die(const char* path, int flags, int to) {
  const int descriptor = ::open(path, flags, 0600);
  if (descriptor < 0 || ::dup2(descriptor, to) < 0) ::_exit(126);
  return descriptor;
}

}  // namespace

std::string Ran::last_error_line() const {
  std::string text = err;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

Tool::Tool() {
  std::string name = ::testing::TempDir() + "/ar-tune-cli-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
  folder_ = name;
}

Tool::~Tool() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Tool::read(const std::string& name) const { return slurp(folder_ / name); }

void Tool::write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name, std::ios::binary) << text; }

pid_t Tool::start(const std::vector<std::string>& arguments) const {
  std::vector<std::string> words{ARTUNE_TOOL};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables{"PATH=/usr/bin:/bin", "TERM=dumb", "LC_ALL=C.UTF-8", "HOME=" + folder_.string(), "XDG_RUNTIME_DIR=" + folder_.string()};
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  const std::string out = file(".out"), err = file(".err");
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  open_or_die("/dev/null", O_RDONLY, STDIN_FILENO);
  open_or_die(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
  open_or_die(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
  if (::chdir(folder_.c_str()) != 0) ::_exit(126);
  ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

Ran Tool::finish(pid_t pid) const {
  int state = 0;
  while (::waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state), read(".out"), read(".err")};
}

Ran Tool::run(const std::vector<std::string>& arguments) const { return finish(start(arguments)); }

std::string normalized(const std::string& text) {
  static const std::regex time_of_day(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"), hash(R"([0-9a-f]{16}\b)"), geometry(R"(\b\d+x\d+\b)"), spaces(" +"),
      table_row(R"(^ *[0-9.]+[KMG]? .*)"), cell(R"(( )\d+(\.\d+)?(?=[ *x]|$))"), fraction(R"(\d+\.\d+)"), whole(R"(\b\d+(?= (µs|%)))");
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    line = std::regex_replace(line, time_of_day, "TIME");
    line = std::regex_replace(line, hash, "HASH");
    line = std::regex_replace(line, geometry, "GEOMETRY");
    if (std::regex_match(line, table_row)) line = std::regex_replace(line, cell, "$1#");
    line = std::regex_replace(line, fraction, "#");
    line = std::regex_replace(line, whole, "#");
    result += std::regex_replace(line, spaces, " ") + "\n";
  }
  return result;
}

void expect_golden(const std::string& text, const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(ARTUNE_SOURCE_DIR) / "tests/cli/golden" / name;
  if (std::getenv("ARTUNE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text, slurp(path)) << "golden file " << path << "; if the change is meant, run the test with ARTUNE_UPDATE_GOLDEN=1";
}

}  // namespace artune::testing
