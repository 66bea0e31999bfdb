#!/usr/bin/env python3
"""Asks shardc for measured rows, at peak rates and calibrated, in tables.

Each row becomes a program on the machine of the catalogue: a collective that
a layout forces, a square matmul of the row's FLOPs, the input pass and the
token passes of a GPT in tensor parallelism, or a training step with the row's
parallelism; of rows of benchmark/device.py the kernel alone, or the decoding
step or prefill on one device. Nothing in a program depends on what was measured.

Usage: measured.py ROWS.json... --shardc build/bin/shardc [--only REGEX]
       measured.py ROWS.json... --shardc build/bin/shardc --fit
       measured.py ROWS.json... --programs FOLDER [--only REGEX]

The second form fits what whole steps say of a chip, from plans at the catalogue's
figures: run it again after changing them. `step` is the share of their FLOPs that
kernels keep: the one that makes the prediction right, all waits as they are, as the
median over sources of the median over their training steps. With it `attention`, the share of the peak that its
kernels reach, where there are steps enough and no kernels. `kernels`, those that a
framework runs for a fusion group, is the number of the least mean error over the runs that `hbm` is fitted to.
The third form writes the programs of steps, ID.shd.
"""

import argparse
import itertools
import json
import math
import os
import re
import subprocess
import sys
from statistics import median

import calibrate

MACHINES = {
    "A100-40GB": "a100_40",
    "A100-80GB": "a100",
    "H100-SXM": "h100",
    "H200-SXM": "h200",
    "H800": "h800_sxm",
    "B200": "b200",
    "B300": "b300",
    "GB200": "gb200_nvl72",
    "GB300": "gb300_nvl72",
    "TPU7x": "tpu_v7x",
    "TPUv4": "tpu_v4p",
    "TPUv5e": "tpu_v5e",
    "TPUv5p": "tpu_v5p",
    "TPUv6e": "tpu_v6e",
}

# By operation of nccl-tests: the program's tensors, of B bf16 elements in V.
COLLECTIVES = {
    "all_gather": "input x: bf16[B@X]\ny[B@X] = relu(x)\noutput y[B@()]\n",
    "reduce_scatter": "dim P = {n}\ninput x: bf16[P@X, B]\n"
    "y[B]{{+X}} = sum[P](x)\noutput y[B@X]\n",
    "all_reduce": "dim P = {n}\ninput x: bf16[P@X, B]\n"
    "y[B]{{+X}} = sum[P](x)\noutput y[B@()]\n",
    "alltoall": "dim P = {n}\ninput x: bf16[P@X, B]\n"
    "y[P@X, B] = relu(x)\noutput y[P@(), B@X]\n",
}

# A chip runs as many square matmuls at once as the row's devices make a chip, and
# nothing else.
MATMUL = """\
hardware {machine} {{ calibration {{ step = 1  kernels = 1 }} }}
dim K = 8
dim N = K, M = {devices} * K
input x: bf16[M, K]
weight W: bf16[K, N]
y[M, N] = x[M, K] * W[K, N]
output y
"""

# Kernels alone on one device, as benchmark/device.py measures them.
ALONE = "hardware {machine}[1] {{ calibration {{ step = 1  kernels = 1 }} }}\n"
PRODUCT = """\
dim M = {m}, N = {n}, K = {k}
input x: bf16[M, K]
weight W: bf16[K, N]
y[M, N] = x[M, K] * W[K, N]
output y
"""
STREAMED = {
    "copy": "dim N = {elements}\ninput x: bf16[N]\ny = relu(x)\noutput y\n",
    "add": "dim N = {elements}\ninput x: bf16[N]\ninput w: bf16[N]\ny = x + w\n"
    "output y\n",
}
# Of a training step, for the backward pass has a kernel of its own.
ATTENTION = """\
dim B = {batch}, T = {queries}, S = {keys}
dim K = {kv_heads}, G = {group}, H = {head_dim}
weight q: bf16[B, T, K, G, H]
weight k: bf16[B, S, K, H]
weight v: bf16[B, S, K, H]
o[B, T, K, G, H] = attention[H, S](q, k, v{causal})
loss[] = sum[B, T, K, G, H](o)
train {{ loss = loss  remat = none  microbatches = 1 }}
"""
# Two layers whose inputs the host keeps, each of so many bytes.
KEPT = """\
dim B = {bytes} / 128, D = 64, F = 64, L = 2
input x0: bf16[B, D]
x[B, D] = x0
repeat L {{
  weight W: bf16[D, F]
  weight U: bf16[F, D]
  h[B, F] = x[B, D] * W[D, F]
  x[B, D] = h[B, F] * U[F, D]
}}
loss[] = sum[B, D](x)
train {{ loss = loss  remat = full  microbatches = 1  offload = activations }}
"""

# A pass over the weights, Megatron's tensor parallelism. With T = 1 the keys
# and values are those of a cache.
PASS = """\
hardware {machine}[{shape}] {fields}
mesh [X={tp}]
dim B = {batch}, T = {queries}, S = {keys}
dim L = {layers}, D = {d_model}, F = {d_ff}, N = {heads}, H = {head_dim}
input x0: bf16[B@(), T, D@()]
x[B@(), T@(), D@()] = x0
repeat L {{
  weight ga: bf16[D@()]
  weight ba: bf16[D@()]
  weight Wq: bf16[D@(), N@X, H]
  weight Wk: bf16[D@(), N@X, H]
  weight Wv: bf16[D@(), N@X, H]
  weight Wo: bf16[N@X, H, D@()]
  a[B@(), T@(), D@()] = layernorm[D](x, ga, ba, eps=1e-5)
  q[B, T, N@X, H] = a[B, T, D] * Wq[D, N, H]
{attention}  x[B@(), T@(), D@()] += o[B, T, N, H] * Wo[N, H, D]
  weight gm: bf16[D@()]
  weight bm: bf16[D@()]
  weight Wu: bf16[D@(), F@X]
  weight Wd: bf16[F@X, D@()]
  m[B@(), T@(), D@()] = layernorm[D](x, gm, bm, eps=1e-5)
  h[B, T, F@X] = gelu(m[B, T, D] * Wu[D, F])
  x[B@(), T@(), D@()] += h[B, T, F] * Wd[F, D]
}}
output x
"""
WITH_INPUT = """\
  k[B, S, N@X, H] = a[B, S, D] * Wk[D, N, H]
  v[B, S, N@X, H] = a[B, S, D] * Wv[D, N, H]
  o[B, T, N@X, H] = attention[H, S](q, k, v, causal=true)
"""
WITH_CACHE = """\
  state kc: bf16[B@(), S, N@X, H]
  state vc: bf16[B@(), S, N@X, H]
  k[B, T, N@X, H] = a[B, T, D] * Wk[D, N, H]
  v[B, T, N@X, H] = a[B, T, D] * Wv[D, N, H]
  o[B, T, N@X, H] = attention[H, S](q, kc, vc)
"""


