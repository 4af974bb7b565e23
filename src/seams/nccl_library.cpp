// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/nccl_library.hpp"

#include <unistd.h>

namespace artune {
namespace {

/// dlopen() searches for a name without a slash, but a person who types `--nccl libnccl.so.2` beside that file means the file.
std::string as_file(const std::string& name) {
  const bool bare = name.find('/') == std::string::npos;
  return bare && ::access(name.c_str(), R_OK) == 0 ? "./" + name : name;
}

}  // namespace

Result<NcclLibrary> NcclLibrary::open(const std::string& option_file, const std::string& environment_file,
                                      const std::string& search_name) {
  std::string file = search_name;
  std::string chosen_by = "the loader's search; name one with --nccl FILE or ARTUNE_NCCL_LIB";
  if (!option_file.empty()) {
    file = as_file(option_file);
    chosen_by = "from --nccl";
  } else if (!environment_file.empty()) {
    file = as_file(environment_file);
    chosen_by = "from ARTUNE_NCCL_LIB";
  }
  const Result<SharedLibrary> library = SharedLibrary::open(file);
  if (!library) return Error{Reason::unavailable, "no NCCL: " + library.error().message + ", " + chosen_by};

  using GetVersion = int (*)(int*);
  const auto get_version = reinterpret_cast<GetVersion>(library->symbol("ncclGetVersion"));
  if (get_version == nullptr) {
    return Error{Reason::unavailable,
                 "no NCCL: " + file + " has no symbol ncclGetVersion, so it is another library (" + chosen_by + ")"};
  }
  int version = 0;
  if (const int code = get_version(&version); code != 0 || version <= 0) {
    return Error{Reason::unavailable, "no NCCL: ncclGetVersion of " + file + " failed with code " + std::to_string(code)};
  }
  return NcclLibrary(*library, version, SharedLibrary::file_of(reinterpret_cast<const void*>(get_version)));
}

std::string NcclLibrary::version_text() const { return nccl_version_text(version_); }

std::string nccl_version_text(int version) {
  const int major_unit = version < 10000 ? 1000 : 10000;
  return std::to_string(version / major_unit) + "." + std::to_string(version % major_unit / 100) + "." +
         std::to_string(version % 100);
}

}  // namespace artune
