// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "seams/environment.hpp"

namespace artune {
namespace {

/// Another user's file is opened without O_CREAT: in a sticky directory the kernel refuses to "create" over it.
int open_lock_file(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  const int existing = ::open(path.c_str(), kFlags);
  if (existing >= 0 || errno != ENOENT) return existing;
  const int created = ::open(path.c_str(), kFlags | O_CREAT, 0666);
  if (created >= 0) ::fchmod(created, 0666);  // whatever the umask: everybody who measures must be able to lock it
  return created;
}

std::string holder_of(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size() - 1, 0);
  const long pid = got > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
  return pid > 0 ? "process " + std::to_string(pid) : "another ar-tune";
}

void write_pid(int descriptor) {
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(descriptor, 0) == 0 && ::pwrite(descriptor, text.data(), text.size(), 0) < 0) {
    // Only the name in somebody else's message is lost: the lock itself holds.
  }
}

}  // namespace

Result<GpuLock> GpuLock::take(const std::vector<GpuFacts>& gpus, const std::string& directory) {
  GpuLock lock;
  for (const GpuFacts& gpu : gpus) {
    const std::string path = lock_file(directory, gpu);
    const int descriptor = open_lock_file(path);
    if (descriptor < 0) {
      return Error{Reason::busy_gpu, "can't lock " + full_name(gpu) + " by " + path + ": " + std::strerror(errno) +
                                         "; set XDG_RUNTIME_DIR to a folder of your own"};
    }
    lock.descriptors_.push_back(descriptor);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      return Error{Reason::busy_gpu,
                   full_name(gpu) + " is being measured by " + holder_of(descriptor) + "; wait for it or choose other --devices"};
    }
    write_pid(descriptor);
  }
  return lock;
}

GpuLock::~GpuLock() {
  for (const int descriptor : descriptors_) ::close(descriptor);
}

std::string lock_directory() { return Environment::of_process().runtime_dir; }

std::string lock_file(const std::string& directory, const GpuFacts& gpu) { return directory + "/ar-tune-gpu-" + gpu.uuid_sha256 + ".lock"; }

std::string full_name(const GpuFacts& gpu) { return "GPU " + std::to_string(gpu.index) + " (" + gpu.pci_address + ", " + gpu.name + ")"; }

}  // namespace artune
