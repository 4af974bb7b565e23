// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/verb_version.hpp"

#include <ostream>

#include "base/version.hpp"
#include "profile/profile.hpp"

namespace artune {
namespace {

#ifdef ARTUNE_HAVE_CUDA
constexpr const char* kBuiltWithCuda = ARTUNE_CUDA_VERSION;
#else
constexpr const char* kBuiltWithCuda = nullptr;
#endif

#ifdef ARTUNE_TEST_FAULTS
constexpr bool kTestSwitches = true;
#else
constexpr bool kTestSwitches = false;
#endif

Status run(CliContext& context) {
  context.human() << tool_name() << "\n";
  if (kBuiltWithCuda != nullptr) {
    context.human() << "built with CUDA " << kBuiltWithCuda << "\n";
  } else {
    context.human() << "built without CUDA: rigs, documents and decisions; no measuring on GPUs\n";
  }
  context.human() << "profile table ABI " << kTableAbi << "\n";
  if (kTestSwitches) context.human() << "with test switches (ARTUNE_TEST_FAULT): not a release build\n";
  context.print_document({{"kind", "ar-tune/version"},
                          {"version", 1},
                          {"tool", tool_name()},
                          {"cuda", kBuiltWithCuda != nullptr ? Json(kBuiltWithCuda) : Json(nullptr)},
                          {"table_abi", kTableAbi},
                          {"test_switches", kTestSwitches}});
  return Ok{};
}

}  // namespace

const Verb kVersionVerb{"version", "Print which ar-tune this is and what it was built with", "ar-tune version",
                        [](CLI::App&, CliContext& context) -> std::function<Status()> { return [&context] { return run(context); }; }};

}  // namespace artune