# A training step of a decoder. {x}: the axes of data parallelism, {fsdp}: those of
# the weights, {t}: of the tokens between blocks, {c}: between layers, {y}: of tensor
# parallelism, {e}: of experts, {b}: of the data beside these.
STEP = """\
dim B = {batch}, T = {seq}, S = T, V = {vocab}, L = {layers}
dim D = {d_model}, F = {d_ff}, K = {groups}, G = {queries}, H = {head_dim}
{dims}input tokens: int32[B@{x}, T]
input labels: int32[B@{x}, T]
weight Wemb: bf16[V@{y}, D@{fsdp}]
{unembedding}weight gout: bf16[D@()]
x[B@{x}, T@{c}, D] = Wemb[tokens[B, T], D]
{dense}repeat L{stages} {{
{attention}{mlp}}}
y[B@{x}, T@{t}, D] = rmsnorm[D](x, gout)
logits[B@{x}, T, V@{y}] = y[B, T, D] * {table}
loss[] = mean[B, T](cross_entropy[V](logits, labels))
"""
HEADS = """\
  weight ga: bf16[D@()]
  weight Wq: bf16[D@{fsdp}, K@{y}, G, H]
  weight Wk: bf16[D@{fsdp}, K@{y}, H]
  weight Wv: bf16[D@{fsdp}, K@{y}, H]
  weight Wo: bf16[K@{y}, G, H, D@{fsdp}]
  a[B@{x}, T@{t}, D] = rmsnorm[D](x, ga)
  q[B@{x}, T, K@{y}, G, H] = a[B, T, D] * Wq[D, K, G, H]
  k[B@{x}, S, K@{y}, H] = a[B, S, D] * Wk[D, K, H]
  v[B@{x}, S, K@{y}, H] = a[B, S, D] * Wv[D, K, H]
{core}  {r}[B@{x}, T@{t}, D] {adds} o[B, T, K, G, H] * Wo[K, G, H, D]
"""
# Attention to latents that all heads share (MLA), of the ranks Q and R.
LATENTS = """\
  weight ga: bf16[D@()]
  weight gq: bf16[Q@()]
  weight gk: bf16[R@()]
  weight Wqa: bf16[D@{fsdp}, Q]
  weight Wqn: bf16[Q@{fsdp}, N@{y}, I]
  weight Wqr: bf16[Q@{fsdp}, N@{y}, J]
  weight Wka: bf16[D@{fsdp}, R]
  weight Wkn: bf16[R@{fsdp}, N@{y}, I]
  weight Wkr: bf16[D@{fsdp}, J]
  weight Wv: bf16[R@{fsdp}, N@{y}, U]
  weight Wo: bf16[N@{y}, U, D@{fsdp}]
  a[B@{x}, T@{t}, D] = rmsnorm[D](x, ga)
  ql[B@{x}, T, Q] = rmsnorm[Q](a[B, T, D] * Wqa[D, Q], gq)
  qn[B@{x}, T, N@{y}, I] = ql[B, T, Q] * Wqn[Q, N, I]
  qr[B@{x}, T, N@{y}, J] = ql[B, T, Q] * Wqr[Q, N, J]
  kl[B@{x}, S, R] = rmsnorm[R](a[B, S, D] * Wka[D, R], gk)
  kn[B@{x}, S, N@{y}, I] = kl[B, S, R] * Wkn[R, N, I]
  kr[B@{x}, S, J] = a[B, S, D] * Wkr[D, J]
  ks[B@{x}, S, N@{y}, J] = kr[B, S, J]
  v[B@{x}, S, N@{y}, U] = kl[B, S, R] * Wv[R, N, U]
  q[B@{x}, T, N@{y}, H] = concat[(I, J) -> H](qn, qr)
  k[B@{x}, S, N@{y}, H] = concat[(I, J) -> H](kn, ks)
  o[B@{x}, T, N@{y}, U] = attention[H, S](q, k, v, causal=true)
  {r}[B@{x}, T@{t}, D] {adds} o[B, T, N, U] * Wo[N, U, D]
"""
MLP = """\
  weight gm: bf16[D@()]
  m[B@{x}, T@{t}, D] = rmsnorm[D]({r}, gm)
  weight Wu: bf16[D@{fsdp}, F@{y}]
  weight Wd: bf16[F@{y}, D@{fsdp}]
{inner}  x[B@{x}, T@{c}, D] {closes} h[B, T, F] * Wd[F, D]
"""
# A token goes to {topk} of E experts, which hold C of a sequence's tokens.
EXPERTS = """\
  weight gm: bf16[D@()]
  m[B@{x}, T@{t}, D] = rmsnorm[D]({r}, gm)
  weight Wr: bf16[D@(), E@()]
  weight Wu: bf16[E@{e}, D@{fsdp}, M]
  weight Wg: bf16[E@{e}, D@{fsdp}, M]
  weight Wd: bf16[E@{e}, M, D@{fsdp}]
  s: f32[B@{x}, T@{t}, E] = softmax[E](f32(m[B, T, D] * Wr[D, E]))
  p[B@{x}, T@{t}, E] = topk[E](s, k={topk})
  w[B@{x}, T@{t}, E] = where(p, s, 0.0)
  xe[E, B, C, D] = dispatch[E, C](m, p, k={topk}{dropless})
  h[E@{e}, B@{b}, C, M] = silu(xe[E, B, C, D] * Wg[E, D, M]) * (xe[E, B, C, D] * Wu[E, D, M])
  ye[E, B, C, D] = h[E, B, C, M] * Wd[E, M, D]
{shared}  x[B@{x}, T@{c}, D] {closes} combine[E, C](ye, p, bf16(w / sum[E](w)), k={topk}{dropless})
"""
# The expert of all tokens.
SHARED = """\
  weight Wus: bf16[D@{fsdp}, A]
  weight Wgs: bf16[D@{fsdp}, A]
  weight Wds: bf16[A, D@{fsdp}]
  hs[B@{x}, T, A] = silu(m[B, T, D] * Wgs[D, A]) * (m[B, T, D] * Wus[D, A])
  x[B@{x}, T@{t}, D] += hs[B, T, A] * Wds[A, D]
"""
FUSED = "  o[B@{x}, T, K@{y}, G, H] = attention[H, S](q, k, v, causal=true)\n"
# Products of matrices with the scores in HBM between them, all positions.
UNFUSED = """\
  s[B@{x}, K@{y}, G, T, S] = q[B, T, K, G, H] * k[B, S, K, H]
  p[B@{x}, K@{y}, G, T, S] = softmax[S](s)
  o[B@{x}, T, K@{y}, G, H] = p[B, K, G, T, S] * v[B, S, K, H]
"""
GATED = """\
  weight Wg: bf16[D@{fsdp}, F@{y}]
  h[B@{x}, T, F@{y}] = silu(m[B, T, D] * Wg[D, F]) * (m[B, T, D] * Wu[D, F])
"""
PLAIN = "  h[B@{x}, T, F@{y}] = gelu(m[B, T, D] * Wu[D, F])\n"
# The sums of the residual, which have one name, or two where the first is kept.
SUMS = {"r": "x", "adds": "+=", "closes": "+="}
NAMED_SUMS = {"r": "r", "adds": "= x[B, T, D] +", "closes": "= r[B, T, D] +"}
NAMED_PLAIN = """\
  u[B@{x}, T, F@{y}] = m[B, T, D] * Wu[D, F]
  h[B@{x}, T, F@{y}] = gelu(u[B, T, F])
"""

