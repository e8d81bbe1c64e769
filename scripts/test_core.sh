#!/usr/bin/env bash
# The tests that need no torch: lint, unit tests and fuzz corpora (ctest), the case tables. Each part
# runs even if an earlier one failed; the exit status is 0 if all passed. Logs: build/logs/.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p build/logs
rm -f build/logs/{lint,ctest,cases}.log
jobs=${JOBS:-$(nproc)}
failed=()

echo "[test-core] lint"
python3 scripts/check_layers.py 2>&1 | tee build/logs/lint.log || failed+=(lint)

echo "[test-core] building with warnings as errors"
scripts/build.sh ci

echo "[test-core] ISA-specific objects"
python3 scripts/check_isa.py build-ci 2>&1 | tee -a build/logs/lint.log || failed+=(isa)

echo "[test-core] unit tests"
ctest --preset ci -j "$jobs" --progress --no-tests=error >build/logs/ctest.log 2>&1 || failed+=(units)
grep -E '\*\*\*|tests passed|tests failed' build/logs/ctest.log || tail -n 20 build/logs/ctest.log

echo "[test-core] case tables"
python3 scripts/run_cases.py --coil build-ci/coil --jobs "$jobs" 2>&1 |
  tee build/logs/cases.log || failed+=(cases)

if ((${#failed[@]})); then
  echo "[test-core] FAILED: ${failed[*]} (logs in build/logs)"
  exit 1
fi
echo "[test-core] all passed"
