// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A library found at run time. A missing file or symbol is an Error that names it, never a crash.
//
//   Result<SharedLibrary> nvml = SharedLibrary::open("libnvidia-ml.so.1");
//   auto* init = reinterpret_cast<int (*)()>(nvml->symbol("nvmlInit_v2"));   // nullptr when missing
#pragma once

#include <string>

#include "base/result.hpp"

namespace artune {

class SharedLibrary {
 public:
  /// A path, or a bare name for the loader's search. Reason::unavailable with the loader's own words.
  static Result<SharedLibrary> open(const std::string& file);

  /// nullptr when the library has no such symbol.
  void* symbol(const char* name) const;
  /// The file that holds `address`, symbolic links resolved; empty if the loader doesn't know.
  static std::string file_of(const void* address);

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  // Never closed: driver libraries start threads and keep thread-local state, and unloading them under those crashes.
  void* handle_;
};

}  // namespace artune
