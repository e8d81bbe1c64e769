#!/usr/bin/env bash
# The tests that compare with torch: makes .venv once, then runs pytest on tests/python and
# tests/models with build-ci/coil, which test-core built, and with the Python package, which is built here.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv
mkdir -p build/logs
log=build/logs/pytest.log
rm -f "$log"
scripts/venv.sh tests/requirements.txt

suites=()
for folder in tests/python tests/models; do
  [[ -d $folder ]] && suites+=("$folder")
done
if ((${#suites[@]} == 0)); then
  echo "[test-torch] no suites" | tee "$log"
  exit 0
fi
echo "[test-torch] pytest ${suites[*]}"
status=0
scripts/build.sh ci
# With the flags of build-ci, whose objects ccache then knows.
scripts/install_python.sh "$venv" --config-settings=cmake.build-type=Dev \
  --config-settings=cmake.define.COIL_WERROR=ON
COIL=$PWD/build-ci/coil "$venv/bin/python" -m pytest -q -ra -n "${JOBS:-$(nproc)}" --dist worksteal "${suites[@]}" \
  </dev/null 2>&1 | tee "$log" || status=$?
# 5: nothing was collected, which is not a failure.
((status == 5)) && status=0
exit "$status"
