#!/usr/bin/env bash
# scripts/portable_fixtures.sh COIL: runs every fixture on every instruction set that the machine has.
# For machines that only have a compiler: needs nothing but bash, coreutils and a C++ compiler.
set -u
coil=$(realpath "${1:?usage: scripts/portable_fixtures.sh COIL}")
here=$(cd "$(dirname "$0")/.." && pwd)
COIL_CACHE_DIR=$(mktemp -d)
export COIL_CACHE_DIR coil
trap 'rm -rf "$COIL_CACHE_DIR"' EXIT

one() {  # FILE OPTIONS...
  local file=$1 text
  shift
  if text=$("$coil" run "$file" --inputs "${file%.pt2}.npz" --expect "${file%.pt2}.npz" "$@" 2>&1); then
    echo passed
  elif grep -q 'this processor has no' <<<"$text"; then
    echo skipped
  else
    echo "failed $file $*: $(tail -n 3 <<<"$text" | tr '\n' ' ')"
  fi
}
export -f one
results=$(for file in "$here"/tests/fixtures/*/*.pt2; do
  printf '%s\0' "$file --target interp" "$file" "$file -O isa=avx512" "$file -O isa=avx2" "$file -O isa=plain" \
    "$file -O isa=neon" "$file -O fuse=off"
done | xargs -0 -P "$(nproc)" -I{} bash -c 'one {}')
grep '^failed' <<<"$results"
count() { grep -c "^$1" <<<"$results"; }
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[[ $(count failed) == 0 ]]
