// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_env.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <ostream>

#include "seams/environment.hpp"

namespace artune {
namespace {

/// What only the command line reads, beside what it shares with libartune.
constexpr struct {
  const char* name;
  std::string_view meaning;
} kCommandLineVariables[] = {
    {"XDG_RUNTIME_DIR", "folder for the lock files that keep two ar-tune off one GPU (default: /tmp)"},
    {"NO_COLOR", "anything: no colours, unless --color always"},
};

std::vector<EnvironmentRow> all_rows(const Environment& environment) {
  std::vector<EnvironmentRow> rows = environment.table();
  for (const auto& variable : kCommandLineVariables) {
    const char* value = std::getenv(variable.name);
    rows.push_back({variable.name, variable.meaning, value == nullptr ? std::nullopt : std::optional<std::string>(value)});
  }
  return rows;
}

Status run(CliContext& context) {
  const Environment environment = Environment::of_process();
  Json variables = Json::array();
  for (const EnvironmentRow& row : all_rows(environment)) {
    context.human() << fmt::format("{:<22} {}\n{:<22} {}\n", row.name, row.value ? "= " + *row.value : "not set", "", row.meaning);
    variables.push_back({{"name", row.name}, {"value", row.value ? Json(*row.value) : Json(nullptr)}, {"meaning", row.meaning}});
  }
  for (const std::string& problem : environment.problems) context.note(problem);
  context.print_document({{"kind", "ar-tune/env"}, {"version", 1}, {"variables", variables}, {"problems", environment.problems}});
  return Ok{};
}

}  // namespace

const Verb kEnvVerb{"env", "Print the environment variables that ar-tune and libartune read", "ar-tune env",
                    [](CLI::App&, CliContext& context) -> std::function<Status()> { return [&context] { return run(context); }; }};

}  // namespace artune
