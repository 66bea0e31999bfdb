#!/bin/sh
# determinism.sh SHARDC MODELS RECIPE PREFIX: plans programs twice, with memory in
# another place and filled with other bytes, and compares what is printed. The
# search by scheduled time takes the same ways on large models as on small ones,
# for long: models are planned by upper time, and by scheduled time what is small.
# Steps of large models are left out, and those that differ in annotations only.
twice() {
  "$@" -o "$prefix.first" || exit 1
  MALLOC_PERTURB_=171 MALLOC_TOP_PAD_=7340032 "$@" -o "$prefix.second" || exit 1
  cmp "$prefix.first" "$prefix.second" || exit 1
}

shardc=$1 models=$2 recipe=$3 prefix=$4
for model in "$models"/*.shd; do
  phase=
  grep -q '^serve' "$model" && phase=--phase=decode
  case $model in
  */mixtral-8x7b-train.shd | */vit-l16-train.shd) ;;
  *-train.shd | *-128k.shd | *-fsdp.shd | *-hsdp.shd | *-zero2.shd) continue ;;
  esac
  twice "$shardc" "$model" $phase --objective=upper --emit-json
done
for model in attention attention-tp ffn ffn-megatron matmul-cases llama3-8b \
  llama3-8b-lora llama3-8b-zero1 llama3-70b-decode; do
  twice "$shardc" "$models/$model.shd" --emit-json
done
# Its meshes, stages and microbatches are chosen, too.
twice "$shardc" "$recipe" --objective=upper --emit-json
for model in attention-tp llama3-8b-lora llama3-8b-zero1 llama3-70b matmul-cases; do
  twice "$shardc" "$models/$model.shd" --objective=upper --emit-ir
  twice "$shardc" "$models/$model.shd" --objective=upper --emit-plan
done
