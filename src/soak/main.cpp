// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// artune-soak: random calls of libartune's kernels on this machine's GPUs, every sum checked.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <mutex>

#include "base/failure.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "cli/exit_status.hpp"
#include "cli/interrupt.hpp"
#include "soak/soak.hpp"

namespace artune::soak {
namespace {

constexpr const char* kClearLine = "\r\x1b[K";
constexpr auto kProgressEvery = std::chrono::seconds(2);

struct Flags {
  std::vector<int> ranks;
  std::vector<int> devices;
  int ranks_per_gpu = 0;
  std::string calls = "1e7", duration, max = "1M", max_memory = "1G", timeout = "10s";
  std::uint64_t seed = 1, first_epoch = 0;
  std::vector<std::string> only, dtypes;
  int graph_calls = 1000;
  bool quiet = false, json = false;
};

void add_options(CLI::App& app, Flags& flags) {
  app.add_option("--ranks", flags.ranks, "sizes of groups, comma separated (default: those of 2,3,4,8 that fit)")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--devices", flags.devices, "CUDA ordinals of the GPUs, comma separated (default: all)")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--ranks-per-gpu", flags.ranks_per_gpu, "ranks on each GPU (default: as few as a group needs)")
      ->type_name("K")
      ->check(CLI::Range(1, 8));
  app.add_option("--calls", flags.calls, "calls of all groups together (default: 1e7)")->type_name("N");
  app.add_option("--duration", flags.duration, "end after this time, if the calls aren't made earlier")->type_name("TIME");
  app.add_option("--seed", flags.seed, "of calls and data (default: 1)")->type_name("N");
  app.add_option("--only", flags.only, "candidates by name, e.g. 'p2p/*'; may be given again")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option("--dtype", flags.dtypes, "f32, f16, bf16, f32-over-bf16, comma separated (default: all)")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--max", flags.max, "the largest message, up to 1G (default: 1M)")->type_name("SIZE");
  app.add_option("--max-memory", flags.max_memory, "memory for slabs on each GPU (default: 1G)")->type_name("SIZE");
  app.add_option("--timeout", flags.timeout, "a call that lasts longer is a hang (default: 10s)")->type_name("TIME");
  app.add_option("--graph-calls", flags.graph_calls, "calls in a graph (default: 1000)")
      ->type_name("N")
      ->check(CLI::Range(1, 20000));
  app.add_option("--first-epoch", flags.first_epoch,
                 "start the kernels' call counters here, e.g. 4294960000: they wrap (default: 0)")
      ->type_name("N");
  app.add_flag("-q,--quiet", flags.quiet, "no progress, no table: only what is wrong");
  app.add_flag("--json", flags.json, "print the counts as JSON on standard output, text for people on standard error");
  app.set_help_flag("-h,--help", "print this page and exit");
  app.set_version_flag("--version", fmt::format("artune-soak {}", kVersion), "print the version and exit");
  app.footer("Examples:\n  artune-soak\n  artune-soak --duration 5m --ranks 2,4 --only 'p2p/one-shot/*' --dtype bf16");
}

/// No CUDA call in here.
Result<SoakOptions> options_of(const Flags& flags) {
  SoakOptions options;
  const auto calls = parse_calls(flags.calls);
  if (!calls) return calls.error();
  options.calls = *calls;
  if (!flags.duration.empty()) {
    const auto duration = parse_duration(flags.duration);
    if (!duration) return duration.error();
    options.duration_s = *duration;
  }
  const auto timeout = parse_duration(flags.timeout);
  if (!timeout) return timeout.error();
  if (!(*timeout > 0)) return Error{Reason::usage, "--timeout must be above 0"};
  options.timeout_s = *timeout;
  const auto max = parse_size(flags.max);
  if (!max) return max.error();
  if (*max < 4 || *max > std::size_t{1} << 30) return Error{Reason::usage, "--max must be from 4 bytes to 1G"};
  options.max_bytes = *max;
  const auto max_memory = parse_size(flags.max_memory);
  if (!max_memory) return max_memory.error();
  options.max_memory_bytes = *max_memory;
  auto filter = make_filter(flags.only, flags.dtypes);
  if (!filter) return filter.error();
  options.filter = *filter;
  options.seed = flags.seed;
  options.graph_calls = flags.graph_calls;
  options.first_epoch = flags.first_epoch;
  options.ranks_per_gpu = flags.ranks_per_gpu;
  options.devices = flags.devices;
  options.ranks = flags.ranks;
  for (const int ranks : options.ranks) {
    if (ranks < 2 || ranks > kMaxRanks)
      return Error{Reason::usage, fmt::format("--ranks {}: an all-reduce has 2 to {} ranks here", ranks, kMaxRanks)};
    if (std::count(options.ranks.begin(), options.ranks.end(), ranks) > 1)
      return Error{Reason::usage, fmt::format("--ranks names {} twice", ranks)};
  }
  return options;
}

/// Fills in what the machine decides.
std::optional<Error> fit_to_machine(SoakOptions& options) {
  int visible = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&visible); status != cudaSuccess || visible == 0) {
    return Error{Reason::no_usable_gpu,
                 fmt::format("no usable GPU: {}", status != cudaSuccess ? cudaGetErrorString(status) : "CUDA shows none")};
  }
  if (options.devices.empty()) {
    for (int device = 0; device < visible; ++device) options.devices.push_back(device);
  }
  for (const int device : options.devices) {
    if (device < 0 || device >= visible)
      return Error{Reason::usage, fmt::format("--devices: there is no CUDA device {}; there are {}", device, visible)};
    if (std::count(options.devices.begin(), options.devices.end(), device) > 1) {
      return Error{Reason::usage, fmt::format("--devices names {} twice; ranks share a GPU with --ranks-per-gpu", device)};
    }
  }
  const auto fits = [&](int ranks) {
    return options.ranks_per_gpu == 0 || ranks <= options.ranks_per_gpu * static_cast<int>(options.devices.size());
  };
  for (const int ranks : options.ranks) {
    if (fits(ranks)) continue;
    return Error{Reason::usage,
                 fmt::format("{} ranks need more than {} GPU(s) with {} rank(s) each; add devices or raise --ranks-per-gpu",
                             ranks, options.devices.size(), options.ranks_per_gpu)};
  }
  if (options.ranks.empty()) {
    for (const int ranks : {2, 3, 4, 8}) {
      if (fits(ranks)) options.ranks.push_back(ranks);
    }
  }
  if (options.ranks.empty()) return Error{Reason::usage, "one rank has nothing to reduce; add devices or --ranks-per-gpu 2"};
  return std::nullopt;
}

