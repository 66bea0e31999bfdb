#!/usr/bin/env bash
# Builds the fuzz targets (test/Fuzz) beside the tests with sanitizers and runs
# them, one after the other:
#   utils/fuzz.sh [SECONDS [TARGET...]]     20 s of each target by default
#   utils/fuzz.sh --runs N [TARGET...]      N inputs of each, on any machine the same
# What a target finds is left in build-asan/fuzz/found, and the exit status is 1.
# The corpus in build-asan/fuzz/corpus grows from run to run.
#   build-asan/bin/TARGET FILE              repeats one finding
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. utils/common.sh

if [ "${1:-}" = --runs ]; then
  extent=-runs=$2
  shift 2
else
  extent=-max_total_time=${1:-20}
  shift $(($# > 0))
fi
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  targets=(fuzz-program fuzz-hardware fuzz-dialects fuzz-questions)
fi

dir=build-asan
work=$dir/fuzz
mkdir -p "$work/found"
if [ ! -f "$dir/build.ninja" ]; then
  quietly "$dir/configure.log" cmake --preset asan
fi
quietly "$work/build.log" ninja -C "$dir" --quiet "${targets[@]}"
python3 utils/fuzz-corpus.py "$work/corpus"

status=0
for target in "${targets[@]}"; do
  log=$work/$target.log
  # The same seed each time: a finding of one run repeats in the next.
  # Sanitizers and coverage make an input ten to a hundred times slower. Of
  # 10,000 inputs changed at random, the slowest took 9 s without them: a change
  # of layouts over five axes.
  if "$dir/bin/$target" "$work/corpus/$target" -dict="$work/corpus/$target.dict" \
    -seed=1 "$extent" -timeout=240 -rss_limit_mb=2048 -max_len=8192 \
    -artifact_prefix="$work/found/$target-" -print_final_stats=1 >"$log" 2>&1; then
    outcome='nothing found'
  else
    outcome="FAILED, see $log"
    status=1
  fi
  echo "$target: $(sed -n 's/^stat::number_of_executed_units: //p' "$log") executions, $outcome"
  if [ "$outcome" != 'nothing found' ]; then
    # All that another machine needs to repeat it.
    sed -n '/== ERROR\|does not hold\|ssert/,$p' "$log" | head -n 60
    for found in "$work/found/$target"-*; do
      [ -e "$found" ] || continue
      echo "$found, in base64:"
      base64 -w 0 "$found"
      echo
    done
  fi
done
exit "$status"
