#!/usr/bin/env bash
# scripts/check_portable.sh FILE: fails if the binary needs a library that is not part of glibc.
set -euo pipefail

file=${1:?usage: scripts/check_portable.sh FILE}
needed=$(objdump -p "$file" | awk '$1 == "NEEDED" {print $2}')
other=$(grep -vE '^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so\.[0-9]+$' <<<"$needed" || true)
if [[ -n $other ]]; then
  echo "$file needs more than glibc:" $other >&2
  exit 1
fi
echo "$file needs only glibc:" $needed
echo "newest glibc symbol: $(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)"
