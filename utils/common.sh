# What setup.sh, test.sh and .ci/run share: the packages of Debian 12 that shardc
# is built with, and a quiet way to run a step. Sourced, not run.

packages=(
  clang-22 lld-22 libclang-rt-22-dev clang-format-22
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  antlr4 libantlr4-runtime-dev
  libfmt-dev nlohmann-json3-dev libgtest-dev libbenchmark-dev libsimdjson-dev uuid-dev zlib1g-dev
  node-d3
  cmake ninja-build ccache git python3 python3-numpy
)

# Prints the packages that are not installed, one a line.
missing_packages() {
  local package
  for package in "${packages[@]}"; do
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      echo "$package"
    fi
  done
}

is_debian_12() {
  [ -r /etc/os-release ] &&
    [ "$(. /etc/os-release && echo "${ID:-}-${VERSION_ID:-}")" = debian-12 ]
}

# quietly LOG COMMAND...: runs the command with its output in LOG and shows LOG
# only if the command fails, whose exit status it returns.
quietly() {
  local log=$1 status=0
  shift
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    cat "$log" >&2
    echo "error: '$*' failed with exit status $status" >&2
  fi
  return "$status"
}

# configure_and_build PRESET DIR [TARGET...]: configures DIR with PRESET if it is not
# yet configured, and brings the targets up to date, all of them by default.
configure_and_build() {
  local preset=$1 dir=$2
  shift 2
  mkdir -p "$dir"
  if [ ! -f "$dir/build.ninja" ]; then
    quietly "$dir/configure.log" cmake --preset "$preset" || return
  fi
  quietly "$dir/build.log" ninja -C "$dir" --quiet "$@"
}
