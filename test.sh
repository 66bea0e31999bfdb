#!/usr/bin/env bash
# Builds shardc and runs every test: lit's and, through lit, GoogleTest's. The
# last line is `N passed, N failed`; tests that cannot run here count in neither.
#
#   ./test.sh [release|dev|asan]     the CMake preset to build, release by default
#   ./test.sh PRESET TARGET...       builds these targets only, for LIT_FILTER's tests
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. utils/common.sh

preset=${1:-release}
shift $(($# > 0))
case $preset in
release) dir=build ;;
dev | asan) dir=build-$preset ;;
*)
  echo "error: unknown preset '$preset'; expected release, dev or asan" >&2
  exit 2
  ;;
esac

mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then
  echo "error: missing packages: ${missing[*]}" >&2
  if is_debian_12; then
    echo "note: ./setup.sh installs them" >&2
  fi
  exit 1
fi

configure_and_build "$preset" "$dir" "$@"

# LLVM's arenas poison their memory in our sanitized code and not in the package's,
# so user poisoning would report errors that are none.
export ASAN_OPTIONS=strict_string_checks=1:allow_user_poisoning=0
export UBSAN_OPTIONS=print_stacktrace=1
# Slow builds try less of what is drawn at random.
if [ "$preset" = asan ]; then
  export SHARDC_TEST_PROGRAMS=10 SHARDC_TEST_ASSIGNMENTS=8
fi

results=$dir/test/results.json
rm -f "$results"
status=0
quietly "$dir/test.log" /usr/lib/llvm-22/bin/lit --quiet --output "$results" "$dir/test" || status=$?
python3 utils/count-tests.py "$results" || status=1
exit "$status"
