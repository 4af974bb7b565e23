// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string_view>

#include "cli/command_line.hpp"
#include "cli/verb_env.hpp"
#include "cli/verb_explain.hpp"
#include "cli/verb_probe.hpp"
#include "cli/verb_sweep.hpp"
#include "cli/verb_tune.hpp"
#include "cli/verb_version.hpp"
#include "cli/worker_main.hpp"

int main(int argc, char** argv) {
  using namespace artune;
  if (argc > 1 && std::string_view(argv[1]) == "worker") return worker_main(argc, argv);
  return run_command_line(argc, argv, {kProbeVerb, kSweepVerb, kTuneVerb, kExplainVerb, kEnvVerb, kVersionVerb}, std::cout, std::cerr);
}
