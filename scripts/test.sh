#!/bin/bash
# SPDX-FileCopyrightText: the ar-tune authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the tests need, builds, and runs everything that this machine can run: the ci build, then the tool as built
# without CUDA. With --sanitizers also unit and protocol tests under the address, undefined-behaviour and thread sanitizers.
# The last line is the sum: "N passed, N failed, N skipped". ARTUNE_NO_SETUP=1 leaves the installing out.
set -uo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
cd "$repository" || exit 5

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed_steps=()
step() { quietly "$@" || { failed_steps+=("$1"); return 1; }; }

# run_tests PRESET ARGUMENT...: prints each test's line, keeps the count for the end.
run_tests() {
  local preset=$1
  shift
  echo "-- test $preset"
  "${runner[@]}" ctest --preset "$preset" --output-junit "$results/$preset.xml" "$@" || failed_steps+=("test $preset")
}

# Targets of the tests that carry one of the labels: sanitizer builds needn't build the rest.
targets_of() {
  local preset=$1 labels=$2
  ctest --preset "$preset" --show-only=json-v1 | python3 -c '
import json, os, sys
wanted = set(sys.argv[1].split(","))
for test in json.load(sys.stdin)["tests"]:
    labels = {label for p in test.get("properties", []) if p["name"] == "LABELS" for label in p["value"]}
    if labels & wanted and "command" in test:
        print(os.path.basename(test["command"][0]))' "$labels" | sort -u
}

sanitizers=0
case "${1:-}" in
  "") ;;
  --sanitizers) sanitizers=1 ;;
  *) echo "test.sh: unknown option '$1'; only --sanitizers is known" >&2; exit 2 ;;
esac

if [ -z "${ARTUNE_NO_SETUP:-}" ]; then scripts/setup.sh --for-tests || exit $?; fi
jobs=$(nproc)
runner=()

cuda=OFF
if find_nvcc && at_least "$nvcc_version" 12.4; then cuda=ON; fi
if step "configure ci (CUDA $cuda)" cmake --preset ci -DARTUNE_CUDA=$cuda -DCMAKE_CUDA_ARCHITECTURES=90-real && step "build ci" cmake --build --preset ci -j "$jobs"; then
  run_tests ci -j "$jobs"
fi

if [ "$sanitizers" = 1 ]; then
  if step "configure asan" cmake --preset asan; then
    mapfile -t targets < <(targets_of asan unit,protocol)
    step "build asan" cmake --build --preset asan -j "$jobs" --target "${targets[@]}" && run_tests asan -L '^(unit|protocol)$' -j "$jobs"
  fi

  # The thread sanitizer of g++ 12 can't place its shadow memory where the kernel randomizes addresses over more than 28 bits.
  if setarch "$(uname -m)" -R true 2>/dev/null; then runner=(setarch "$(uname -m)" -R); fi
  if step "configure tsan" cmake --preset tsan; then
    mapfile -t targets < <(targets_of tsan protocol)
    step "build tsan" cmake --build --preset tsan -j "$jobs" --target "${targets[@]}" && run_tests tsan -j "$jobs"
  fi
  runner=()
fi

# Without CUDA the ci build has just shown this.
if [ $cuda = ON ]; then
  step "configure no-cuda" cmake --preset no-cuda && step "build no-cuda (the tool)" cmake --build --preset no-cuda -j "$jobs" --target ar-tune &&
    step "run no-cuda" build/no-cuda/src/cli/ar-tune version
fi

if [ $cuda = OFF ]; then
  echo "GPU tests: not built, since there is no CUDA toolkit of at least 12.4 here."
else
  gpu_tests=$(ctest --preset ci -N -L '^gpu$' 2>/dev/null | sed -n 's/^Total Tests: //p')
  if ! has_nvidia_device; then
    echo "GPU tests: ${gpu_tests:-0} skipped, since there is no NVIDIA device on this machine (they were built)."
  else
    echo "GPU tests: ${gpu_tests:-0}; those skipped say why in their output."
  fi
fi
for failed in "${failed_steps[@]}"; do echo "failed: $failed" >&2; done

python3 - "$results" "${#failed_steps[@]}" <<'PYTHON'
import glob, sys, xml.etree.ElementTree as tree
passed = failed = skipped = 0
for path in glob.glob(sys.argv[1] + "/*.xml"):
    suite = tree.parse(path).getroot()
    count = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "skipped", "disabled")}
    failed += count["failures"]
    skipped += count["skipped"] + count["disabled"]
    passed += count["tests"] - count["failures"] - count["skipped"] - count["disabled"]
failed = max(failed, int(sys.argv[2]))  # a step that failed before its tests ran counts as one
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or not passed else 0)
PYTHON
