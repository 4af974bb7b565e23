// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A folder that plays the root of a file system: /sys, /proc and /dev of a machine that isn't here.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "seams/system_files.hpp"

namespace artune {

class TemporaryTree {
 public:
  TemporaryTree() {
    std::string name = (std::filesystem::temp_directory_path() / "artune-tree-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder: " << name;
    root_ = name;
  }
  ~TemporaryTree() { std::filesystem::remove_all(root_); }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;

  void write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path, std::ios::binary) << content;
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::filesystem::create_symlink(target, root_ + path);
  }
  /// A device as sysfs shows it.
  void pci_device(const std::string& address, const std::string& vendor, const std::string& device,
                  const std::string& device_class) const {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    write(folder + "/vendor", vendor + "\n");
    write(folder + "/device", device + "\n");
    write(folder + "/class", device_class + "\n");
  }
  const std::string& root() const { return root_; }
  SystemFiles files() const { return SystemFiles(root_); }

 private:
  std::string root_;
};

}  // namespace artune