/// Where text goes. Both the main thread and the watchdog end the program through it.
class Output {
 public:
  explicit Output(const Flags& flags) : flags_(flags), shows_progress_(!flags.quiet && ::isatty(STDERR_FILENO) == 1) {}

  void progress(const std::string& line) {
    const auto now = std::chrono::steady_clock::now();
    if (!shows_progress_ || now - last_ < kProgressEvery) return;
    last_ = now;
    std::cerr << kClearLine << line << std::flush;
  }
  void say(const std::string& text) {
    clear();
    human() << text << std::flush;
  }
  /// Table, document, last line. Returns the exit status.
  int end(const Tally& tally, const std::optional<Error>& error) {
    const std::lock_guard lock(ending_);  // kept by whoever ends: the other's words would come too late
    clear();
    if (!flags_.quiet && !tally.ranks.empty()) human() << tally_text(tally, error) << std::flush;
    if (flags_.json) std::cout << tally_json(tally, error).dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
    if (!error) return kExitOk;
    const ReasonRow& row = row_of(error->reason);
    std::string line = error->message;
    std::replace(line.begin(), line.end(), '\n', ' ');
    std::cerr << "artune-soak: " << line << " [" << row.word << "]" << std::endl;
    return row.exit_status;
  }

 private:
  std::ostream& human() { return flags_.json ? std::cerr : std::cout; }
  void clear() {
    if (shows_progress_) std::cerr << kClearLine << std::flush;
  }

  const Flags& flags_;
  bool shows_progress_;
  std::chrono::steady_clock::time_point last_{};
  std::mutex ending_;
};

int run(const Flags& flags) {
  Output output(flags);
  Tally tally;
  auto options = options_of(flags);
  if (!options) return output.end(tally, options.error());
  if (auto error = fit_to_machine(*options)) return output.end(tally, error);
  options->say = [&](const std::string& text) { output.say(text); };
  options->progress = [&](const std::string& line) { output.progress(line); };
  options->interrupted = interrupted;
  options->stuck = [&](const Error& error) { std::_Exit(output.end(tally, error)); };
  const InterruptGuard guard;
  std::optional<Error> error;
  try {
    error = soak(*options, tally);
  } catch (const std::exception& failure) {
    error = Error{Reason::internal, failure.what()};
  }
  const int status = output.end(tally, error);
  if (error) std::_Exit(status);  // kernels may still run: no destructor, no handler at exit waits for them
  return status;
}

}  // namespace
}  // namespace artune::soak

int main(int argc, char** argv) {
  using namespace artune;
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // before the first CUDA call: ranks may share a GPU
  CLI::App app("Random calls of libartune's kernels on this machine's GPUs, every sum checked on the device", "artune-soak");
  soak::Flags flags;
  soak::add_options(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked, std::cout, std::cout);
  } catch (const CLI::ParseError& error) {
    const std::string message = error.what();
    std::cerr << "artune-soak: " << message.substr(0, message.find('\n')) << "; see artune-soak --help ["
              << row_of(Reason::usage).word << "]" << std::endl;
    return kExitUsage;
  }
  return soak::run(flags);
}
