#!/bin/sh
# SPDX-FileCopyrightText: the ar-tune authors
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building ar-tune needs from the distribution (Debian, Ubuntu). Never a driver, never CUDA, never NCCL.
#   scripts/setup.sh               to build and use
#   scripts/setup.sh --for-tests   what the tests need as well
# Says nothing when all is there. Exit 3 when it can't install: on another distribution, or without root and sudo.
set -eu

build_packages="cmake ninja-build g++ ccache pkg-config git ca-certificates python3 libcli11-dev nlohmann-json3-dev libfmt-dev libhwloc-dev"
test_packages="libgtest-dev libgmock-dev libbenchmark-dev libvalijson-dev util-linux"

packages=$build_packages
for argument in "$@"; do
  case $argument in
    --for-tests) packages="$build_packages $test_packages" ;;
    -h | --help) sed -n '5,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "setup.sh: unknown argument '$argument'; there is --for-tests" >&2; exit 2 ;;
  esac
done

say_list() {
  echo "setup.sh: $1. Install these (names as in Debian 12), then run again with ARTUNE_NO_SETUP=1:" >&2
  echo "  $packages" >&2
  exit 3
}

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  say_list "this is neither Debian nor Ubuntu"
fi

missing=
for package in $packages; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || say_list "not root, and there is no sudo"
    as_root=sudo
  fi
  echo "setup.sh: installing$missing"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # shellcheck disable=SC2086  # a list of words
  if ! { $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup.sh: apt-get failed; its last words are above" >&2
    exit 3
  fi
fi

version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
if [ "$(printf '%s\n3.25\n' "$version" | sort -V | head -n 1)" != 3.25 ]; then
  echo "setup.sh: CMake $version is older than 3.25; a newer one comes from kitware.com or 'pip install cmake'" >&2
  exit 3
fi
