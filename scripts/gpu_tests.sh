#!/usr/bin/env bash
# usage: scripts/gpu_tests.sh [--print FOLDER | --modules FOLDER] [--time SIZE] [--compile SM]
# The kernels of tests/kernels as Triton, compiled and run on an NVIDIA GPU, against numpy. Needs python3
# ($PYTHON) with numpy and triton, and the CUDA driver; no torch, no network. The coil command ($COIL) prints
# the kernels; for a machine without it, `--print FOLDER` prints them elsewhere and `--modules FOLDER` runs those.
set -euo pipefail
cd "$(dirname "$0")/.."

coil=${COIL:-build-ci/coil}
python=${PYTHON:-python3}
modules="" only_print=false
rest=()
while (($#)); do
  case $1 in
    --print) modules=$2 only_print=true; shift 2 ;;
    --modules) modules=$2; shift 2 ;;
    --time | --compile) rest+=("$1" "$2"); shift 2 ;;
    *) sed -n 2p "$0" >&2; exit 2 ;;
  esac
done

if [[ -z $modules ]] || $only_print; then
  if [[ ! -x $coil ]]; then
    echo "SKIPPED: there is no coil command at $coil (set COIL, or give --modules)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
  fi
  modules=${modules:-build/gpu_kernels}
  mkdir -p "$modules"
  for text in tests/kernels/*.kernels; do
    "$coil" dump "$text" --stage triton >"$modules/$(basename "$text" .kernels).py"
  done
  if $only_print; then exit 0; fi
fi
exec env -u TRITON_INTERPRET "$python" tests/gpu/run_kernels.py "$modules" "${rest[@]}"
