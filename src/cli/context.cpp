// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/context.hpp"

#include <unistd.h>

#include <ostream>

#include "base/file.hpp"
#include "cli/exit_status.hpp"
#include "seams/environment.hpp"

namespace artune {
namespace {

/// A message is one line whatever a library put into it.
std::string one_line(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  return line;
}

}  // namespace

bool CliContext::colored() const {
  if (output.color != "auto") return output.color == "always";
  return ::isatty(output.json ? STDERR_FILENO : STDOUT_FILENO) == 1 && Environment::of_process().wants_color;
}

bool CliContext::shows_progress() const { return !output.quiet && ::isatty(STDERR_FILENO) == 1; }

void CliContext::note(std::string_view line) {
  if (!output.quiet) err_ << "ar-tune: " << one_line(line) << std::endl;
}

void CliContext::print_document(const Json& document) {
  if (!output.json || document_printed_) return;
  out_ << document.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
  document_printed_ = true;
}

Status CliContext::write_document(std::string_view text) {
  if (output.file.empty()) return Ok{};
  if (Status written = write_file_atomically(output.file, text); !written) return written;
  note("wrote " + output.file);
  return Ok{};
}

int CliContext::report(const Error& error) {
  const ReasonRow& row = row_of(error.reason);
  err_ << "ar-tune: " << one_line(error.message) << " [" << row.word << "]" << std::endl;
  print_document({{"kind", "ar-tune/error"}, {"reason", row.word}, {"exit_status", row.exit_status}, {"message", one_line(error.message)}});
  return row.exit_status;
}

Json exit_info(const Error& error) {
  const ReasonRow& row = row_of(error.reason);
  return {{"reason", row.word}, {"exit_status", row.exit_status}, {"message", one_line(error.message)}};
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  app.add_flag("--json", options.json, "print the document as JSON on standard output, text for people on standard error");
  app.add_flag("-q,--quiet", options.quiet, "no progress and no remarks on standard error, only errors");
  app.add_option("--color", options.color, "colours: auto, always, never")->type_name("WHEN")->check(CLI::IsMember({"auto", "always", "never"}));
}

void add_machine_options(CLI::App& app, MachineFlags& flags) {
  app.add_option("--devices", flags.devices, "GPUs in rank order: nvidia-smi index, PCI address or UUID, comma separated (default: all)")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--ranks-per-gpu", flags.ranks_per_gpu, "ranks on each GPU; above 1 is a rehearsal without any interconnect (default: 1)")
      ->type_name("K")
      ->check(CLI::Range(1, 8));
  app.add_option("--rig", flags.rig, "simulate this rig instead: a name, or a file")->type_name("NAME|FILE");
  app.add_option("--nccl", flags.nccl, "NCCL library file (default: ARTUNE_NCCL_LIB, then the loader's search)")->type_name("FILE");
  app.add_option("--max-memory", flags.max_memory, "memory for slabs on each GPU (default: 64M)")->type_name("SIZE");
  app.add_option("--timeout", flags.timeout, "a wait inside a kernel that lasts longer is a hang (default: 10s)")->type_name("TIME");
  app.add_option("--seed", flags.seed, "of test data and of the order of rounds (default: 1)")->type_name("N");
  app.add_flag("--busy-ok", flags.busy_ok, "measure although other processes use the GPUs");
  app.add_flag("--risky", flags.risky, "run peer tests that can wedge this machine, where the facts say so");
}

}  // namespace artune
