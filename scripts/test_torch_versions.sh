#!/usr/bin/env bash
# usage: scripts/test_torch_versions.sh [VERSION...]: the tests of torch.compile on several releases of torch, with
# one wheel of coil. Each release has a virtual environment of its own, build/torch-VERSION, which stays.
set -euo pipefail
cd "$(dirname "$0")/.."

versions=("$@")
((${#versions[@]})) || versions=(2.9.1 2.11.0 2.15.0)
tests=(tests/python/test_{torch_compile,aliasing,hops,dynamic_models,training,fallback,random}.py)
log=build/logs
mkdir -p "$log"

# Each release of TorchVision names the one of torch that it goes with: pip finds it. A wheel of torch for the CPU alone
# is a tenth of the size, where the index has one.
make_venv() {
  local version=$1 venv=$2
  [[ -f $venv/.done ]] && return
  echo "[torch-versions] $venv: torch $version (up to 5 GB, once)"
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  local pip=("$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input)
  local packages=("torch==$version" torchvision transformers pytest numpy)
  if ! { "${pip[@]}" "torch==$version+cpu" "${packages[@]:1}" || "${pip[@]}" "${packages[@]}"; } \
    >"$log/pip-$version.log" 2>&1 </dev/null; then
    tail -n 20 "$log/pip-$version.log" >&2
    exit 2
  fi
  touch "$venv/.done"
}

wheels=build/wheel
rm -rf "$wheels"
for version in "${versions[@]}"; do
  make_venv "$version" "build/torch-$version"
done
first=build/torch-${versions[0]}/bin/python
echo "[torch-versions] one wheel"
if ! CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$first" -m pip wheel -q --disable-pip-version-check --no-input \
  --no-deps -w "$wheels" . >"$log/wheel.log" 2>&1 </dev/null; then
  tail -n 40 "$log/wheel.log" >&2
  exit 2
fi
status=0
for version in "${versions[@]}"; do
  python=build/torch-$version/bin/python
  "$python" -m pip install -q --disable-pip-version-check --no-input --no-deps --force-reinstall "$wheels"/coil-*.whl
  echo "[torch-versions] torch $version: $(ls "$wheels")"
  "$python" -m pytest -q -ra -p no:cacheprovider "${tests[@]}" </dev/null 2>&1 |
    tee "$log/pytest-$version.log" | tail -n 15 || status=1
done
exit "$status"
