#!/usr/bin/env bash
# scripts/build.sh PRESET [TARGET...]: configures a preset of CMakePresets.json once, then builds.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:?usage: scripts/build.sh PRESET [TARGET...]}
shift
folder=build-$preset
[[ $preset == release ]] && folder=build
jobs=${JOBS:-$(nproc)}

export CCACHE_NOHASHDIR=1  # build folders share what they compile alike
mkdir -p build/logs
# Configured again if the preset changed; CMake itself sees changes of CMakeLists.txt.
if [[ ! -f $folder/build.ninja || CMakePresets.json -nt $folder/build.ninja ]]; then
  echo "[build] configuring preset $preset in $folder"
  if ! cmake --preset "$preset" >"build/logs/configure-$preset.log" 2>&1; then
    cat "build/logs/configure-$preset.log" >&2
    exit 2
  fi
fi
echo "[build] building $folder: ${*:-everything}, $jobs jobs"
NINJA_STATUS="[%f/%t] " cmake --build "$folder" --parallel "$jobs" ${@:+--target "$@"}
