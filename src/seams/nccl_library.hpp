// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// NCCL, found at run time: `--nccl FILE`, else ARTUNE_NCCL_LIB, else the loader's search.
//
//   Result<NcclLibrary> nccl = NcclLibrary::open(options.nccl, environment.nccl_lib);
//   if (!nccl) skip_path(nccl.error().message);
//   auto* all_reduce = reinterpret_cast<AllReduce>(nccl->symbol("ncclAllReduce"));
#pragma once

#include <string>

#include "base/result.hpp"
#include "seams/shared_library.hpp"

namespace artune {

class NcclLibrary {
 public:
  /// Empty arguments mean "not given". A named file that can't be loaded is an error: there is no silent second choice.
  static Result<NcclLibrary> open(const std::string& option_file, const std::string& environment_file,
                                  const std::string& search_name = "libnccl.so.2");

  void* symbol(const char* name) const { return library_.symbol(name); }
  int version() const { return version_; }           ///< as ncclGetVersion says: 23007
  std::string version_text() const;                  ///< "2.30.7"
  const std::string& file() const { return file_; }  ///< the real path of what was loaded

 private:
  NcclLibrary(SharedLibrary library, int version, std::string file)
      : library_(library), version_(version), file_(std::move(file)) {}

  SharedLibrary library_;
  int version_;
  std::string file_;
};

/// NCCL changed its encoding with 2.9: 2804 is "2.8.4", 20901 is "2.9.1".
std::string nccl_version_text(int version);

}  // namespace artune
