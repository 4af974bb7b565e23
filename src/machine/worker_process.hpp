// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// One worker process: started from our own executable, spoken to over a socket, always with a deadline, and never
// waited for without one.
//
//   auto worker = WorkerProcess::spawn("/proc/self/exe", {"ar-tune", "worker"}, environment);
//   Exchange got = (*worker)->ask(wire::to_line(request), std::chrono::seconds(30));
//   if (got.state == Exchange::State::died) explain(got.detail);   // "killed by SIGSEGV; last words: …"
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace artune {

struct Exchange {
  enum class State { answered, died, timed_out };
  State state = State::answered;
  std::string line;     ///< the reply, without newline
  std::string detail;   ///< one line on why there is none
};

class WorkerProcess {
 public:
  /// Runs `executable` with argv = `arguments` and `--fd N`, N the worker's end of the socket. `environment` is the
  /// whole of it ("NAME=value"). The worker has a process group of its own (Ctrl-C does not reach it), reads
  /// /dev/null, and dies with the thread that calls this.
  static Result<std::unique_ptr<WorkerProcess>> spawn(const std::string& executable, std::vector<std::string> arguments,
                                                      const std::vector<std::string>& environment);

  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  /// Kills the worker if it still runs, and waits for it no longer than kill() does.
  ~WorkerProcess();

  pid_t pid() const { return pid_; }
  /// Sends one line and waits for one. After anything but `answered` the worker is of no more use.
  Exchange ask(const std::string& line, std::chrono::milliseconds deadline);
  /// Closes the socket, which ends a worker that listens, and waits; false when it still runs then.
  bool leave(std::chrono::milliseconds patience);
  /// SIGKILL, and a bounded wait; false when the process can't be reaped: it hangs inside the kernel. Waits only once.
  bool kill();

 private:
  WorkerProcess(pid_t pid, int socket, int words) : pid_(pid), socket_(socket), words_(words) {}

  bool reap(std::chrono::milliseconds patience);
  void hear_words();
  std::string how_it_ended();

  pid_t pid_;
  int socket_;
  int words_;                 ///< its standard output and standard error
  bool words_open_ = true;
  bool killed_ = false;
  bool reaped_ = false;
  int wait_status_ = 0;
  std::string unread_;        ///< of the socket: bytes after the last line
  std::string last_words_;    ///< the tail of what it printed
};

}  // namespace artune
