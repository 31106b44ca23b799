# shellcheck shell=bash
# Sourced by the other scripts: strict mode, the project's root as working folder, and what they share.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# One compiler cache serves every clone and build folder.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
CMAKE_BUILD_PARALLEL_LEVEL=$(nproc)
export CMAKE_BUILD_PARALLEL_LEVEL

# Ubuntu 22.04's own compiler is older than Penstock needs; its g++-12 is not. Named in any case, because the compiler
# cache tells objects of "c++", which CMake would take, from those of "g++", which pip's build takes.
if grep -qs '^VERSION_CODENAME=jammy' /etc/os-release; then export CXX=${CXX:-g++-12}; fi
export CXX=${CXX:-g++}

say() { printf '== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# configure PRESET [CMAKE ARGUMENT...]: once; afterwards the build itself sees when CMake has to run again.
configure() {
  local folder=build/$1 log
  [ -f "$folder/build.ninja" ] && return
  say "Configuring $folder"
  mkdir -p "$folder"
  log=$folder/configure.log
  cmake --preset "$@" >"$log" 2>&1 || { cat "$log" >&2; die "cmake --preset $* failed"; }
}

# build PRESET TARGET...
build() {
  local preset=$1 quiet=()
  shift
  # Ubuntu 22.04's ninja does not know it; --help exits with an error of its own.
  case $(ninja --help 2>&1) in *--quiet*) quiet=(--quiet) ;; esac
  ninja -C "build/$preset" "${quiet[@]}" -j "$CMAKE_BUILD_PARALLEL_LEVEL" "$@"
}
