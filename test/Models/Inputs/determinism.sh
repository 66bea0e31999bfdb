#!/bin/sh
# determinism.sh SHARDC MODELS PREFIX: runs each model twice, with memory in
# another place and filled with other bytes, and compares what is printed.
for model in "$2"/*.shd; do
  plan=--emit-plan phase=
  grep -q '^train' "$model" && plan= # has no text yet
  grep -q '^serve' "$model" && phase=--phase=decode plan= # two have none
  for what in --emit-ir --emit-json $plan; do
    "$1" "$model" $phase $what -o "$3.first" || exit 1
    MALLOC_PERTURB_=171 MALLOC_TOP_PAD_=7340032 \
      "$1" "$model" $phase $what -o "$3.second" || exit 1
    cmp "$3.first" "$3.second" || exit 1
  done
done