# A token of each sequence over a cache, and the prompts that fill one, of a gated
# decoder on one device. {n}: the axes of a token, {when}: its position.
CACHED = """\
hardware {machine}[1]
dim B = {batch}, T = {length}, S = {length}, V = {vocab}, L = {layers}
dim D = {d_model}, F = {d_ff}, K = {kv_heads}, G = {queries}, H = {head_dim}
input tokens: int32[{n}]
input pos: int32[{n}]
weight Wemb: bf16[V, D]
{unembedding}weight gout: bf16[D]
x[{n}, D] = Wemb[tokens[{n}], D]
repeat L {{
  state kc: bf16[B, S, K, H]
  state vc: bf16[B, S, K, H]
  weight ga: bf16[D]
  weight Wq: bf16[D, K, G, H]
  weight Wk: bf16[D, K, H]
  weight Wv: bf16[D, K, H]
  weight Wo: bf16[K, G, H, D]
  a[{n}, D] = rmsnorm[D](x, ga)
  q[{n}, K, G, H] = rope[H](a[{n}, D] * Wq[D, K, G, H], at=pos[{n}])
  kc[B, pos[{n}], K, H] = rope[H](a[{n}, D] * Wk[D, K, H], at=pos[{n}])
  vc[B, pos[{n}], K, H] = a[{n}, D] * Wv[D, K, H]
  o[{n}, K, G, H] = attention[H, S](q, kc, vc, causal=true, at=pos[{n}])
  x[{n}, D] += o[{n}, K, G, H] * Wo[K, G, H, D]
  weight gm: bf16[D]
  weight Wg: bf16[D, F]
  weight Wu: bf16[D, F]
  weight Wd: bf16[F, D]
  m[{n}, D] = rmsnorm[D](x, gm)
  h[{n}, F] = silu(m[{n}, D] * Wg[D, F]) * (m[{n}, D] * Wu[D, F])
  x[{n}, D] += h[{n}, F] * Wd[F, D]
}}
{last}y[B, D] = rmsnorm[D]({end}, gout)
logits[B, V] = y[B, D] * {table}
next[B] = argmax[V](logits)
output next
"""

REMAT = {
    "none": "none",
    "auto": "auto",
    "full": "full",
    "full (2023-11 script); minimal_offloaded in 2024-05 script": "full",
    "full layer": "full",
    "full recompute": "full",
}

# MaxText's policies that name what is kept: on the device, and in the host's memory.
# `minimal` keeps the products of weights (checkpoint_dots_with_no_batch_dims), `out`
# is the product with Wo. The one recipe that a row refers to is that of
# AI-Hypercomputer/tpu-recipes, training/ironwood/llama3.1-70b/8k-bf16-tpu7x-4x8x8.
KEPT_VALUES = {
    "minimal": (("x", "r", "q", "k", "v", "u"), ()),
    "qkv_proj_offloaded": (("x",), ("q", "k", "v")),
    "custom: offload layer inputs,q,k,v": ((), ("x", "q", "k", "v")),
    "custom: offload layer inputs,q,k,v; bf16 weights": ((), ("x", "q", "k", "v")),
    "custom: offload layer inputs,q,k,v,out": ((), ("x", "q", "k", "v", "r")),
    "custom (see recipe)": (("x", "o", "q", "k", "v"), ()),
}

# Sources before fused attention kernels, by the beginnings of their rows.
BEFORE_FUSION = ("korth22-", "megatron21-", "mtnlg-", "bloom-")

# Types of rows whose gradients have two bytes: fp16, in which Megatron and DeepSpeed
# add up and send them, and PURE of Composer, with everything in bf16.
TWO_BYTE_GRADIENTS = "fp16|PURE"

# Models whose layers differ in their attention, which rows do not say.
OF_UNEQUAL_LAYERS = ("gpt-oss",)

# Sources of MaxText, whose batch of a device is a share of all chips', and which do
# not accumulate gradients.
IN_ONE_BATCH = ("maxtext-", "tpu7x-")

# Days from which on the source says of `bloom` not to compare with rows before: the
# GPUs' PCI Express and NUMA were set up better, and gradients added up in f32.
BLOOM_CHANGES = ("02-25", "02-28")

# Slices of TPUs by chips, for machines of two and of three dimensions. Those of
# three are made of cubes of 4x4x4 chips, so that 192 are 4x4x12; the others are of
# the tables of cloud.google.com/tpu/docs/v5p.
SLICES = {
    2: {8: "2, 4", 32: "4, 8", 64: "8, 8", 128: "8, 16", 256: "16, 16"},
    3: {
        64: "4, 4, 4",
        128: "4, 4, 8",
        192: "4, 4, 12",
        256: "4, 8, 8",
        512: "8, 8, 8",
        1024: "8, 8, 16",
        2048: "8, 16, 16",
    },
}
DIMENSIONS = {"tpu_v4p": 3, "tpu_v5e": 2, "tpu_v6e": 2, "tpu_v5p": 3, "tpu_v7x": 3}
# Machines of the catalogue that have no network between slices.
ALONE_IN_SLICES = ("tpu_v4p",)


class Refused(Exception):
    """A program that shardc refuses."""


class Asker:
    """Runs shardc on programs."""

    def __init__(self, shardc):
        self.shardc = shardc

    def ask(self, program, calibrated, options=()):
        command = [self.shardc, "-", "--emit-json", *options]
        if calibrated:
            command.append("--calibrated")
        answer = subprocess.run(
            command, input=program, capture_output=True, text=True, check=False
        )
        if not answer.stdout:
            raise Refused(f"{answer.stderr}{program}")
        return json.loads(answer.stdout)

    def sweep(self, program, values, calibrated, options=()):
        """Reports of the program at values of one dim."""
        name, numbers = values
        texts = ", ".join(str(number) for number in numbers)
        answer = self.ask(
            program, calibrated, ["--sweep", f"{name} in {texts}", *options]
        )
        return [point["report"] for point in answer["points"]]

    def askStep(self, row, program):
        """The report of a training row, by the fastest microbatches that fit
        where the row does not state them."""
        try:
            return self.askMicrobatches(row, program, [])
        except Refused as refusal:
            if "--allow-padding" not in str(refusal):
                raise
        # An axis does not divide what it is on.
        return self.askMicrobatches(row, program, ["--allow-padding"])

    def askMicrobatches(self, row, program, options):
        if "microbatches" in program:
            return self.ask(program, True, options)
        reports = self.sweep(
            program, ("microbatches", openMicrobatches(row)), True, options
        )
        fitting = [r for r in reports if r["memory"]["fits"]]
        return min(
            fitting or reports, key=lambda report: report["time"]["scheduled_s"]
        )


