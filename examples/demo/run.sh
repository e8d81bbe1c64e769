#!/usr/bin/env bash
# The demo: compiles a trained digit classifier, runs it on digits it has not seen, shows what it says.
# Needs build/coil (`make demo` builds it) and Python 3 without packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
coil=${COIL:-$here/../../build/coil}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A cache of its own, so that "cold" below means that nothing was compiled before.
export COIL_CACHE_DIR=$work/cache
"$coil" bench "$here/digits.pt2" --inputs "$here/digits.npz" --json >"$work/bench.json"
"$coil" run "$here/digits.pt2" --inputs "$here/digits.npz" --outputs "$work/out.npz" >"$work/run.txt"
python3 "$here/show.py" "$here/digits.npz" "$here/labels.txt" "$work/out.npz" "$work/bench.json"
