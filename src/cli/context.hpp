// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What every verb has in common: the common options, where text and documents go, and how a verb is described.
// To add a verb: verb_NAME.{hpp,cpp} with one `const Verb k…Verb`, and its line in main.cpp.
//
//   Status run(CliContext& context) {
//     context.human() << table;                   // standard output, or standard error with --json
//     context.print_document(probe_to_json(probe));  // only with --json
//     return context.write_document(text);        // only with -o
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace artune {

/// `--json`, `--quiet`, `--color`: every verb has these; `-o`: verbs that write a document.
struct OutputOptions {
  bool json = false;
  bool quiet = false;
  std::string color = "auto";       ///< auto, always, never
  std::string file;                 ///< `-o`; empty = none
};

/// Which machine is asked: verbs that probe or measure have these.
struct MachineFlags {
  std::vector<std::string> devices;  ///< index, PCI address or UUID, ordered; empty = all
  int ranks_per_gpu = 1;
  std::string rig;
  std::string nccl;
  std::string max_memory = "64M";
  std::string timeout = "10s";
  std::uint64_t seed = 1;
  bool busy_ok = false;
  bool risky = false;
};

class CliContext {
 public:
  CliContext(std::ostream& out, std::ostream& err) : out_(out), err_(err) {}

  OutputOptions output;
  MachineFlags machine;

  /// Text for people: standard output, or standard error when standard output belongs to JSON.
  std::ostream& human() { return output.json ? err_ : out_; }
  /// Whether human() is to be coloured: --color, and with `auto` a terminal, NO_COLOR and TERM.
  bool colored() const;
  /// Progress lines are worth printing: standard error is a terminal and nobody asked for quiet.
  bool shows_progress() const;
  /// One line on standard error: "ar-tune: worker crashed …"; nothing with --quiet.
  void note(std::string_view line);
  std::ostream& err() { return err_; }

  /// Prints `document` to standard output if --json asks for it. At most one per run, so that a script reads one value.
  void print_document(const Json& document);
  /// Writes `text` to -o, if given, and says so.
  Status write_document(std::string_view text);
  /// The last word of a run that fails: one line, and with --json an object if no document was printed. Returns the status.
  int report(const Error& error);

 private:
  std::ostream& out_;
  std::ostream& err_;
  bool document_printed_ = false;
};

/// One verb of the command line.
struct Verb {
  const char* name;
  const char* summary;
  const char* example;   ///< printed under --help: a command line or two
  /// Adds the verb's own options to `app`; returns what runs it after parsing. A Status that is an error ends the
  /// program with the exit status of its reason.
  std::function<Status()> (*configure)(CLI::App& app, CliContext& context);
};

/// For a document that a failing verb prints all the same, as its `info` / `exit`.
Json exit_info(const Error& error);

/// --json --quiet --color; a verb that writes a document adds `-o` itself, since what it holds differs.
void add_output_options(CLI::App& app, OutputOptions& options);
/// --devices --ranks-per-gpu --rig --nccl --max-memory --timeout --seed --busy-ok --risky
void add_machine_options(CLI::App& app, MachineFlags& flags);

}  // namespace artune
