// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_env.hpp"

#include <fmt/format.h>

#include <ostream>

#include "seams/environment.hpp"

namespace artune {
namespace {

Status run(CliContext& context) {
  const Environment environment = Environment::of_process();
  Json variables = Json::array();
  for (const EnvironmentRow& row : environment.table()) {
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
