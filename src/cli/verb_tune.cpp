// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_tune.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <ostream>

#include "base/file.hpp"
#include "cli/measure.hpp"
#include "cli/terminal.hpp"
#include "profile/document_text.hpp"
#include "profile/lookup.hpp"
#include "seams/environment.hpp"
#include "sweep/print.hpp"
#include "tune/decide.hpp"
#include "tune/groups.hpp"
#include "tune/print.hpp"

namespace artune {
namespace {

struct TuneFlags {
  MeasureFlags measure;
  double margin_percent = 2;
  std::string numerics = "any";
  std::string from;
  std::string sweep_output;
};

/// The profile that the runtime would load on this machine for that group: where `tune` installs without -o.
std::optional<std::string> installed_file(const std::string& fingerprint) {
  const ProfilePlaces places{.named = {}, .environment = {}, .config_home = Environment::of_process().config_home, .system = {}};
  if (places.config_home.empty()) return std::nullopt;
  return profile_candidates(places, fingerprint).front();
}

/// What is in use for the groups of a sweep. Its choices stay where nothing is better by more than noise and margin.
/// Only for machines that exist.
std::optional<Profile> incumbent_for(CliContext& context, const Sweep& sweep) {
  if (sweep.header.simulated) return std::nullopt;
  std::optional<Profile> incumbent;
  for (const MeasuredGroup& group : measured_groups(sweep)) {
    const auto file = installed_file(group.fingerprint);
    if (!file || !std::filesystem::exists(*file)) continue;
    const Result<Profile> profile = read_profile(*file);
    if (!profile) {
      context.note(profile.error().message + "; it is not considered");
      continue;
    }
    if (profile->fingerprint != group.fingerprint || profile->table_abi != kTableAbi) continue;
    context.note("the profile in use, " + *file + ", keeps its choices where the difference is within noise and margin");
    if (!incumbent) {
      incumbent.emplace();
      incumbent->fingerprint = sweep.fingerprint;
    }
    const Profile part = part_for(group, *profile);
    incumbent->tables.insert(incumbent->tables.end(), part.tables.begin(), part.tables.end());
  }
  return incumbent;
}

/// `sweep`: an earlier document, or measured now.
Result<MeasuredSweep> get_sweep(CliContext& context, TuneFlags& flags) {
  flags.measure.plan.decides = true;
  if (flags.from.empty()) return measure(context, flags.measure);
  const Result<std::string> text = read_file(flags.from);
  if (!text) return text.error();
  const Result<Json> document = parse_json(*text, flags.from);
  if (!document) return document.error();
  Result<Sweep> sweep = sweep_from_json(*document, flags.from);
  if (!sweep) return sweep.error();
  MeasuredSweep measured;
  measured.sweep = std::move(*sweep);
  measured.simulated = measured.sweep.header.simulated;
  if (document->contains("info")) measured.info = (*document)["info"];
  measured.info.erase("exit");  // that of the sweep then
  if (const auto worst = worst_candidate(measured.sweep); worst && flags.measure.strict) measured.verdict = worst;
  return measured;
}

std::string output_file(const CliContext& context, bool simulated) {
  return context.output.file.empty() ? "./" + std::string(default_output_name(simulated)) : context.output.file;
}

/// Where an interrupted `tune` leaves what it has measured: beside the profile that it doesn't write.
std::string rescue_file(const std::string& output) {
  const std::filesystem::path path(output);
  return (path.parent_path() / (path.stem().string() + ".sweep.json")).string();
}

Status write_sweep(CliContext& context, const MeasuredSweep& measured, const std::string& file) {
  Json document = sweep_to_json(measured.sweep);
  if (!measured.info.empty()) document["info"] = measured.info;
  if (Status written = write_file_atomically(file, document_text(document)); !written) return written;
  context.note("wrote " + file + " (sweep)");
  return Ok{};
}

Json profile_document(const Profile& profile, const MeasuredSweep& measured) {
  Json document = profile_to_json(profile);
  Json info = measured.info;
  if (measured.verdict) info["exit"] = exit_info(*measured.verdict);
  if (!info.empty()) document["info"] = info;
  return document;
}

/// Into the place where libartune looks. A failure is told and is no failure of the verb: the profile itself is written.
void install(CliContext& context, const Profile& profile, const std::string& text) {
  const auto file = installed_file(profile.fingerprint);
  if (!file) return context.note("neither XDG_CONFIG_HOME nor HOME is set: not installed; set ARTUNE_PROFILE to the file instead");
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(*file).parent_path(), failed);
  const Status written = write_file_atomically(*file, text);
  context.note(written ? "installed as " + *file + ", where libartune finds it" : "not installed: " + written.error().message);
}

/// For every group that was measured, each where a communicator over it looks.
void install_groups(CliContext& context, const Profile& profile, const MeasuredSweep& measured) {
  for (const MeasuredGroup& group : measured_groups(measured.sweep)) {
    const Profile part = part_for(group, profile);
    if (!part.tables.empty()) install(context, part, document_text(profile_document(part, measured)));
  }
}

/// A file of its own is for one group; what it says of fewer ranks is for people only.
void note_smaller_groups(CliContext& context, const Sweep& sweep, const std::string& file) {
  std::vector<int> ranks;
  for (const SmallerGroup& group : sweep.smaller_groups) ranks.push_back(group.ranks);
  if (ranks.empty()) return;
  const char* way_out = sweep.header.simulated ? "" : "; without -o and --from a profile is installed for each group";
  context.note(fmt::format("{} is for the whole group, a communicator over fewer GPUs doesn't use its tables for {} ranks{}", file,
                           fmt::join(ranks, " and "), way_out));
}

std::string next_command(const CliContext& context, const std::string& file) {
  if (!context.machine.rig.empty()) return "ar-tune explain " + file + " --bytes 64K";
  return "ar-tune sweep --path tuned,nccl --profile " + file + machine_flags_text(context.machine);
}

Status run(CliContext& context, TuneFlags& flags) {
  const auto numerics = parse_word<NumericsRule>(flags.numerics);
  if (!numerics) return Error{Reason::usage, "--numerics '" + flags.numerics + "': is none of " + word_list<NumericsRule>()};
  if (!flags.from.empty() && !flags.sweep_output.empty()) return Error{Reason::usage, "--sweep-output with --from: nothing is measured; leave out one of them"};
  if (flags.from.empty()) {
    if (Status writable = check_writable(output_file(context, !context.machine.rig.empty())); !writable) return writable;
  }
  if (!flags.sweep_output.empty()) {
    if (Status writable = check_writable(flags.sweep_output); !writable) return writable;
  }
  const Result<MeasuredSweep> measured = get_sweep(context, flags);
  if (!measured) return measured.error();
  const Sweep& sweep = measured->sweep;
  const std::string file = output_file(context, measured->simulated);
  context.human() << sweep_table(sweep, {.colour = context.colored(), .columns = terminal_columns(PrintOptions().columns)});
  if (!flags.sweep_output.empty()) {
    if (Status written = write_sweep(context, *measured, flags.sweep_output); !written) return written;
  }
  if (measured->verdict && measured->verdict->reason == Reason::interrupted) {
    const std::string kept = flags.sweep_output.empty() ? rescue_file(file) : flags.sweep_output;
    if (flags.sweep_output.empty()) {
      if (Status written = write_sweep(context, *measured, kept); !written) return written;
    }
    return Error{Reason::interrupted, measured->verdict->message + "; no profile is written: decide from what there is with ar-tune tune --from " + kept};
  }

  const std::optional<Profile> incumbent = incumbent_for(context, sweep);
  TuneOptions options;
  options.margin = flags.margin_percent / 100;
  options.numerics = *numerics;
  const Profile profile = decide(sweep, options, incumbent ? &*incumbent : nullptr);
  if (profile.tables.empty()) {
    return measured->verdict ? *measured->verdict : Error{Reason::no_candidate, "no profile: nothing was measured and right"};
  }
  context.human() << profile_table(profile) << closing_lines(sweep, next_command(context, file));

  const Json document = profile_document(profile, *measured);
  if (Status written = write_file_atomically(file, document_text(document)); !written) return written;
  context.note("wrote " + file + (measured->simulated ? " (simulated: no runtime will use it)" : ""));
  if (!measured->simulated && context.output.file.empty() && flags.from.empty()) {
    install_groups(context, profile, *measured);
  } else {
    note_smaller_groups(context, sweep, file);
  }
  context.print_document(document);
  if (measured->verdict) return *measured->verdict;
  return Ok{};
}

std::function<Status()> configure(CLI::App& app, CliContext& context) {
  const auto flags = std::make_shared<TuneFlags>();
  add_machine_options(app, context.machine);
  add_measure_options(app, flags->measure);
  add_overlap_options(app, flags->measure, {"4K", "64K", "1M", "16M"});  // a table is for all sizes
  app.add_option("--margin", flags->margin_percent, "percent by which a challenger must win (default: 2)")->type_name("PERCENT")->check(CLI::Range(0.0, 50.0));
  app.add_option("--numerics", flags->numerics, "any: bits may differ by message size; uniform: one class for all (default: any)")->type_name("RULE");
  app.add_option("--from", flags->from, "decide from this sweep document, measure nothing")->type_name("FILE");
  app.add_option("--sweep-output", flags->sweep_output, "keep the sweep document as well")->type_name("FILE");
  app.add_option("-o,--output", context.output.file,
                 "write the profile here (default: ./ar-tune-profile.json, and into the folder where libartune looks)")
      ->type_name("FILE");
  return [flags, &context] { return run(context, *flags); };
}

}  // namespace

const Verb kTuneVerb{"tune", "Measure, decide, and write the profile that runtimes load",
                     "ar-tune tune --dtype bf16 -o profile.json\nar-tune tune --rig 4x-rtx-pro-6000-switch", configure};

}  // namespace artune
