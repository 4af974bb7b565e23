// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Failure: what no user can cause, thrown and caught at the edges (the C ABI, the worker, main).
#pragma once

#include <stdexcept>
#include <string>

namespace artune {

class Failure : public std::runtime_error {
 public:
  /// `call`: the text of the call that failed; `detail`: what the callee said; `code`: its code; `device`: -1 if none.
  Failure(std::string call, const std::string& detail, int code, int device = -1)
      : std::runtime_error(call + ": " + detail + " (code " + std::to_string(code) +
                           (device >= 0 ? ", device " + std::to_string(device) : "") + ")"),
        call_(std::move(call)), code_(code), device_(device) {}

  const std::string& call() const { return call_; }
  int code() const { return code_; }
  int device() const { return device_; }

 private:
  std::string call_;
  int code_;
  int device_;
};

}  // namespace artune
