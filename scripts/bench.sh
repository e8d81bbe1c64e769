#!/usr/bin/env bash
# bench/compile_and_run.py, then the Google Benchmark programs of bench/. Figures only: no
# assertion on a clock.
set -euo pipefail
cd "$(dirname "$0")/.."

bench/compile_and_run.py "$@"
if compgen -G 'bench/*.cpp' >/dev/null; then
  scripts/build.sh release coil_bench
  build/coil_bench
fi
