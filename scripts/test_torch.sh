#!/usr/bin/env bash
# The tests that compare with torch: makes .venv once, then runs pytest on tests/python and
# tests/models with build-ci/coil, which test-core built.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${TORCH_VERSION:-2.15.0}
venv=.venv
requirements=tests/requirements.txt
stamp=$venv/.done-torch-$version

mkdir -p build/logs
log=build/logs/pytest.log
rm -f "$log"

if [[ ! -f $stamp || $requirements -nt $stamp ]]; then
  echo "[test-torch] making $venv with torch $version (about 5 GB)"
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input \
    "torch==$version" -r "$requirements" >build/logs/pip.log 2>&1 </dev/null; then
    tail -n 20 build/logs/pip.log >&2
    echo "[test-torch] pip could not install torch $version" >&2
    exit 2
  fi
  touch "$stamp"
fi

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
COIL=$PWD/build-ci/coil PYTHONPATH=$PWD/python "$venv/bin/python" -m pytest -q -ra "${suites[@]}" \
  </dev/null 2>&1 | tee "$log" || status=$?
# 5: nothing was collected, which is not a failure.
((status == 5)) && status=0
exit "$status"
