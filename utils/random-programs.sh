#!/bin/sh
# Checks many random programs, and makes those that fail small. Exit status 1 if
# any fails; the command that repeats it is printed.
#   utils/random-programs.sh [--count 10000] [--seed 0] [--jobs 2]
set -eu
cd "$(dirname "$0")/.."
count=10000 seed=0 jobs=2
while [ $# -gt 1 ]; do
  case $1 in
  --count) count=$2 ;;
  --seed) seed=$2 ;;
  --jobs) jobs=$2 ;;
  *) break ;;
  esac
  shift 2
done
if [ $# -gt 0 ]; then
  echo "usage: utils/random-programs.sh [--count N] [--seed S] [--jobs J]" >&2
  exit 2
fi

tool=build/test/Random/random-programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
last=$((seed + count - 1))
# Each seed by itself where one of its fifty ends otherwise than it should.
seq "$seed" 50 "$last" | xargs -P "$jobs" -I FIRST sh -c '
  n=$(($2 - FIRST + 1)); [ $n -gt 50 ] && n=50
  "$1" --seed FIRST --count $n > "$3/run-FIRST" 2>&1 && exit 0
  for s in $(seq FIRST $((FIRST + n - 1))); do
    "$1" --seed $s > "$3/out-$s" 2>&1 || echo $s >> "$3/failed-FIRST"
  done' sh "$tool" "$last" "$work" || true

failed=$(cat "$work"/failed-* 2>/dev/null | sort -n || true)
for number in $failed; do
  echo "== seed $number"
  head -n 3 "$work/out-$number"
  "$tool" --seed "$number" --print > "$work/program.shd"
  python3 utils/reduce-program.py "$work/program.shd" --seed "$number" --tool "$tool"
  echo "-- $tool --seed $number"
done
echo "$count programs from seed $seed, $(echo "$failed" | grep -c . || true) failed"
[ -z "$failed" ]
