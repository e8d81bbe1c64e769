#!/usr/bin/env bash
# scripts/fuzz.sh [TARGET...]: runs the targets of tests/fuzz with libFuzzer, FUZZ_SECONDS each, as
# many at a time as there are cores. The corpus grows in build-fuzz/corpus; tests/fuzz/corpus seeds it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${FUZZ_SECONDS:-600}
jobs=${JOBS:-$(nproc)}
targets=("$@")
if ((${#targets[@]} == 0)); then
  for source in tests/fuzz/*.cpp; do
    name=$(basename "$source" .cpp)
    [[ $name == replay_main ]] || targets+=("$name")
  done
fi
if ((${#targets[@]} == 0)); then
  echo "[fuzz] tests/fuzz has no target"
  exit 0
fi
scripts/build.sh fuzz "${targets[@]/#/coil_fuzz_}"

fuzz_one() {
  local name=$1 folder=build-fuzz/corpus/$1 log=build/logs/fuzz-$1.log
  mkdir -p "$folder" build-fuzz/findings
  local seeds=()
  [[ -d tests/fuzz/corpus/$name ]] && seeds=("tests/fuzz/corpus/$name")
  echo "[fuzz] $name for $seconds s"
  local words=()
  [[ -f tests/fuzz/$name.dict ]] && words=("-dict=tests/fuzz/$name.dict")
  if build-fuzz/fuzz/coil_fuzz_"$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -malloc_limit_mb=512 -max_len=65536 ${words[@]+"${words[@]}"} \
    -artifact_prefix="build-fuzz/findings/$name-" "$folder" ${seeds[@]+"${seeds[@]}"} \
    >"$log" 2>&1 </dev/null; then
    echo "[fuzz] $name: clean, $(grep -oE '^#[0-9]+' "$log" | tail -n 1 | tr -d '#') runs"
  else
    echo "[fuzz] $name: FOUND something, see $log"
    return 1
  fi
}
export -f fuzz_one
export seconds
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -euo pipefail -c 'fuzz_one {}'
