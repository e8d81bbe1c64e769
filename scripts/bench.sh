#!/usr/bin/env bash
# `coil bench` on the fixtures, then the Google Benchmark programs of bench/. Figures only: no
# assertion on a clock.
set -euo pipefail
cd "$(dirname "$0")/.."

models=("$@")
if ((${#models[@]} == 0)); then
  models=(tests/fixtures/2.15.0/*.pt2)
fi
for model in "${models[@]}"; do
  echo "[bench] $model"
  build/coil bench "$model" </dev/null
done
if compgen -G 'bench/*.cpp' >/dev/null; then
  scripts/build.sh release coil_bench
  build/coil_bench
fi
