// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or an Error that a user can cause and act on (bad input, no GPU, foreign profile).
// What a user can't cause (a CUDA call failing, a broken invariant) is thrown instead: see failure.hpp.
//
//   Result<Profile> read = read_profile(path);
//   if (!read) return read.error();          // one line for the user, a reason word for scripts
//   use(*read);
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace artune {

/// Why something could not be done. One enumerator = one stable reason word (JSON `reason`, last line on stderr)
/// = one exit status; the only map from reason to status is src/cli/exit_status.hpp.
enum class Reason {
  usage,               ///< unknown flag, word, size, device, candidate: exit 2
  unreadable_input,    ///< a file that can't be opened, parsed or validated: exit 2
  unwritable_output,   ///< checked before measuring starts: exit 2
  no_usable_gpu,       ///< no device, or one that CUDA can't use (cause in the message): exit 3
  busy_gpu,            ///< other compute processes, or another ar-tune: exit 3
  foreign_profile,     ///< hard keys differ: exit 3
  simulated_profile,   ///< simulated or shared-GPU profile used elsewhere: exit 3
  no_candidate,        ///< every candidate is unavailable: exit 3
  unavailable,         ///< a path or feature that this machine lacks: exit 3 when it ends a verb
  wrong_sum,           ///< exit 4 where the verb certifies, else a finding
  hang,                ///< same
  crash,               ///< same
  interrupted,         ///< Ctrl-C: exit 130
  internal,            ///< exit 5
};

struct Error {
  Reason reason = Reason::internal;
  /// One line: names the thing and the way out. No trailing full stop or newline.
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}          // NOLINT(google-explicit-constructor): return value;
  Result(Error error) : state_(std::move(error)) {}      // NOLINT(google-explicit-constructor): return Error{...};

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};
/// Success without a value.
using Status = Result<Ok>;

}  // namespace artune
