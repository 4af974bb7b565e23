// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/system_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace artune {
namespace {
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;  // /proc/cpuinfo of a 256-core machine is about 400 KiB
}

std::optional<std::string> SystemFiles::bytes(const std::string& path, std::size_t most) const {
  std::ifstream file(root_ + path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string content(most, '\0');
  file.read(content.data(), static_cast<std::streamsize>(most));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) return std::nullopt;  // sysfs opens, then fails: EIO, EINVAL
  content.resize(static_cast<std::size_t>(file.gcount()));
  return content;
}

std::optional<std::string> SystemFiles::text(const std::string& path) const {
  auto content = bytes(path, kMaxTextBytes);
  if (!content) return std::nullopt;
  const std::size_t last = content->find_last_not_of(" \t\r\n\0");
  content->resize(last == std::string::npos ? 0 : last + 1);
  return content;
}

std::vector<std::string> SystemFiles::list(const std::string& directory) const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(root_ + directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool SystemFiles::exists(const std::string& path) const { return ::access((root_ + path).c_str(), F_OK) == 0; }

bool SystemFiles::accessible(const std::string& path) const { return ::access((root_ + path).c_str(), R_OK | W_OK) == 0; }

std::optional<std::string> SystemFiles::link_name(const std::string& path) const {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(root_ + path, error);
  if (error) return std::nullopt;
  return target.filename().string();
}

}  // namespace artune
