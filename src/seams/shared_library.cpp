// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/shared_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>

namespace artune {

Result<SharedLibrary> SharedLibrary::open(const std::string& file) {
  if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return SharedLibrary(handle);
  const char* why = ::dlerror();
  return Error{Reason::unavailable, "can't load " + file + " (" + (why != nullptr ? why : "no reason given") + ")"};
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

std::string SharedLibrary::file_of(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(info.dli_fname, nullptr), &std::free);
  return real ? real.get() : info.dli_fname;
}

}  // namespace artune
