// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

namespace artune {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;
constexpr std::size_t kTailBytes = std::size_t{8} << 10;
/// How long a killed process may take to go. Tearing down a CUDA context takes up to a second or two; a process that
/// is still there after this waits for hardware.
constexpr milliseconds kReapPatience{10'000};
/// How long a worker that closed its socket may take to die by itself, before its exit status is no longer waited for.
constexpr milliseconds kLastBreath{2'000};

int milliseconds_left(Clock::time_point until) {
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  return left <= 0 ? 0 : static_cast<int>(std::min<long long>(left, 60'000));
}

Error spawn_error(const char* call) { return {Reason::internal, std::string("can't start a worker: ") + call + ": " + std::strerror(errno)}; }

/// NUL-terminated array of the strings, as exec wants it.
std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (const std::string& string : strings) list.push_back(const_cast<char*>(string.c_str()));  // exec's signature predates const
  list.push_back(nullptr);
  return list;
}

/// Between fork and exec: only async-signal-safe calls, since other threads' locks may be held for ever.
[[noreturn]] void become_worker(pid_t parent, int socket, int words, const char* executable, char* const* arguments,
                                char* const* environment) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it died before the line above
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(words, STDOUT_FILENO) < 0 || ::dup2(words, STDERR_FILENO) < 0) {
    ::_exit(127);
  }
  ::fcntl(socket, F_SETFD, 0);  // survives exec
  ::execve(executable, arguments, environment);
  static constexpr char kMessage[] = "exec failed\n";
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, kMessage, sizeof kMessage - 1);
  ::_exit(127);
}

/// The last line that says something, without control characters: it ends up in a one-line message.
std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  const std::size_t newline = text.rfind('\n');
  if (newline != std::string::npos) text.erase(0, newline + 1);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  constexpr std::size_t kMostShown = 300;
  if (text.size() > kMostShown) text = "…" + text.substr(text.size() - kMostShown);
  return text;
}

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::spawn(const std::string& executable, std::vector<std::string> arguments,
                                                            const std::vector<std::string>& environment) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) return spawn_error("socketpair");
  std::array<int, 2> words{};
  if (::pipe2(words.data(), O_CLOEXEC) != 0) {
    const Error error = spawn_error("pipe2");
    for (const int descriptor : sockets) ::close(descriptor);
    return error;
  }
  ::fcntl(words[0], F_SETFL, O_NONBLOCK);

  arguments.insert(arguments.end(), {"--fd", std::to_string(sockets[1])});
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become_worker(parent, sockets[1], words[1], executable.c_str(), argument_pointers.data(), environment_pointers.data());
  }
  const Error error = spawn_error("fork");
  ::close(sockets[1]);
  ::close(words[1]);
  if (pid < 0) {
    ::close(sockets[0]);
    ::close(words[0]);
    return error;
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, sockets[0], words[0]));
}

WorkerProcess::~WorkerProcess() {
  kill();
  if (socket_ >= 0) ::close(socket_);
  ::close(words_);
}

Exchange WorkerProcess::ask(const std::string& line, milliseconds deadline) {
  const Clock::time_point until = Clock::now() + deadline;
  std::size_t sent = 0;
  while (true) {
    if (const std::size_t newline = unread_.find('\n'); newline != std::string::npos && sent == line.size()) {
      Exchange got{Exchange::State::answered, unread_.substr(0, newline), {}};
      unread_.erase(0, newline + 1);
      return got;
    }
    const int left = milliseconds_left(until);
    if (left == 0) return {Exchange::State::timed_out, {}, {}};
    std::array<pollfd, 2> watched{{{socket_, static_cast<short>(sent < line.size() ? POLLIN | POLLOUT : POLLIN), 0}, {words_open_ ? words_ : -1, POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), left) < 0) continue;  // EINTR: Ctrl-C is the sweep's business
    if (watched[1].revents != 0) hear_words();
    if ((watched[0].revents & POLLOUT) != 0) {
      const ssize_t put = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) sent += static_cast<std::size_t>(put);
    }
    if ((watched[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      std::array<char, 65536> block;
      const ssize_t got = ::recv(socket_, block.data(), block.size(), MSG_DONTWAIT);
      if (got > 0) {
        unread_.append(block.data(), static_cast<std::size_t>(got));
        if (unread_.size() > kMaxReplyBytes) return {Exchange::State::died, {}, "sent a reply without end"};
      } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        return {Exchange::State::died, {}, how_it_ended()};
      }
    }
  }
}

bool WorkerProcess::leave(milliseconds patience) {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  return reap(patience);
}

bool WorkerProcess::kill() {
  if (reaped_) return true;
  const milliseconds patience = killed_ ? milliseconds(0) : kReapPatience;
  killed_ = true;
  ::kill(-pid_, SIGKILL);  // its group: whatever it started goes too
  ::kill(pid_, SIGKILL);   // should it not have made its group yet
  return reap(patience);
}

bool WorkerProcess::reap(milliseconds patience) {
  const Clock::time_point until = Clock::now() + patience;
  while (!reaped_) {
    const pid_t got = ::waitpid(pid_, &wait_status_, WNOHANG);
    if (got == pid_ || (got < 0 && errno == ECHILD)) reaped_ = true;
    if (reaped_ || Clock::now() >= until) break;
    hear_words();  // a full pipe must not be what keeps it from ending
    std::this_thread::sleep_for(milliseconds(2));
  }
  return reaped_;
}

void WorkerProcess::hear_words() {
  std::array<char, 4096> block;
  while (true) {
    const ssize_t got = ::read(words_, block.data(), block.size());
    if (got <= 0) {
      if (got < 0 && errno == EINTR) continue;
      words_open_ = got < 0;  // end of file would wake poll() for ever
      break;
    }
    last_words_.append(block.data(), static_cast<std::size_t>(got));
    if (last_words_.size() > kTailBytes) last_words_.erase(0, last_words_.size() - kTailBytes);
  }
}

std::string WorkerProcess::how_it_ended() {
  if (!reap(kLastBreath)) return "closed its line and goes on running";
  hear_words();
  std::string text;
  if (WIFSIGNALED(wait_status_)) {
    text = "killed by " + signal_name(WTERMSIG(wait_status_));
  } else {
    text = "left with status " + std::to_string(WEXITSTATUS(wait_status_));
  }
  if (const std::string words = last_line(last_words_); !words.empty()) text += "; last words: " + words;
  return text;
}

}  // namespace artune
