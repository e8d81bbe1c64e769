#!/usr/bin/env bash
# usage: scripts/install_python.sh VENV: builds the Python package and installs it there. The build folder
# stays, so that a second run builds only what changed.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:?usage: scripts/install_python.sh VENV}/bin/python
log=build/logs/install-python.log
mkdir -p build/logs
# By the name that the other builds use, so that ccache knows the objects.
export CC=${CC:-cc} CXX=${CXX:-c++}
echo "[install-python] building the package into $1"
if ! CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$python" -m pip install -q --disable-pip-version-check \
  --no-input --no-deps --force-reinstall . >"$log" 2>&1 </dev/null; then
  tail -n 40 "$log" >&2
  exit 2
fi
