#!/usr/bin/env bash
# usage: scripts/test_torch_versions.sh [VERSION...]: all of tests/python on several releases of torch, with one wheel
# of coil and one command. Each release has a virtual environment of its own, build/torch-VERSION, which stays; one
# that is there already, with a file .done in it, is taken as it is. TESTS names fewer tests. Last comes a line of
# counts for each release.
set -euo pipefail
cd "$(dirname "$0")/.."

versions=("$@")
((${#versions[@]})) || versions=(2.9.1 2.11.0 2.15.0)
jobs=${JOBS:-$(nproc)}
wheels=build/wheel
logs=build/logs
quiet=(-q --disable-pip-version-check --no-input)
mkdir -p "$logs"

log_or_die() {  # LOG COMMAND...: where the command fails, the log's end is shown
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null && return
  tail -n 40 "$log" >&2
  exit 2
}

# Each release of TorchVision names the one of torch that it goes with, and so does torch's wheel with Triton's: pip
# finds both. The other packages are those of the tests on the newest torch.
make_venv() {
  local version=$1 venv=$2 others
  [[ -f $venv/.done ]] && return
  echo "[torch-versions] $venv: torch $version (about 5 GB, once)"
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  mapfile -t others < <(grep -vE '^(#|triton|torchvision)' tests/requirements.txt)
  log_or_die "$logs/pip-$version.log" "$venv/bin/python" -m pip install "${quiet[@]}" "torch==$version" torchvision \
    "${others[@]}"
  touch "$venv/.done"
}

# Runs the tests on one release. The logs of a release have a folder, as count_tests.py wants them.
test_version() {
  local version=$1 python=build/torch-$1/bin/python log=$logs/torch-$1/pytest.log
  mkdir -p "${log%/*}"
  rm -f "$log"
  log_or_die "$logs/install-$version.log" "$python" -m pip install "${quiet[@]}" --no-deps --force-reinstall \
    "$wheels"/coil-*.whl
  echo "[torch-versions] torch $("$python" -c 'import torch; print(torch.__version__)'): $(ls "$wheels")"
  COIL=$PWD/build/coil "$python" -m pytest -q -ra -p no:cacheprovider -n "$jobs" --dist worksteal \
    ${TESTS:-tests/python} </dev/null >"$log" 2>&1 || true
  grep -E '^(FAILED|ERROR|SKIPPED) ' "$log" || true
}

for version in "${versions[@]}"; do
  make_venv "$version" "build/torch-$version"
done
scripts/build.sh release coil
echo "[torch-versions] one wheel"
rm -rf "$wheels"
# As the other builds, so that ccache knows the objects.
export CC=${CC:-cc} CXX=${CXX:-c++} CCACHE_NOHASHDIR=1 CMAKE_BUILD_PARALLEL_LEVEL=$jobs
log_or_die "$logs/wheel.log" "build/torch-${versions[0]}/bin/python" -m pip wheel "${quiet[@]}" --no-deps -w "$wheels" .
for version in "${versions[@]}"; do
  test_version "$version"
done
status=0
for version in "${versions[@]}"; do
  counts=$(scripts/count_tests.py "$logs/torch-$version" pytest) || status=1
  echo "torch $version: ${counts##*$'\n'}"
done
exit "$status"
