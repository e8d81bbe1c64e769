#!/usr/bin/env bash
# scripts/neon.sh: builds coil for 64-bit Arm with Debian's cross compiler in build-neon and runs every
# fixture under qemu-user, on neon, plain and interp. Kernels are compiled by the same cross compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
for tool in aarch64-linux-gnu-g++ qemu-aarch64 apt-get cmake ninja; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
  echo "[neon] not here: ${missing[*]} (apt packages g++-aarch64-linux-gnu, qemu-user)" >&2
  exit 2
fi

# The two libraries that a portable build links, unpacked from their Arm packages.
sysroot=$PWD/build-neon/sysroot
if [[ ! -f $sysroot/usr/lib/aarch64-linux-gnu/libminizip.a ]]; then
  echo "[neon] fetching minizip and zlib for arm64"
  lists=$PWD/build-neon/apt
  mkdir -p "$lists/partial" "$sysroot"
  arm=(-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists="$lists" -oAPT::Sandbox::User=root)
  apt-get -q "${arm[@]}" update >"$lists/log"
  (cd "$lists" && apt-get -q "${arm[@]}" download libminizip-dev zlib1g-dev >>log)
  for package in "$lists"/*.deb; do dpkg -x "$package" "$sysroot"; done
fi

if [[ ! -f build-neon/build.ninja ]]; then
  echo "[neon] configuring build-neon"
  libraries=$sysroot/usr/lib/aarch64-linux-gnu
  cmake --preset portable -B build-neon -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
    -DCOIL_MINIZIP_LIBRARY="$libraries/libminizip.a" -DCOIL_ZLIB_LIBRARY="$libraries/libz.a" >build-neon/configure.log
fi
echo "[neon] building build-neon/coil"
NINJA_STATUS="[%f/%t] " cmake --build build-neon --parallel "${JOBS:-$(nproc)}" --target coil

cat >build-neon/emulated <<EOF
#!/usr/bin/env bash
exec qemu-aarch64 -L /usr/aarch64-linux-gnu "$PWD/build-neon/coil" "\$@"
EOF
chmod +x build-neon/emulated
export COIL_CXX=aarch64-linux-gnu-g++
exec scripts/portable_fixtures.sh build-neon/emulated
