// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace artune {
namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error unwritable(const std::string& path, int error_number) {
  return {Reason::unwritable_output, "can't write " + path + ": " + std::strerror(error_number) + "; choose another place with -o"};
}

/// Owns a temporary file until commit(): removed on every early return.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& beside) : name_(beside + ".XXXXXX") {
    name_.push_back('\0');
    descriptor_ = ::mkostemp(name_.data(), O_CLOEXEC);
    name_.pop_back();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (descriptor_ >= 0 && !committed_) ::unlink(name_.c_str());
  }
  int descriptor() const { return descriptor_; }
  int rename_to(const std::string& path) {
    committed_ = ::rename(name_.c_str(), path.c_str()) == 0;
    return committed_ ? 0 : errno;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const auto unreadable = [&](int error_number) {
    return Error{Reason::unreadable_input, "can't read " + path + ": " + std::strerror(error_number)};
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return unreadable(errno);
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (true) {
    const ssize_t got = ::read(descriptor, block.data(), block.size());
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      const int error_number = errno;
      ::close(descriptor);
      return unreadable(error_number);
    }
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  return text;
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  TemporaryFile file(path);
  if (file.descriptor() < 0) return unwritable(path, errno);
  // mkostemp makes 0600; a document is as readable as any other file its owner makes.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file.descriptor(), 0666 & ~mask);
  while (!text.empty()) {
    const ssize_t put = ::write(file.descriptor(), text.data(), text.size());
    if (put < 0) {
      if (errno == EINTR) continue;
      return unwritable(path, errno);
    }
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fsync(file.descriptor()) != 0) return unwritable(path, errno);
  if (const int error_number = file.rename_to(path)) return unwritable(path, error_number);
  const int directory = ::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);  // the rename itself is already visible; a file system that can't sync a directory is no error
    ::close(directory);
  }
  return Ok{};
}

Status check_writable(const std::string& path) {
  struct stat existing {};
  if (::stat(path.c_str(), &existing) == 0 && S_ISDIR(existing.st_mode)) return unwritable(path, EISDIR);
  const TemporaryFile file(path);
  if (file.descriptor() < 0) return unwritable(path, errno);
  return Ok{};
}

}  // namespace artune
