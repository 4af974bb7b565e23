# shellcheck shell=bash
# SPDX-FileCopyrightText: the ar-tune authors
# SPDX-License-Identifier: Apache-2.0
#
# What the scripts share; sourced, not run.

# shellcheck disable=SC2034  # used by those who source this
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Whether a display or compute controller of NVIDIA is on the PCI bus, whatever the driver makes of it.
has_nvidia_device() {
  local device
  for device in /sys/bus/pci/devices/*; do
    [ "$(cat "$device/vendor" 2>/dev/null)" = 0x10de ] || continue
    case $(cat "$device/class" 2>/dev/null) in 0x03*) return 0 ;; esac
  done
  # Without /sys/bus/pci (some containers and WSL) the driver's own files are the next best witness.
  [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]
}

# Makes nvcc findable where it is installed and not on PATH. Prints its version, nothing where there is none.
find_nvcc() {
  local nvcc=${CUDACXX:-}
  [ -n "$nvcc" ] || nvcc=$(command -v nvcc || true)
  [ -n "$nvcc" ] || { [ -x /usr/local/cuda/bin/nvcc ] && nvcc=/usr/local/cuda/bin/nvcc; }
  [ -n "$nvcc" ] || return 1
  export CUDACXX=$nvcc
  nvcc_version=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
  [ -n "$nvcc_version" ]
}

# at_least 12.8 12.4
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# Runs a step with its output in a file; shows the end of it only when the step fails.
quietly() {
  local what=$1 log status=0
  shift
  log=$(mktemp)
  echo "-- $what"
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" = 0 ]; then
    rm -f "$log"
    return 0
  fi
  tail -n 60 "$log" >&2
  echo "failed: $what (whole output: $log)" >&2
  return "$status"
}
