# shellcheck shell=bash
# Sourced by the other scripts: strict mode, the project's root as working folder, and what they share.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# As many at once as there are processors, and no more than there are GiB of memory: a room of sources that are compiled
# as one takes up to 0.9 of them. A container may have less than its machine.
jobs_here() {
  local gibibytes limit jobs
  gibibytes=$(awk '/^MemTotal:/ {printf "%d", ($2 + 524288) / 1048576}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [ "$limit" != max ] && ((limit >> 30 < gibibytes)); then gibibytes=$((limit >> 30)); fi
  jobs=$(nproc)
  if ((gibibytes < jobs)); then jobs=$gibibytes; fi
  printf '%d\n' $((jobs > 0 ? jobs : 1))
}
CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(jobs_here)}
export CMAKE_BUILD_PARALLEL_LEVEL

# Ubuntu 22.04's own compiler is older than Penstock needs; its g++-12 is not. Named in any case, because the compiler
# cache tells objects of "c++", which CMake would take, from those of "g++", which pip's build takes.
if grep -qs '^VERSION_CODENAME=jammy' /etc/os-release; then export CXX=${CXX:-g++-12}; fi
export CXX=${CXX:-g++}

# For sanitizers, fuzzers and checks. Debian 13 has no Clang 14 any more.
if grep -qs '^VERSION_CODENAME=trixie' /etc/os-release; then export CLANGXX=${CLANGXX:-clang++-19}; fi
export CLANGXX=${CLANGXX:-clang++-14}

say() { printf '== %s\n' "$*"; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# Ctrl-C ends the script also where the command that runs is one that ends in its own way, as pytest does.
interrupted() {
  trap - INT
  kill -INT $$
}
trap interrupted INT

# Of the disk with the build folders or of the one with temporary files, whichever has less, in MiB.
free_mebibytes() {
  df --output=avail --block-size=1M . "${TMPDIR:-/tmp}" | tail -n +2 | sort -n | head -1 | tr -d ' '
}

# require_free MEBIBYTES WHAT: a full disk fails compilers and tests one by one, and few of them say why.
require_free() {
  local free
  free=$(free_mebibytes)
  [ "$free" -ge "$1" ] ||
    die "$2 needs $1 MiB of free disk for $PWD and for ${TMPDIR:-/tmp}, and $free are free; free some and start again"
}

# Prints where this machine gets Debian's releases from, as its apt knows it.
debian_archive() {
  local uri
  # shellcheck disable=SC2016  # apt's own variable
  uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m1 '/debian/$') ||
    die "this machine's apt has no archive of Debian, so releases of Debian cannot be had"
  printf '%s\n' "${uri%/}"
}

# bare_system SUITE FOLDER PACKAGES: what debootstrap makes of a release of Debian or Ubuntu, once. As root. Without a key
# that signs it, debootstrap would take whatever it is given. Ubuntu's is in its package ubuntu-keyring, which Debian 13
# has and Debian 12 does not; KEYRING names another file.
bare_system() {
  local suite=$1 folder=$2 options=(--variant=minbase "--include=$3") mirror=() scripts=/usr/share/debootstrap/scripts
  local keyring=${KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
  [ ! -e "$folder/is-made" ] || return 0
  [ "$(id -u)" = 0 ] || die "only root may make another system and change into it"
  command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
  # Releases that this debootstrap is too old to know are made as Debian's newest is, and as Ubuntu's all are.
  case $suite in
    bionic | focal | jammy | noble | resolute)
      [ -e "$keyring" ] || die "$suite wants Ubuntu's keys in $keyring (package ubuntu-keyring); KEYRING names another file"
      options+=("--keyring=$keyring" "--components=main,universe")
      mirror=("" "$scripts/gutsy")  # from where debootstrap has Ubuntu
      ;;
    *)
      mirror=("$(debian_archive)")
      [ -e "$scripts/$suite" ] || mirror+=("$scripts/sid")
      ;;
  esac
  rm -rf --one-file-system "$folder"
  mkdir -p "${folder%/*}"
  with_heartbeat "debootstrap $suite" debootstrap "${options[@]}" "$suite" "$folder" "${mirror[@]}" >"$folder.log" 2>&1 ||
    die "debootstrap $suite failed: $(tail -n 1 "$folder.log")"
  touch "$folder/is-made"
}

# configure PRESET [CMAKE ARGUMENT...]: once; afterwards the build itself sees when CMake has to run again.
configure() {
  local folder=build/$1 log
  [ -f "$folder/build.ninja" ] && return
  case $1 in
    asan | tsan | fuzz) set -- "$@" "-DCMAKE_CXX_COMPILER=$CLANGXX" ;;
  esac
  say "Configuring $folder"
  mkdir -p "$folder"
  log=$folder/configure.log
  cmake --preset "$@" >"$log" 2>&1 || { cat "$log" >&2; die "cmake --preset $* failed"; }
}

# Before a command that builds the Python module: scikit-build-core gives CMake 5 s to tell its version, which is not
# enough on a busy machine, and 20 s where CI is set.
# shellcheck disable=SC2034  # who sources this uses it
readonly patiently=(env CI=yes)

# with_heartbeat WHAT COMMAND...: runs a command that says nothing for long, and says how long it has been at it: on one
# line on a terminal, elsewhere every half minute. The command's errors are shown.
with_heartbeat() {
  local what=$1 started=$SECONDS pid status=0 period=30
  shift
  [ ! -t 1 ] || period=1
  "$@" &
  pid=$!
  # The command, not this loop, is what an interrupt has to end.
  trap 'kill "$pid" 2>/dev/null; trap - TERM; interrupted' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    (( SECONDS - started > 0 && (SECONDS - started) % period == 0 )) || continue
    if [ -t 1 ]; then printf '\r   %s: %d s \033[K' "$what" $((SECONDS - started)); else
      printf '   %s: %d s\n' "$what" $((SECONDS - started))
      sleep 1
    fi
  done
  wait "$pid" || status=$?
  trap interrupted INT
  trap - TERM
  [ ! -t 1 ] || printf '\r\033[K'
  return "$status"
}

# Passes on what ninja says but for its steps, of which the last one is told every half minute, and for CMake's words on
# configuring anew, which follow every `git pull` that adds a file.
show_steps() {
  local what=$1 line told=$SECONDS
  while IFS= read -r line; do
    case $line in
      \[*/*\]\ *)
        (( SECONDS - told >= 30 )) || continue
        told=$SECONDS
        printf '   %s: %s\n' "$what" "${line%%]*}]"
        ;;
      'ninja: '*Entering* | 'ninja: no work to do.') ;;
      '-- GLOB mismatch!' | '-- '*' done' | '-- '*' done ('*')' | '-- Build files have been written to: '*) ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
}

# build PRESET TARGET...: on a terminal ninja shows its steps on one line.
build() {
  local folder=build/$1
  shift
  [ -f "$folder/.ninja_log" ] ||
    say "Building $folder: the first time takes 2 to 10 minutes on two cores, less with a warm compiler cache"
  if [ -t 1 ]; then
    NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$CMAKE_BUILD_PARALLEL_LEVEL" "$@"
  else
    NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$CMAKE_BUILD_PARALLEL_LEVEL" "$@" | show_steps "$folder"
  fi
}
