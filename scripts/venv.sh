#!/usr/bin/env bash
# usage: scripts/venv.sh REQUIREMENTS.txt
# Makes .venv with torch $TORCH_VERSION and what the file lists. Does nothing where that was done before.
set -euo pipefail
cd "$(dirname "$0")/.."

requirements=$1
version=${TORCH_VERSION:-2.15.0}
venv=.venv
stamp=$venv/.done-torch-$version-$(dirname "$requirements")

if [[ -f $stamp && ! $requirements -nt $stamp && ! tests/requirements.txt -nt $stamp ]]; then
  exit 0
fi
echo "[venv] $venv: torch $version and $requirements (about 5 GB, once)"
mkdir -p build/logs
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input \
  "torch==$version" -r "$requirements" >build/logs/pip.log 2>&1 </dev/null; then
  tail -n 20 build/logs/pip.log >&2
  echo "[venv] pip could not install torch $version and $requirements" >&2
  exit 2
fi
touch "$stamp"
