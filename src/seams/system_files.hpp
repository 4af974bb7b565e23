// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel tells through files (/sys, /proc, /dev, /etc), read only. Tests give a root that holds a fake tree.
//
//   SystemFiles files;                                      // the machine itself
//   files.text("/proc/sys/kernel/osrelease");               // "6.1.0-28-amd64"; nullopt when it can't be read
//   files.list("/sys/bus/pci/devices");                     // sorted names; empty when there are none
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace artune {

class SystemFiles {
 public:
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

  /// Whole content without trailing white space, at most 1 MiB.
  std::optional<std::string> text(const std::string& path) const;
  /// The first `most` bytes: PCI configuration space gives root 4096 bytes and everybody else 64.
  std::optional<std::string> bytes(const std::string& path, std::size_t most) const;
  std::vector<std::string> list(const std::string& directory) const;
  bool exists(const std::string& path) const;
  /// Whether this process may open the file for reading and writing (device nodes).
  bool accessible(const std::string& path) const;
  /// Last component of what a symbolic link points to: the driver of a PCI device, the number of its IOMMU group.
  std::optional<std::string> link_name(const std::string& path) const;

 private:
  std::string root_;
};

}  // namespace artune
