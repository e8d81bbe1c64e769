#!/usr/bin/env bash
# Installs what a build of coil needs, on Debian 12 and Ubuntu 24.04. Does nothing where all of it is
# there. Runs as root or through sudo; with neither, it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

required=(
  g++ cmake ninja-build make git ca-certificates
  libfmt-dev nlohmann-json3-dev libminizip-dev zlib1g-dev libcli11-dev
  libgtest-dev libbenchmark-dev
  python3 python3-dev python3-venv python3-pip
)
optional=(ccache clang-format-14)  # builds work without them

say() { echo "[setup] $*"; }

installed() { dpkg -s "$1" 2>/dev/null | grep -q '^Status: install ok installed'; }

# A stamp spares the dpkg calls; it is as new as the package database and this file.
stamp=build/.setup-done
if [[ -f $stamp && $stamp -nt scripts/setup.sh && ! /var/lib/dpkg/status -nt $stamp ]]; then
  say "all packages are installed"
  exit 0
fi

if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
  say "this script knows Debian and Ubuntu only; elsewhere, install the equivalents of:"
  say "  ${required[*]}"
  exit 2
fi

missing=()
for package in "${required[@]}"; do
  installed "$package" || missing+=("$package")
done
missing_optional=()
for package in "${optional[@]}"; do
  installed "$package" || missing_optional+=("$package")
done

# A tool that is there under another package name (a compiler from /opt, cmake from PyPI) will do.
provided() {
  case $1 in
    g++) command -v g++ ;;
    cmake) command -v cmake && cmake --version | awk 'NR==1 {split($3, v, "."); exit !(v[1] > 3 || v[2] >= 25)}' ;;
    ninja-build) command -v ninja ;;
    make | git | python3) command -v "$1" ;;
    *) return 1 ;;
  esac >/dev/null 2>&1
}
still=()
for package in ${missing[@]+"${missing[@]}"}; do
  provided "$package" || still+=("$package")
done
missing=(${still[@]+"${still[@]}"})

if [[ $(id -u) == 0 ]]; then
  as_root=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
  as_root=(sudo)
else
  if ((${#missing[@]})); then
    say "these packages are missing, and this is neither root nor sudo; as root, run:" >&2
    say "  apt-get install ${missing[*]}" >&2
    exit 2
  fi
  missing_optional=()
fi

apt() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
    -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ((${#missing[@]} + ${#missing_optional[@]})); then
  say "installing: ${missing[*]-} ${missing_optional[*]-}"
  # An image without package lists needs an update first; so does one whose lists are stale.
  install() { apt install --no-install-recommends "$@" >"$log" 2>&1; }
  if ((${#missing[@]})) && ! install "${missing[@]}"; then
    say "updating the package lists"
    if ! apt update >"$log" 2>&1 || ! install "${missing[@]}"; then
      tail -n 20 "$log" >&2
      say "apt-get could not install: ${missing[*]}" >&2
      exit 2
    fi
  fi
  for package in ${missing_optional[@]+"${missing_optional[@]}"}; do
    install "$package" || say "$package is not available; going on without it"
  done
fi

mkdir -p build
touch "$stamp"
say "all packages are installed"
