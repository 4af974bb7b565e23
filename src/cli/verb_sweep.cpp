// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_sweep.hpp"

#include <memory>
#include <ostream>

#include "base/file.hpp"
#include "cli/measure.hpp"
#include "cli/terminal.hpp"
#include "profile/document_text.hpp"
#include "sweep/print.hpp"

namespace artune {
namespace {

std::string next_command(const CliContext& context) {
  if (!context.output.file.empty()) return "ar-tune tune --from " + context.output.file;
  return "ar-tune tune" + machine_flags_text(context.machine);
}

Status run(CliContext& context, MeasureFlags& flags) {
  const std::string& file = context.output.file;
  if (!file.empty()) {
    if (Status writable = check_writable(file); !writable) return writable;
    flags.journal = file + ".journal";
  } else if (flags.resume) {
    return Error{Reason::usage, "--resume goes on from the journal beside the output file; name it with -o FILE"};
  }
  const Result<MeasuredSweep> measured = measure(context, flags);
  if (!measured) return measured.error();
  context.human() << sweep_table(measured->sweep, {.colour = context.colored(), .columns = terminal_columns(PrintOptions().columns)})
                  << closing_lines(measured->sweep, next_command(context));

  Json document = sweep_to_json(measured->sweep);
  Json info = measured->info;
  if (measured->verdict) info["exit"] = exit_info(*measured->verdict);
  if (!info.empty()) document["info"] = info;
  context.print_document(document);
  if (Status written = context.write_document(document_text(document)); !written) return written;
  if (!flags.journal.empty() && measured->sweep.complete) std::remove(flags.journal.c_str());
  if (measured->verdict) return *measured->verdict;
  return Ok{};
}

std::function<Status()> configure(CLI::App& app, CliContext& context) {
  const auto flags = std::make_shared<MeasureFlags>();
  add_machine_options(app, context.machine);
  add_measure_options(app, *flags);
  add_overlap_options(app, *flags, {"1M", "16M"});  // what a prefill step sends
  app.add_option("--profile", flags->profile, "what `--path tuned` dispatches by (default: the runtime's own lookup)")->type_name("FILE");
  app.add_flag("--resume", flags->resume, "go on where an interrupted sweep with the same -o stopped");
  app.add_option("-o,--output", context.output.file, "write the sweep document here")->type_name("FILE");
  return [flags, &context] { return run(context, *flags); };
}

}  // namespace

const Verb kSweepVerb{"sweep", "Measure every way of reducing on the messages you send",
                      "ar-tune sweep --sizes 16K,64K,1M --dtype bf16 --mode graph -o sweep.json\n"
                      "ar-tune sweep --rig 4x-rtx-pro-6000-switch --hidden 5120 --tokens 1,8,512\n"
                      "ar-tune sweep --sizes 16M --overlap",
                      configure};

}  // namespace artune
