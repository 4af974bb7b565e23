#!/bin/bash
# SPDX-FileCopyrightText: the ar-tune authors
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh checkout to a tuning profile: installs, builds, tunes this machine's GPUs. Without an NVIDIA device it
# shows a simulated machine instead, and says so. Arguments go to `ar-tune tune`:
#   scripts/quickstart.sh
#   scripts/quickstart.sh --dtype bf16,f32 --max 16M
# The exit status is that of `ar-tune tune`. ARTUNE_NO_SETUP=1 leaves the installing out.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
cd "$repository"

[ -n "${ARTUNE_NO_SETUP:-}" ] || scripts/setup.sh

# One architecture, the one that is here: a third of the build time.
configure=(cmake --preset release)
if find_nvcc; then
  if ! at_least "$nvcc_version" 12.4; then
    echo "CUDA $nvcc_version is older than 12.4: building without it, so no GPU can be measured. Install a newer toolkit to change that."
    configure+=(-DARTUNE_CUDA=OFF)
  elif has_nvidia_device; then
    configure+=(-DARTUNE_CUDA=AUTO -DCMAKE_CUDA_ARCHITECTURES=native)
  else
    configure+=(-DARTUNE_CUDA=OFF)  # kernels that nothing here can run
  fi
else
  configure+=(-DARTUNE_CUDA=OFF)
  if has_nvidia_device; then
    echo "No CUDA toolkit (nvcc) was found: building without it, so no GPU can be measured. Install CUDA 12.4 or newer to change that."
  fi
fi
command -v ccache >/dev/null 2>&1 && configure+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
quietly "configure" "${configure[@]}"
quietly "build (some minutes the first time)" cmake --build --preset release --target ar-tune
tool=build/release/src/cli/ar-tune

if ! has_nvidia_device; then
  echo
  echo "No NVIDIA device on this machine: tuning a SIMULATED one, 4x RTX PRO 6000 behind a PCIe switch. Every figure comes from a model."
  exec "$tool" tune --rig 4x-rtx-pro-6000-switch "$@"
fi

# How many GPUs CUDA can use; a probe that fails leaves it to `tune` to name the cause.
gpus=$("$tool" probe --json --quiet 2>/dev/null | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["machine"]["gpus"]))' 2>/dev/null || echo 0)
if [ "$gpus" = 1 ] && [[ " $* " != *" --ranks-per-gpu"* ]]; then
  echo
  echo "One GPU: nothing to reduce with, so two ranks share it (--ranks-per-gpu 2). That is a REHEARSAL: it runs every path and checks"
  echo "every sum, but there is no interconnect in its figures, and its profile serves no other machine."
  set -- --ranks-per-gpu 2 "$@"
fi
echo
exec "$tool" tune "$@"
