#!/usr/bin/env bash
# Figures only: no assertion on a clock. Without arguments a quick set: compile and run times of coil alone, some
# rows beside the peers, their counts. BENCH_ROWS names other rows or groups ("kernels models" are all).
set -euo pipefail
cd "$(dirname "$0")/.."

bench/compile_and_run.py
scripts/venv.sh bench/requirements.txt
read -ra rows <<<"${BENCH_ROWS:-softmax_4k_1k layernorm_add transpose_add linear_gelu resnet18}"
status=0
.venv/bin/python bench/compare.py "${rows[@]}" || status=$?
echo
.venv/bin/python bench/counts.py "${rows[@]}"
if compgen -G 'bench/*.cpp' >/dev/null; then
  scripts/build.sh release coil_bench
  build/coil_bench
fi
exit "$status"