def collectiveRatios(asker, row, calibrated):
    """Predicted over measured time, by size."""
    operation, members = row["id"].split("-")[-2], row["hardware"]["count"]
    machine = MACHINES[row["hardware"]["chip"]]
    # Every fourth size: from 512 B to the largest.
    samples = row["curve"][::4]
    program = f"hardware {machine}[{members}]\nmesh [X={members}]\n"
    program += "dim B = 8\n" + COLLECTIVES[operation].format(n=members)
    sizes = [sample["bytes"] // 2 for sample in samples]
    reports = asker.sweep(program, ("B", sizes), calibrated, ["--opt=none"])
    for report, sample in zip(reports, samples):
        predicted = sum(op["time_s"] for op in report["ops"] if "axes" in op)
        yield predicted / (sample["time_us"] * 1e-6)


def matmulRatios(asker, row, calibrated):
    if row.get("curve"):
        samples = [
            (square["mnk"], square["tflops_per_device"] * 1e12)
            for square in row["curve"]
        ]
        devices = 2
    else:
        peak = row["hardware"]["peak_bf16_tflops"] * 1e12
        samples = [
            (
                round((10 ** bucket["log10_flops"] / 2) ** (1 / 3)),
                bucket["p50"] * peak,
            )
            for bucket in row["efficiency_by_log10_flops"]
        ]
        devices = 1
    program = MATMUL.format(
        machine=MACHINES[row["hardware"]["chip"]], devices=devices
    )
    sizes = [size for size, _ in samples]
    reports = asker.sweep(program, ("K", sizes), calibrated)
    for report, (size, rate) in zip(reports, samples):
        measured = 2 * size**3 / rate
        yield report["time"]["scheduled_s"] / measured


def wholeTimes(report):
    """Seconds of a program's step at peak rates, and calibrated."""
    roofline = report["calibration"]["roofline"]["scheduled_s"]
    return roofline, report["time"]["scheduled_s"]


def kindTimes(report, kind):
    """The same of its one operation of a kind."""
    op = next(op for op in report["ops"] if op["kind"] == kind)
    return max(op["compute_s"], op["hbm_s"]), op["time_s"]


def matmulClass(point):
    if point.get("transposed"):
        return "gradients of weights"
    if point["m"] == point["n"] == point["k"]:
        return "squares"
    return "1 to 64 tokens" if point["m"] <= 64 else "128 tokens and more"


def kernelTimes(asker, row):
    """(class, times at peak rates and calibrated, measured time) of each kernel of
    a row of benchmark/device.py."""
    start = ALONE.format(machine=MACHINES[row["hardware"]["chip"]])

    def ask(program):
        return asker.ask(start + program, True)

    for point in row["curve"]:
        if row["kind"] == "matmul":
            name = "sustained" if "sustained" in row["id"] else matmulClass(point)
            times = wholeTimes(ask(PRODUCT.format(**point)))
            yield f"matmul, {name}", times, point["time_us"]
        elif row["kind"] == "hbm":
            size = "64 MiB and more" if point["bytes"] >= 2**26 - 2**12 else "less"
            program = STREAMED[point["operation"]].format(**point)
            name = f"{point['operation']}, {size}"
            yield name, wholeTimes(ask(program)), point["time_us"]
        elif row["kind"] == "attention":
            report = ask(
                ATTENTION.format(
                    group=point["heads"] // point["kv_heads"],
                    causal=", causal=true" if point["causal"] else "",
                    **{key: point[key] for key in point if key != "causal"},
                )
            )
            kernel = f"attention, {point['kernel']}"
            if point["queries"] == 1:
                kernel = "attention over a cache"
            times = kindTimes(report, "attention")
            yield kernel, times, point["forward_us"]
            if "backward_us" in point:
                times = kindTimes(report, "attention_grad")
                yield f"{kernel}, backward", times, point["backward_us"]
        elif row["kind"] == "link" and point["direction"] != "both":
            kind = "to_host" if point["direction"] == "out" else "from_host"
            report = ask(KEPT.format(**point))
            op = next(op for op in report["ops"] if op["kind"] == kind)
            size = "16 MiB and more" if point["bytes"] >= 2**24 else "less"
            yield f"{kind}, {size}", [op["time_s"]] * 2, point["time_us"]


def printKernels(asker, rows):
    """The table of kernels alone; prints nothing where no row has any."""
    groups = {}
    for row in rows:
        if row["kind"] not in ("matmul", "hbm", "attention", "link"):
            continue
        for name, times, measured in kernelTimes(asker, row):
            ratios = [time / measured * 1e6 for time in times]
            groups.setdefault(name, []).append(ratios)
    if groups:
        print("| kernels | points | at peak rates | error | calibrated | error |")
        print("|---|---|---|---|---|---|")
    for name, ratios in groups.items():
        printLine(name, *zip(*ratios))


def passProgram(row, queries, keys):
    model, chips = row["model"], row["parallelism"]["tp"]
    machine = MACHINES[row["hardware"]["chip"]]
    shape, fields = clusterOf(machine, {**row["hardware"], "count": chips})
    return PASS.format(
        machine=machine,
        shape=shape,
        fields=f"{{ {fields} }}" if fields else "",
        tp=chips,
        batch=row["inference"]["batch"],
        queries=queries,
        keys=keys,
        attention=WITH_INPUT if queries == keys else WITH_CACHE,
        layers=model["layers"] // stagesOf(row),
        **{key: model[key] for key in ("d_model", "d_ff", "heads", "head_dim")},
    )


def stagesOf(row):
    return row["parallelism"].get("pp") or 1


def passReports(asker, row, calibrated):
    """(times, report) of the input's pass, and of those for each token but the
    first, at the mean length of the cache. One sequence passes the stages of a
    pipeline one after another."""
    how, stages = row["inference"], stagesOf(row)
    given, made = how["input_len"], how["output_len"]
    for times, queries, keys in (
        (1, given, given),
        (made - 1, 1, given + made // 2),
    ):
        # The kernels run in the order in which the program has them.
        program = passProgram(row, queries, keys)
        yield times * stages, asker.ask(program, calibrated, ["--opt=none"])


def inferenceSeconds(asker, row, calibrated):
    return sum(
        times * report["time"]["scheduled_s"]
        for times, report in passReports(asker, row, calibrated)
    )


def nodeRate(topology):
    """GB/s that leave a node, where a row states its links in Gb/s; else None."""
    links = re.search(r"(?:(\d+)x\D{0,8})?(\d+) ?Gb/s", topology or "")
    return links and int(links[1] or 1) * int(links[2]) / 8


def hasFlag(row, flag):
    """Whether a row's notes state a flag of Megatron."""
    return f"--{flag}" in (row.get("notes") or "")


def slicesOf(hardware):
    """How many slices a row's chips are, which its topology begins with."""
    count = re.match(r"(\d+)( x v| slice)", hardware.get("topology") or "")
    return int(count[1]) if count else 1


def clusterOf(machine, hardware):
    """The shape of a machine of a row's chips, and the fields of the catalogue's
    that it takes to have it; None where the catalogue has no such slice."""
    chips, topology = hardware["count"], hardware.get("topology") or ""
    if machine in DIMENSIONS:
        slices = slicesOf(hardware)
        shape = SLICES[DIMENSIONS[machine]].get(chips // slices)
        if slices > 1:
            shape = shape and machine not in ALONE_IN_SLICES and f"{slices}, {shape}"
        return shape and (shape, "")
    size = 72 if "nvl72" in machine else 8
    if chips <= size:
        return str(chips), ""
    if chips % size:
        # Of a node of 72 jobs take 64.
        size = 64
    nodes = chips // size
    if nodes * size != chips:
        return None
    if not machine.startswith(("h100", "h800")):
        shape, above = f"{nodes}, {size}", "infiniband"
    else:
        leaves = next(
            n for n in range(1, nodes + 1) if nodes % n == 0 and nodes <= 32 * n
        )
        shape, above = f"{leaves}, {nodes // leaves}, {size}", "leaf"
    fields = f"shape.max = [{shape}]  "
    rate = nodeRate(topology)
    if rate:
        fields += f"network {above} {{ bandwidth = {rate:g} GB/s }}  "
    return shape, fields


def degrees(row):
    """Sizes of the axes: replicas of what is sharded, shards, stages, context,
    tensor; None if the row does not state them."""
    how, chips = row["parallelism"], row["hardware"]["count"]
    sizes = [how.get(key) or 1 for key in ("dp", "fsdp", "pp", "cp", "tp")]
    if sizes[1] > 1 and sizes[0] == sizes[1] and math.prod(sizes) != chips:
        sizes[0] = 1
    if sizes[1] == 1:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    experts = how.get("ep") or 1
    if 1 < experts < sizes[1] and sizes[0] == 1 and sizes[1] % experts == 0:
        # Experts are in parts on the inner axis.
        sizes[0], sizes[1] = sizes[1] // experts, experts
    if hasFlag(row, "overlap-param-gather"):
        # The distributed optimizer, which splits a buffer of all state. A program
        # splits dimensions, and so over the largest power of two of the chips.
        split = sizes[1] & -sizes[1]
        sizes[0], sizes[1] = sizes[1] // split, split
    if math.prod(sizes) == 2 * chips and sizes[1] % 2 == 0:
        # Shards of half a chip: two of them are a chip.
        sizes[1] //= 2
    return sizes if math.prod(sizes) == chips else None


def placed(axes):
    return axes[0] if len(axes) == 1 else "(" + ", ".join(axes) + ")"


def openMicrobatches(row):
    """Numbers of microbatches of 1, 2, 4 and 8 sequences on a device."""
    replicas, shards, _, _, _ = degrees(row)
    share = row["global_batch"]["sequences"] // (replicas * shards)
    return [share // size for size in (8, 4, 2, 1) if share % size == 0]


def trainFields(row, replicas, stages):
    """The fields of a row's `train` block; what it does not state is open."""
    how = row["parallelism"]
    fields = {}
    if row.get("optimizer") == "bf16" or "bf16 weights" in (how.get("remat") or ""):
        fields["gradients"] = "bf16"
        fields["optimizer"] = "adamw(moments=bf16, master=none)"
    elif re.search(TWO_BYTE_GRADIENTS, row["dtype"]):
        fields["gradients"] = "bf16"
    if how.get("remat") in REMAT:
        fields["remat"] = REMAT[how["remat"]]
    if how.get("num_microbatches"):
        fields["microbatches"] = int(how["num_microbatches"])
    elif row["id"].startswith(IN_ONE_BATCH):
        fields["microbatches"] = 1
    elif how.get("microbatch"):
        batch = row["global_batch"]["sequences"]
        fields["microbatches"] = batch // (replicas * int(how["microbatch"]))
    if stages > 1 and "microbatches" in fields:
        chunks = how.get("vpp") or 1
        fields["schedule"] = f"interleaved({chunks})" if chunks > 1 else "1f1b"
    return keptText(row) + "".join(f"  {n} = {value}" for n, value in fields.items())


def pinnedState(row, program, axes):
    """Where ZeRO-0 and ZeRO-1 have the state of the program's matrices: gradients
    are whole, and summed over the axes of the data once a step; with ZeRO-1, moments
    and master copies are in parts on these axes."""
    stage = row["parallelism"].get("zero")
    if stage not in (0, 1) or not axes or "C" in axes:
        # Not with sequences in parts: those of 131,072 tokens would not fit.
        return ""
    text = ""
    for name, places in re.findall(r"weight (W\w+): bf16\[(.*)\]", program):
        # Experts are in parts on an axis of the data, and have no copies there.
        others = [axis for axis in axes if f"@{axis}," not in places]
        if not others:
            continue
        partial = ", ".join(f"+{axis}" for axis in others)
        parts = places.replace("@()", f"@{placed(others)}", 1) if stage else places
        text += f"  gradient {name}[{places}]{{{partial}}}"
        text += f"  moments {name}[{parts}]  master {name}[{parts}]"
    return text


def keptText(row):
    """What the `train` block says of the values that a row keeps by their names."""
    saved, offloaded = KEPT_VALUES.get(row["parallelism"].get("remat"), ((), ()))
    text = "".join(f"  save {name}" for name in saved)
    if offloaded:
        text += f"  offload {', '.join(offloaded)}" + "  remat = full" * (not saved)
    return text


def isSayable(row):
    """Whether a program can say a row: a decoder on a machine of the catalogue whose
    layers are equal but for the first ones, recomputed as the language can."""
    how = row.get("parallelism") or {}
    return (
        row["kind"] == "train"
        and row["hardware"]["chip"] in MACHINES
        and not row["model"]["name"].startswith(OF_UNEQUAL_LAYERS)
        and (not how.get("remat") or how["remat"] in {**REMAT, **KEPT_VALUES})
        and re.search("bf16|fp16|fp8", row["dtype"].lower())
        and degrees(row)
        and hasTime(row)
    )


def isInEightBits(row):
    return "fp8" in (row.get("dtype") or "").lower()


def hasExperts(row):
    return row["kind"] == "train" and bool(row["model"].get("experts"))


def placesOf(row):
    """The axes of a row's tensors, by their fields in programs of steps."""
    how = row["parallelism"]
    replicas, shards, stages, context, tensor = degrees(row)
    isSharded = how.get("zero") == 3 or (how.get("fsdp") or 1) > 1
    tokens = ["C"] * (context > 1) + ["Y"] * (bool(how.get("sp")) and tensor > 1)
    # Each device of a stage sends its part of what all of them have (Narayanan et al.
    # 2021, section 4.1; DeepSpeed's pipelines do, too).
    hasParts = (how.get("ep") or 1) > 1
    isCut = stages > 1 and tensor > 1 and row["id"].startswith(BEFORE_FUSION)
    return {
        "x": placed(["R"] * (replicas > 1) + ["X"] * (shards > 1)),
        "y": placed(["Y"] * (tensor > 1)),
        "fsdp": placed(["X"] * (isSharded and shards > 1)),
        "t": placed(tokens),
        "c": placed(["Y"]) if isCut else placed(tokens),
        "e": placed(["X"] * hasParts),
        "b": placed(["R"] * (replicas > 1) + ["X"] * (shards > 1 and not hasParts)),
    }


def expertsText(row, fields):
    """A layer's experts, and their dims."""
    model = row["model"]
    capacity = re.search(r"capacity_factor ([\d.]+)", row.get("notes") or "")
    slots = model["topk"] * row["seq_len"] / model["experts"]
    slots = math.ceil(slots * float(capacity[1] if capacity else 1))
    dims = f"dim E = {model['experts']}, C = {slots}, M = {model['moe_ff']}\n"
    shared = model.get("shared_ff")
    if shared:
        dims += f"dim A = {shared}\n"
    text = EXPERTS.format(
        topk=model["topk"],
        dropless="" if capacity else ", dropless=true",
        shared=SHARED.format(**fields) if shared else "",
        **fields,
    )
    return text, dims


def attentionText(row, fields):
    """A layer's attention, and its dims."""
    latents = row["model"].get("mla")
    if not latents:
        isFused = not row["id"].startswith(BEFORE_FUSION)
        core = (FUSED if isFused else UNFUSED).format(**fields)
        return HEADS.format(core=core, **fields), ""
    return (
        LATENTS.format(**fields),
        "dim N = {heads}, Q = {q_lora}, R = {kv_lora}, I = {nope}, J = {rope},"
        " U = {v}\n".format(heads=row["model"]["heads"], **latents),
    )


def layersText(row, places):
    """The fields of a step's program that its layers fill in: attention, MLP or
    experts, the dense layers before those with experts, and dims."""
    model = row["model"]
    isNamed = row["parallelism"].get("remat") in KEPT_VALUES
    fields = {**places, **(NAMED_SUMS if isNamed else SUMS)}
    attention, dims = attentionText(row, fields)
    inner = GATED if model["gated"] else NAMED_PLAIN if isNamed else PLAIN
    mlp = MLP.format(inner=inner.format(**fields), **fields)
    dense = ""
    if model.get("experts"):
        first = model.get("dense_layers")
        if first:
            dims += f"dim L1 = {first}\n"
            # Names of weights are those of the state that is pinned.
            layer = re.sub(r"\bW(?=[a-z])", "W1", attention + mlp)
            dense = f"repeat L1 {{\n{layer}}}\n"
        mlp, more = expertsText(row, fields)
        dims += more
    return {"attention": attention, "mlp": mlp, "dense": dense, "dims": dims}


def inEightBits(program):
    """The program with its layers' products of weights in eight bits, and so those
    of the backward pass: gradients pass the casts of results. What several products
    read is cast once."""
    product = r"(\w+)(\[[^\]]*\]) \* (W1?[a-qs-z]\w?\[[^\]]*\])"
    start, *parts = re.split(r"(?=^repeat |^y\[)", program, flags=re.M)
    for part in parts:
        cast = set()
        for line in part.splitlines(keepends=True):
            if part.startswith("repeat"):
                for name, _, _ in re.findall(product, line):
                    if name not in cast:
                        start += f"  {name}8 = f8e4m3({name})\n"
                    cast.add(name)
                line = re.sub(product, r"bf16(\g<1>8\2 * f8e4m3(\3))", line)
            start += line
    return start


def stepProgram(row):
    """The program of a training row; None if no program can say it."""
    if not isSayable(row):
        return None
    model = row["model"]
    chip, sizes = row["hardware"]["chip"], degrees(row)
    cluster = clusterOf(MACHINES[chip], row["hardware"])
    if not cluster:
        return None
    replicas, shards, stages, context, tensor = sizes
    shape, fields = cluster
    if hasFlag(row, "tp-comm-overlap"):
        fields += "overlap.collective_matmul = true"
    # Megatron and DeepSpeed give neighbouring chips to tensor parallelism, then to
    # experts and data; stages are farthest apart.
    ofAxes = {"pp": stages, "R": replicas, "X": shards, "C": context, "Y": tensor}
    axes = [f"{name}={size}" for name, size in ofAxes.items() if size > 1]
    if slicesOf(row["hardware"]) == replicas > 1:
        axes = [axis + " on slice" * axis.startswith("R") for axis in axes]
    groups = model["kv_heads"] or model["heads"]
    places = placesOf(row)
    body = STEP.format(
        batch=row["global_batch"]["sequences"],
        seq=row["seq_len"],
        # Megatron pads it.
        vocab=-(-model["vocab"] // tensor) * tensor,
        layers=model["layers"] - (model.get("dense_layers") or 0),
        d_model=model["d_model"],
        d_ff=model.get("d_ff") or model["moe_ff"],
        groups=groups,
        queries=model["heads"] // groups,
        head_dim=model["head_dim"] or model["d_model"] // model["heads"],
        unembedding=""
        if model["tied"]
        else "weight Wout: bf16[D@{fsdp}, V@{y}]\n".format(**places),
        table="Wemb[V, D]" if model["tied"] else "Wout[D, V]",
        stages="@pp" if stages > 1 else "",
        **layersText(row, places),
        **places,
    )
    if isInEightBits(row):
        body = inEightBits(body)
    sums = [n for n, size in zip("RXC", (replicas, shards, context)) if size > 1]
    choices = trainFields(row, replicas * shards, stages)
    choices += pinnedState(row, body, sums)
    return (
        f"hardware {MACHINES[chip]}[{shape}]"
        + (f" {{ {fields} }}\n" if fields else "\n")
        + (f"mesh [{', '.join(axes)}]\n" if axes else "")
        + body
        + f"train {{ loss = loss{choices} }}\n"
    )


def hasTime(row):
    measured = row["measured"]
    return any(
        measured.get(key) for key in ("step_time_s", "tflops_per_chip", "mfu")
    )


def cachedProgram(row):
    """The program of a decoding step or a prefill on one device."""
    model, isDecode = row["model"], row["kind"] == "decode"
    return CACHED.format(
        machine=MACHINES[row["hardware"]["chip"]],
        **row["inference"],
        **model,
        queries=model["heads"] // model["kv_heads"],
        n="B" if isDecode else "B, T",
        last="" if isDecode else "last[B, D] = x[B, T - 1, D]\n",
        end="x" if isDecode else "last",
        unembedding="" if model["tied"] else "weight Wout: bf16[D, V]\n",
        table="Wemb[V, D]" if model["tied"] else "Wout[D, V]",
    )


def gptFlops(row, passes):
    """A GPT's FLOPs in a step as Megatron counts them, of so many passes over its
    layers, the backward pass being two, and with one of the two embeddings
    (Narayanan et al. 2021, equation 3)."""
    model, seq = row["model"], row["seq_len"]
    width = model["d_model"]
    layers = model["layers"] * width * (width + seq / 6)
    tokens = row["global_batch"]["sequences"] * seq
    return tokens * (24 * passes * layers + 6 * model["vocab"] * width)


def stepSeconds(row):
    """A row's measured step. Where only the rate is published: of the FLOPs that
    the source counts, those of a GPT as Megatron has them, with all recomputed or
    nothing, or 6 for each parameter and token and those of full attention."""
    measured, model = row["measured"], row["model"]
    if measured.get("step_time_s"):
        return measured["step_time_s"]
    counting = row.get("flop_counting") or ""
    if "HARDWARE" in counting:
        flops = gptFlops(row, passes=4)
    elif counting.startswith("Megatron model FLOPs"):
        flops = gptFlops(row, passes=3)
    else:
        tokens = row["global_batch"]["sequences"] * row["seq_len"]
        attention = 12 * model["layers"] * model["d_model"] * row["seq_len"]
        flops = tokens * (6 * model["params"] + attention)
    if measured.get("tflops_per_chip"):
        rate = measured["tflops_per_chip"] * 1e12
    else:
        rate = measured["mfu"] * row["hardware"]["peak_bf16_tflops"] * 1e12
    return flops / (rate * row["hardware"]["count"])


def askedSteps(rows):
    """Training rows that a program can say, and their programs."""
    for row in rows:
        program = stepProgram(row)
        if program:
            yield row, program


def printSteps(asker, rows):
    """The table of steps; (row, measured, predicted time) of each."""
    asked = list(askedSteps(rows))
    if not asked:
        return []
    print()
    print("| training | measured | at peak rates | calibrated | memory |")
    print("|---|---|---|---|---|")
    chips, times = {}, []
    for row, program in asked:
        report = asker.askStep(row, program)
        seconds = stepSeconds(row)
        predicted = report["time"]["scheduled_s"]
        times.append((row, seconds, predicted))
        raw = report["calibration"]["roofline"]["scheduled_s"] / seconds
        near = predicted / seconds
        source = f"{sourceOf(row)}, {row['hardware']['chip']}"
        chips.setdefault(source, []).append((raw, near))
        held = row["measured"].get("mem_gib_per_device")
        memory = f"{report['memory']['peak'] / 2**30 / held:.2f}" if held else ""
        print(
            f"| {row['id']} | {seconds:.3g} s | {raw:.2f} | {near:.2f} | {memory} |"
        )
    for source, ratios in chips.items():
        raws, nears = zip(*ratios)
        print(
            f"| {source}: median, error | | {median(raws):.2f},"
            f" {meanError(raws):.0f} % | {median(nears):.2f},"
            f" {meanError(nears):.0f} % | |"
        )
    return times


def printCached(asker, rows):
    """The table of decoding steps and prefills on one device."""
    rows = [row for row in rows if row["kind"] in ("decode", "prefill")]
    if not rows:
        return
    print()
    print("| inference step | measured | at peak rates | calibrated | memory |")
    print("|---|---|---|---|---|")
    groups = {}
    for row in rows:
        report = asker.ask(cachedProgram(row), True, ["--opt=none"])
        measured = row["measured"]["step_time_s"]
        raw, near = [time / measured for time in wholeTimes(report)]
        memory = report["memory"]["peak"] / 2**30
        memory /= row["measured"]["mem_gib_per_device"]
        ratios = groups.setdefault(f"{sourceOf(row)}, {row['kind']}", [])
        ratios.append((raw, near, memory))
        print(
            f"| {row['id']} | {1e3 * measured:.3g} ms | {raw:.2f} | {near:.2f} |"
            f" {memory:.2f} |"
        )
    for name, ratios in groups.items():
        cells = [
            f"{median(column):.2f}, {meanError(column):.0f} %"
            for column in zip(*ratios)
        ]
        print(f"| {name}: median, error | | {' | '.join(cells)} |")


def writePrograms(rows, folder):
    """The programs of decoding steps, prefills and training steps, as files."""
    for row in rows:
        if row["kind"] in ("decode", "prefill"):
            program = cachedProgram(row)
        elif row["kind"] == "train":
            program = stepProgram(row)
        else:
            continue
        if program:
            path = os.path.join(folder, row["id"] + ".shd")
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)


def benchmarkDay(row):
    """The day of a row whose notes state it, since what ran before and behind a
    change of the machine or the software is not equal work."""
    day = re.search(r"benchmark date (\d\d-\d\d)", row.get("notes") or "")
    return day and sum(day[1] >= change for change in BLOOM_CHANGES)


def workOf(row):
    """Rows of one source, model and input are measurements of equal work; those
    of training on equal machines."""
    how = row.get("inference") or row["global_batch"]
    count = row["hardware"]["count"] if row["kind"] == "train" else None
    facts = [row["model"], row.get("seq_len"), how, row["hardware"]["chip"], count]
    facts.append(benchmarkDay(row))
    return sourceOf(row), row["kind"], json.dumps(facts, sort_keys=True)


# Measured times less apart than this are taken for equal.
LEAST_DISTANCE = 1.05


def printGroups(times):
    """How well times order the layouts of equal work. Regret: how much longer the
    layout that is predicted the fastest takes than the fastest one."""
    groups = {}
    for row, measured, predicted in times:
        groups.setdefault(workOf(row), []).append((measured, predicted))
    sources = {}
    for (source, kind, _), members in groups.items():
        if len(members) > 1:
            sources.setdefault((source, kind), []).append(members)
    if not sources:
        return
    print()
    print("| equal work | groups | pairs | right | tau | worst spread | regret |")
    print("|---|---|---|---|---|---|---|")
    for (source, kind), found in sources.items():
        pairs = [
            (one[0] - other[0]) * (one[1] - other[1])
            for members in found
            for one, other in itertools.combinations(members, 2)
            if max(one[0], other[0]) > LEAST_DISTANCE * min(one[0], other[0])
        ]
        right = sum(product > 0 for product in pairs)
        wrong = sum(product < 0 for product in pairs)
        ratios = [[p / m for m, p in members] for members in found]
        spread = max(max(group) / min(group) for group in ratios)
        regrets = [
            min(members, key=lambda member: member[1])[0]
            / min(measured for measured, _ in members)
            - 1
            for members in found
        ]
        share = f"{100 * right / len(pairs):.0f} %" if pairs else ""
        tau = f"{(right - wrong) / len(pairs):.2f}" if pairs else ""
        print(
            f"| {source}, {kind} | {len(found)} | {len(pairs)} | {share} | {tau}"
            f" | {spread:.2f} | {100 * sum(regrets) / len(regrets):.1f} %,"
            f" at most {100 * max(regrets):.1f} % |"
        )


def sourceOf(row):
    """The publication of a row: the beginning of its id."""
    parts = re.split(r"[-_]", row["id"])
    return "-".join(parts[:2]) if parts[0] == "infer" else parts[0]


class Terms:
    """A measured time, and the terms of its prediction."""

    def __init__(self, measured, reports):
        """`reports`: (times, calibrated report) of what was measured."""
        self.measured = measured
        # Times, whether it is attention, seconds of FLOPs at the peak of matmuls
        # in a step, of HBM and of one kernel, of each operation.
        self.operations = []
        # For collectives, and what these cost the kernels beside them.
        self.waits = 0
        for times, report in reports:
            figures = {
                figure["name"]: figure["value"] or 1
                for figure in report["calibration"]["figures"]
            }
            self.step = figures.get("step", 1)
            self.kernels = figures.get("kernels", 1)
            self.matmul = figures.get("matmul", 1)
            self.attention = figures.get("attention", self.matmul)
            self.waits += times * report["time"]["scheduled_s"]
            for op in report["ops"]:
                if "calibrated" in op and "overhead_s" in op["calibrated"]:
                    terms = op["calibrated"]
                    isAttention = op["kind"] in ("attention", "attention_grad")
                    reached = self.attention if isAttention else self.matmul
                    self.operations.append(
                        (
                            times * op["count"],
                            isAttention,
                            terms["compute_s"] * self.step * reached,
                            terms["hbm_s"],
                            terms["overhead_s"] / self.kernels,
                        )
                    )
        self.waits -= self.seconds(self.step, self.kernels, self.attention)

    def seconds(self, step, kernels, attention):
        """Of all operations."""
        return sum(
            times
            * (
                max(flops / (attention if isAttention else self.matmul) / step, hbm)
                + kernels * overhead
            )
            for times, isAttention, flops, hbm, overhead in self.operations
        )

    def ratio(self, step=None, kernels=None, attention=None):
        """Predicted over measured, by default at the report's figures."""
        seconds = self.seconds(
            step or self.step, kernels or self.kernels, attention or self.attention
        )
        return (seconds + self.waits) / self.measured

    def rightStep(self, attention=None):
        """The `step` that makes the prediction right, of 0.01 to 100."""
        low, high = math.log(0.01), math.log(100)
        for _ in range(50):
            middle = (low + high) / 2
            if self.ratio(step=math.exp(middle), attention=attention) > 1:
                low = middle
            else:
                high = middle
        return math.exp(low)

    def rightKernels(self):
        """The `kernels` that make the prediction right, and how much of the
        measured time one more takes."""
        least = self.ratio(kernels=1)
        slope = self.ratio(kernels=2) - least
        return 1 + (1 - least) / slope, slope


def leastError(values):
    """The value of the least mean error, of (right value, slope of the error):
    their weighted median."""
    ordered = sorted(values)
    below, half = 0, sum(weight for _, weight in ordered) / 2
    for value, weight in ordered:
        below += weight
        if below >= half:
            return value


def printFit(asker, rows):
    printKernelsFit(asker, rows)
    printStepFit(asker, rows)


def printKernelsFit(asker, rows):
    """`kernels` of each chip that has runs of one sequence, their error, and that
    of all other runs of inference."""
    chips = {}
    for row in rows:
        if isSayableInference(row):
            latency = row["measured"]["total_latency_ms"] * 1e-3
            terms = Terms(latency, passReports(asker, row, True))
            fitted, other = chips.setdefault(row["hardware"]["chip"], ([], []))
            (fitted if calibrate.isOfPasses(row) else other).append(terms)
    for chip, (fitted, other) in sorted(chips.items()):
        if not fitted:
            continue
        kernels = max(1, leastError([terms.rightKernels() for terms in fitted]))
        error, left = [
            meanError([terms.ratio(kernels=kernels) for terms in group] or [1])
            for group in (fitted, other)
        ]
        print(
            f"kernels {chip}: {kernels:.2f}; error {error:.1f} % ({len(fitted)} runs)"
            + (f", of others {left:.1f} % ({len(other)} runs)" if other else "")
        )


# Steps that it takes to fit one figure.
STEPS_OF_FIGURE = 12
# Shares of `attention` that are tried; no more than that of matmuls.
ATTENTION_SHARES = [round(0.05 * part, 2) for part in range(4, 17)]


def rightStep(found, attention):
    """The median over sources of the median `step` that makes their steps right."""
    sources = {}
    for name, terms in found:
        right = terms.rightStep(attention=attention)
        sources.setdefault(name, []).append(right)
    return min(1, median([median(steps) for steps in sources.values()]))


def fitSteps(found, hasKernels):
    """`step`, and where there are steps enough and no kernels `attention`: those of
    the least mean error, each with its right `step`. `found`: (source, terms)."""
    terms = [each for _, each in found]
    most = terms[0].matmul
    shares = [share for share in ATTENTION_SHARES if share < most] + [most]
    if hasKernels or len(terms) < 2 * STEPS_OF_FIGURE:
        shares = [terms[0].attention]
    fits = []
    for attention in shares:
        step = rightStep(found, attention)
        ratios = [each.ratio(step=step, attention=attention) for each in terms]
        fits.append((meanError(ratios), {"step": step, "attention": attention}))
    return min(fits, key=lambda fit: fit[0])


def printStepFit(asker, rows):
    """What `fitSteps` says of each chip, and the error of its steps, each source's
    with the figures of the others."""
    chips = {}
    dense = [row for row in rows if not hasExperts(row)]
    # Eight bits say the `step` of chips of which nothing is known in sixteen.
    inSixteen = {
        row["hardware"]["chip"] for row in dense if not isInEightBits(row)
    }
    dense = [
        row
        for row in dense
        if not isInEightBits(row) or row["hardware"]["chip"] not in inSixteen
    ]
    for row, program in askedSteps(dense):
        terms = Terms(stepSeconds(row), [(1, asker.askStep(row, program))])
        chips.setdefault(row["hardware"]["chip"], []).append((sourceOf(row), terms))
    for chip, found in sorted(chips.items()):
        hasKernels = any(calibrate.attentionRates(rows, chip))
        error, figures = fitSteps(found, hasKernels)
        sources = sorted({name for name, _ in found})
        left = []
        for source in sources:
            others = [(name, terms) for name, terms in found if name != source]
            if others:
                _, ofOthers = fitSteps(others, hasKernels)
                own = [t.ratio(**ofOthers) for name, t in found if name == source]
                left.append(f"{source} {meanError(own):.1f} %")
        print(
            f"step {chip}: {figures['step']:.3f}"
            + (
                f", attention {figures['attention']:.3f}"
                if not hasKernels and len(found) >= 2 * STEPS_OF_FIGURE
                else ""
            )
            + f"; error {error:.1f} %"
            + (f", left out: {', '.join(left)}" if left else "")
            + f" ({len(found)} steps of {', '.join(sources)})"
        )


def meanError(ratios):
    return 100 * sum(abs(ratio - 1) for ratio in ratios) / len(ratios)


def printLine(name, raw, calibrated):
    cells = [name, str(len(raw))]
    for ratios in (raw, calibrated):
        cells += [f"{median(ratios):.2f}", f"{meanError(ratios):.0f} %"]
    print("| " + " | ".join(cells) + " |")


def printTables(asker, rows):
    groups = {}
    for row in rows:
        if row["hardware"]["chip"] not in MACHINES:
            continue
        if row["kind"] == "collective" and row.get("curve"):
            name = f"{row['id'].split('-')[-2]}, {row['hardware']['chip']}"
            groups.setdefault(name, []).append((row, collectiveRatios))
        elif row["kind"] == "gemm" and calibrate.matmulPoints(row):
            name = f"matmul, {row['hardware']['chip']}"
            groups.setdefault(name, []).append((row, matmulRatios))
    if groups:
        print("| rows | points | at peak rates | error | calibrated | error |")
        print("|---|---|---|---|---|---|")
    for name, members in groups.items():
        both = [
            [
                ratio
                for row, ratios in members
                for ratio in ratios(asker, row, calibrated)
            ]
            for calibrated in (False, True)
        ]
        printLine(name, *both)
    rows = [row for row in rows if isSayableInference(row)]
    if rows:
        print()
        print("| inference | measured | at peak rates | calibrated |")
        print("|---|---|---|---|")
    raws, nears, times = [], [], []
    for row in rows:
        measured = row["measured"]["total_latency_ms"] * 1e-3
        predicted = inferenceSeconds(asker, row, True)
        times.append((row, measured, predicted))
        raws.append(inferenceSeconds(asker, row, False) / measured)
        nears.append(predicted / measured)
        print(
            f"| {row['id']} | {1e3 * measured:g} ms | {raws[-1]:.2f} |"
            f" {nears[-1]:.2f} |"
        )
    if raws:
        print(
            f"| all: median, error | | {median(raws):.2f}, {meanError(raws):.0f} %"
            f" | {median(nears):.2f}, {meanError(nears):.0f} % |"
        )
    return times


def isSayableInference(row):
    """A run of a GPT in tensor parallelism whose latency is stated, of one sequence
    if there are stages: it is not said how more would be cut into microbatches."""
    return (
        row["kind"] == "infer"
        and row["hardware"]["chip"] in MACHINES
        and row["measured"].get("total_latency_ms")
        and row["parallelism"].get("tp")
        and row["inference"].get("batch")
        and (stagesOf(row) == 1 or row["inference"]["batch"] == 1)
        and not row["model"].get("gated")
        and clusterOf(
            MACHINES[row["hardware"]["chip"]],
            {**row["hardware"], "count": row["parallelism"]["tp"]},
        )
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", nargs="+", help="files of rows")
    parser.add_argument("--shardc", default="shardc", help="the compiler")
    parser.add_argument("--only", metavar="REGEX", help="rows whose id it matches")
    parser.add_argument("--fit", action="store_true", help="fits `step`")
    parser.add_argument("--programs", metavar="FOLDER", help="writes programs of steps")
    options = parser.parse_args()
    rows = [
        row
        for path in options.rows
        for row in calibrate.readRows(path)
        if re.search(options.only or "", row["id"])
    ]
    if options.programs:
        writePrograms(rows, options.programs)
        return
    asker = Asker(options.shardc)
    try:
        if options.fit:
            printFit(asker, rows)
            return
        printGroups(printTables(asker, rows))
        printKernels(asker, rows)
        printCached(asker, rows)
        printGroups(printSteps(asker, rows))
    except Refused as error:
        sys.exit(f"measured.py: error: {error}")


if __name__ == "__main__":
    main()
