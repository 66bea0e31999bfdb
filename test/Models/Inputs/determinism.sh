#!/bin/sh
# determinism.sh SHARDC MODELS PREFIX: runs models twice, with memory in another
# place and filled with other bytes, and compares what is printed. Steps of large
# models take the same ways as those of small ones, for long: they are left out,
# and so are steps that differ in their annotations only.
twice() {
  "$@" -o "$prefix.first" || exit 1
  MALLOC_PERTURB_=171 MALLOC_TOP_PAD_=7340032 "$@" -o "$prefix.second" || exit 1
  cmp "$prefix.first" "$prefix.second" || exit 1
}

shardc=$1 models=$2 prefix=$3
for model in "$models"/*.shd; do
  phase=
  grep -q '^serve' "$model" && phase=--phase=decode
  case $model in
  */mixtral-8x7b-train.shd | */vit-l16-train.shd) ;;
  *-train.shd | *-128k.shd | *-fsdp.shd | *-hsdp.shd | *-zero2.shd) continue ;;
  esac
  twice "$shardc" "$model" $phase --emit-json
done
for model in attention-tp llama3-8b-lora llama3-8b-zero1 llama3-70b matmul-cases; do
  twice "$shardc" "$models/$model.shd" --emit-ir
  twice "$shardc" "$models/$model.shd" --emit-plan
done
