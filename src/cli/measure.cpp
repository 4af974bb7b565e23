// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/file.hpp"
#include "base/tuned_name.hpp"
#include "base/units.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/session.hpp"
#include "profile/lookup.hpp"
#include "seams/environment.hpp"
#include "sweep/engine.hpp"

namespace artune {
namespace {

/// Words are wrong whatever the machine is: that is told before anybody waits for a driver. Only --ranks needs the machine.
Status check_words(const MeasureFlags& flags) {
  PlanWords words = flags.plan;
  words.ranks.clear();
  const Result<Plan> plan = make_plan(words, {});
  if (!plan) return plan.error();
  return Ok{};
}

bool wants_tuned(const PlanWords& words) {
  return std::count(words.paths.begin(), words.paths.end(), kTunedName) > 0 ||
         std::count(words.candidates.begin(), words.candidates.end(), kTunedName) > 0;
}

/// The file that `tuned` dispatches by: named, or by the runtime's own lookup; read and matched here so that a bad one
/// is an error before anything is measured.
Result<std::string> profile_for_tuned(CliContext& context, const MeasureFlags& flags, const MachineChoice& choice) {
  if (!wants_tuned(flags.plan)) {
    if (flags.profile) return Error{Reason::usage, "--profile is what `--path tuned` times; add that, or leave it out"};
    return std::string();
  }
  const Environment environment = Environment::of_process();
  const ProfilePlaces places{.named = flags.profile.value_or(""), .environment = environment.profile, .config_home = environment.config_home};
  const std::optional<FoundProfile> found = find_profile(places, fingerprint(choice.group));
  if (!found) return Error{Reason::unreadable_input, "no profile for this group: run ar-tune tune first, or name one with --profile FILE"};
  const Result<Profile> profile = read_profile(found->path);
  if (!profile) return profile.error();
  const Match match = match_profile(*profile, choice.group, choice.facts);
  if (!match.usable()) return Error{match.reason, found->path + ": " + match.refusal()};
  for (const std::string& warning : match.warnings()) context.note(found->path + ": " + warning);
  return found->path;
}

std::vector<int> ranks_of(const Plan& plan) {
  std::set<int> ranks;
  for (const Shape& shape : plan.shapes) ranks.insert(shape.ranks);
  return {ranks.begin(), ranks.end()};
}

std::vector<SmallerGroup> smaller_groups(const GroupFacts& whole, const std::vector<int>& ranks) {
  std::vector<SmallerGroup> groups;
  for (const int n : ranks) {
    if (std::string print = fingerprint(first_ranks(whole, n)); print != fingerprint(whole)) groups.push_back({n, std::move(print)});
  }
  return groups;
}

Error interrupted_error(const Sweep& sweep) {
  std::set<Shape> measured;
  for (const SweepRow& row : sweep.rows) measured.insert(row.shape);
  return {Reason::interrupted, fmt::format("interrupted; {} message shapes were measured, and those are right", measured.size())};
}

}  // namespace

void add_measure_options(CLI::App& app, MeasureFlags& flags) {
  PlanWords& plan = flags.plan;
  const auto list = [&app](const char* name, std::vector<std::string>& into, const char* help, const char* type) {
    app.add_option(name, into, help)->delimiter(',')->allow_extra_args(false)->type_name(type);
  };
  list("--op", plan.ops, "operations (default: all_reduce)", "LIST");
  app.add_option("--min", plan.min, "smallest message: bytes of one rank's tensor (default: 1K)")->type_name("SIZE");
  app.add_option("--max", plan.max, "largest message (default: 64M)")->type_name("SIZE");
  app.add_option("--factor", plan.factor, "from one message size to the next (default: 2)")->type_name("F");
  list("--sizes", plan.sizes, "these message sizes, instead of --min, --max and --factor", "LIST");
  app.add_option("--hidden", plan.hidden, "message sizes of a model: hidden size, with --tokens")->type_name("N");
  list("--tokens", plan.tokens, "tokens per step: each gives a message of tokens x hidden elements", "LIST");
  list("--dtype", plan.dtypes, "element types: f32, f16, bf16 (default: bf16)", "LIST");
  list("--wire", plan.wires, "what f32 goes over the links as: native, bf16 (lossy, half the bytes) (default: native)", "LIST");
  list("--mode", plan.modes, "graph, eager (default: both)", "LIST");
  list("--ranks", plan.ranks, "numbers of ranks (default: all of the group)", "LIST");
  list("--path", plan.paths, "only these paths: nccl, host, p2p, ce, tuned (default: all but tuned)", "LIST");
  list("--candidate", plan.candidates, "only candidates that match: 'p2p/*/ll'", "GLOB");
  app.add_option("--budget", plan.budget, "time for all measuring (default: 50s, with --overlap 100s)")->type_name("TIME");
  app.add_flag("--strict", flags.strict, "exit 4 when a candidate gives a wrong sum, hangs or crashes");
}

void add_overlap_options(CLI::App& app, MeasureFlags& flags, std::vector<std::string> sizes) {
  app.add_flag("--overlap", flags.plan.overlap,
               fmt::format("time every candidate beside a compute load as well (at the sizes given, else at {})", fmt::join(sizes, ", ")));
  flags.plan.overlap_sizes = std::move(sizes);
  app.add_option("--compute-us", flags.plan.compute_us, "what the load of --overlap takes by itself, µs (default: 5000)")->type_name("US");
}

Result<MeasuredSweep> measure(CliContext& context, const MeasureFlags& flags) {
  if (Status words = check_words(flags); !words) return words.error();
  Result<MachineChoice> choice = choose_machine(context);
  if (!choice) return choice.error();
  PlanWords words = flags.plan;
  words.seed = context.machine.seed;
  const Result<Plan> plan = make_plan(words, {.ranks = choice->ranks(), .launch = Launch::one_thread});
  if (!plan) return plan.error();
  for (const std::string& note : plan->notes) context.note(note);
  const Result<std::string> profile = profile_for_tuned(context, flags, *choice);
  if (!profile) return profile.error();

  const InterruptGuard guard;
  Result<Session> session = open_session(context, *choice, ranks_of(*plan), *profile);
  if (!session) return session.error();
  TerminalHooks hooks(context);
  Result<Sweep> sweep = run_sweep(*session->machine, *plan, hooks, {.journal_file = flags.journal, .resume = flags.resume});
  hooks.clear();
  if (!sweep) return sweep.error();

  MeasuredSweep measured;
  measured.sweep = std::move(*sweep);
  measured.sweep.fingerprint = fingerprint(choice->group);
  measured.sweep.smaller_groups = smaller_groups(choice->group, ranks_of(*plan));
  measured.simulated = choice->simulated();
  if (!choice->other_processes.empty()) measured.info["other_processes"] = choice->other_processes;
  if (interrupted()) {
    measured.verdict = interrupted_error(measured.sweep);
  } else if (const Status any = anything_measured(measured.sweep); !any) {
    measured.verdict = any.error();
  }
  if (flags.strict && (!measured.verdict || measured.verdict->reason != Reason::interrupted)) {
    // By the order of exit statuses 4 comes before 3.
    if (const auto worst = worst_candidate(measured.sweep)) measured.verdict = worst;
  }
  return measured;
}

std::optional<Error> worst_candidate(const Sweep& sweep) {
  constexpr std::array<std::pair<std::string_view, Reason>, 3> kBad{{{"wrong-sum", Reason::wrong_sum}, {"hang", Reason::hang}, {"crash", Reason::crash}}};
  for (const auto& [word, reason] : kBad) {
    for (const LeftOut& entry : sweep.left_out) {
      if (entry.reason != word) continue;
      return Error{reason, fmt::format("{}{}: {}", entry.candidate.label(), entry.shape.bytes == 0 ? "" : " at " + format_size(entry.shape.bytes), entry.detail)};
    }
  }
  return std::nullopt;
}

std::string machine_flags_text(const MachineFlags& flags) {
  std::string text;
  if (!flags.rig.empty()) text += " --rig " + flags.rig;
  if (!flags.devices.empty()) text += fmt::format(" --devices {}", fmt::join(flags.devices, ","));
  if (flags.ranks_per_gpu > 1) text += fmt::format(" --ranks-per-gpu {}", flags.ranks_per_gpu);
  if (!flags.nccl.empty()) text += " --nccl " + flags.nccl;
  return text;
}

}  // namespace artune
