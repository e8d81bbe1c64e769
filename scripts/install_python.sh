#!/usr/bin/env bash
# usage: scripts/install_python.sh VENV [PIP OPTION...]: builds the Python package and installs it there. The
# build folder stays, so that a second run builds only what changed.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:?usage: scripts/install_python.sh VENV [PIP OPTION...]}
shift
python=$venv/bin/python
log=build/logs/install-python.log
mkdir -p build/logs
# As the other builds, so that ccache knows the objects.
export CC=${CC:-cc} CXX=${CXX:-c++} CCACHE_NOHASHDIR=1
echo "[install-python] building the package into $venv"
if ! CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$python" -m pip install -q --disable-pip-version-check \
  --no-input --no-deps --force-reinstall "$@" . >"$log" 2>&1 </dev/null; then
  tail -n 40 "$log" >&2
  exit 2
fi
