#!/usr/bin/env python3
"""Asks shardc for measured rows, at peak rates and calibrated, in tables.

Each row becomes a program on the machine of the catalogue: a collective that
a layout forces, a square matmul of the row's FLOPs, the input pass and the
token passes of a GPT in tensor parallelism, or a training step with the row's
parallelism. Nothing in a program depends on what was measured.

Usage: measured.py ROWS.json --shardc build/bin/shardc [--only REGEX]
       measured.py ROWS.json --shardc build/bin/shardc --fit

The second form fits `step`, the share of their speed that kernels keep in whole
steps: the median over a chip's training steps of (device time without `step`) /
(measured time - exposed collectives and bubbles).
"""

import argparse
import json
import math
import re
import subprocess
import sys

import calibrate

MACHINES = {
    "A100-80GB": "a100",
    "H100-SXM": "h100",
    "H200-SXM": "h200",
    "B200": "b200",
    "TPU7x": "tpu_v7x",
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
hardware {machine} {{ calibration {{ step = 1 }} }}
dim K = 8
dim N = K, M = {devices} * K
input x: bf16[M, K]
weight W: bf16[K, N]
y[M, N] = x[M, K] * W[K, N]
output y
"""

# A pass over the weights, Megatron's tensor parallelism. With T = 1 the keys
# and values are those of a cache.
PASS = """\
hardware {machine}[{tp}]
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
# the weights, {t}: of the tokens between blocks, {y}: of tensor parallelism.
STEP = """\
dim B = {batch}, T = {seq}, S = T, V = {vocab}, L = {layers}
dim D = {d_model}, F = {d_ff}, K = {groups}, G = {queries}, H = {head_dim}
input tokens: int32[B@{x}, T]
input labels: int32[B@{x}, T]
weight Wemb: bf16[V@{y}, D@{fsdp}]
{unembedding}weight gout: bf16[D@()]
x[B@{x}, T@{t}, D] = Wemb[tokens[B, T], D]
repeat L{stages} {{
  weight ga: bf16[D@()]
  weight Wq: bf16[D@{fsdp}, K@{y}, G, H]
  weight Wk: bf16[D@{fsdp}, K@{y}, H]
  weight Wv: bf16[D@{fsdp}, K@{y}, H]
  weight Wo: bf16[K@{y}, G, H, D@{fsdp}]
  a[B@{x}, T@{t}, D] = rmsnorm[D](x, ga)
  q[B@{x}, T, K@{y}, G, H] = a[B, T, D] * Wq[D, K, G, H]
  k[B@{x}, S, K@{y}, H] = a[B, S, D] * Wk[D, K, H]
  v[B@{x}, S, K@{y}, H] = a[B, S, D] * Wv[D, K, H]
  o[B@{x}, T, K@{y}, G, H] = attention[H, S](q, k, v, causal=true)
  x[B@{x}, T@{t}, D] += o[B, T, K, G, H] * Wo[K, G, H, D]
  weight gm: bf16[D@()]
  m[B@{x}, T@{t}, D] = rmsnorm[D](x, gm)
  weight Wu: bf16[D@{fsdp}, F@{y}]
  weight Wd: bf16[F@{y}, D@{fsdp}]
{mlp}  x[B@{x}, T@{t}, D] += h[B, T, F] * Wd[F, D]
}}
y[B@{x}, T@{t}, D] = rmsnorm[D](x, gout)
logits[B@{x}, T, V@{y}] = y[B, T, D] * {table}
loss[] = mean[B, T](cross_entropy[V](logits, labels))
train {{ loss = loss  remat = {remat}  microbatches = {microbatches}{schedule} }}
"""
GATED = """\
  weight Wg: bf16[D@{fsdp}, F@{y}]
  h[B@{x}, T, F@{y}] = silu(m[B, T, D] * Wg[D, F]) * (m[B, T, D] * Wu[D, F])
"""
PLAIN = "  h[B@{x}, T, F@{y}] = gelu(m[B, T, D] * Wu[D, F])\n"

REMAT = {
    "none": "none",
    "minimal": "none",
    "full": "full",
    "full layer": "full",
    "full recompute": "full",
}

# Sources before fused attention kernels, by the beginnings of their rows.
UNFUSED = ("korth22-", "megatron21-", "mtnlg-", "bloom-")

# Slices of TPUs by chips, for machines of two and of three dimensions.
SLICES = {
    2: {8: "2, 4", 32: "4, 8", 64: "8, 8", 128: "8, 16", 256: "16, 16"},
    3: {64: "4, 4, 4", 128: "4, 4, 8", 256: "4, 8, 8", 512: "8, 8, 8"},
}
DIMENSIONS = {"tpu_v5e": 2, "tpu_v6e": 2, "tpu_v5p": 3, "tpu_v7x": 3}


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
            sys.exit(f"measured.py: error: {answer.stderr}{program}")
        return json.loads(answer.stdout)

    def sweep(self, program, values, calibrated, options=()):
        """Reports of the program at values of one dim."""
        name, numbers = values
        texts = ", ".join(str(number) for number in numbers)
        answer = self.ask(
            program, calibrated, ["--sweep", f"{name} in {texts}", *options]
        )
        return [point["report"] for point in answer["points"]]


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


def passSeconds(asker, row, queries, keys, calibrated):
    model = row["model"]
    program = PASS.format(
        machine=MACHINES[row["hardware"]["chip"]],
        tp=row["parallelism"]["tp"],
        batch=row["inference"]["batch"],
        queries=queries,
        keys=keys,
        attention=WITH_INPUT if queries == keys else WITH_CACHE,
        **{
            key: model[key]
            for key in ("layers", "d_model", "d_ff", "heads", "head_dim")
        },
    )
    return asker.ask(program, calibrated)["time"]["scheduled_s"]


def inferenceRatio(asker, row, calibrated):
    """The input's pass, and one for each token but the first, at the mean
    length of the cache."""
    how = row["inference"]
    length = how["input_len"] + how["output_len"] // 2
    seconds = passSeconds(
        asker, row, how["input_len"], how["input_len"], calibrated
    )
    tokens = how["output_len"] - 1
    seconds += tokens * passSeconds(asker, row, 1, length, calibrated)
    return seconds / (row["measured"]["total_latency_ms"] * 1e-3)


def clusterOf(machine, chips):
    """The shape of a machine of so many chips, and what it takes of the
    catalogue's to have it; None where the catalogue has no such slice."""
    if machine in DIMENSIONS:
        shape = SLICES[DIMENSIONS[machine]].get(chips)
        return shape and (shape, "")
    if chips <= 8:
        return str(chips), ""
    nodes = chips // 8
    if machine == "a100":
        return f"{nodes}, 8", f"shape.max = [{nodes}, 8]  "
    leaves = next(
        n for n in range(1, nodes + 1) if nodes % n == 0 and nodes <= 32 * n
    )
    shape = f"{leaves}, {nodes // leaves}, 8"
    return shape, f"shape.max = [{shape}]  "


def degrees(row):
    """Sizes of the axes: replicas of what is sharded, shards, stages, context,
    tensor; None if the row does not state them."""
    how = row["parallelism"]
    sizes = [how.get(key) or 1 for key in ("dp", "fsdp", "pp", "cp", "tp")]
    if sizes[1] > 1 and sizes[0] == sizes[1]:
        sizes[0] = 1
    if sizes[1] == 1:
        sizes[0], sizes[1] = sizes[1], sizes[0]
    return sizes if math.prod(sizes) == row["hardware"]["count"] else None


def placed(axes):
    return axes[0] if len(axes) == 1 else "(" + ", ".join(axes) + ")"


def stepProgram(row, step):
    """The program of a training row; None if the row leaves open what decides
    its time, or is not one of what a program can say. `step`: the calibration's
    share, None: the catalogue's."""
    if row["kind"] != "train":
        return None
    model, how = row["model"], row["parallelism"]
    chip, sizes = row["hardware"]["chip"], degrees(row)
    isKnown = (
        not row["id"].startswith(UNFUSED)
        and chip in MACHINES
        and sizes
        and not model.get("experts")
        and how.get("microbatch")
        and how.get("remat") in REMAT
        and "bf16" in row["dtype"]
    )
    cluster = isKnown and clusterOf(MACHINES[chip], row["hardware"]["count"])
    if not cluster:
        return None
    replicas, shards, stages, context, tensor = sizes
    shape, fields = cluster
    if step:
        fields += f"calibration {{ step = {step} }}"
    names = ("R", "X", "pp", "C", "Y")
    axes = [f"{n}={size}" for n, size in zip(names, sizes) if size > 1]
    batch = row["global_batch"]["sequences"]
    microbatches = how.get("num_microbatches") or batch // (
        replicas * shards * int(how["microbatch"])
    )
    isSharded = how.get("zero") == 3 or (how.get("fsdp") or 1) > 1
    tokens = ["C"] * (context > 1) + ["Y"] * (bool(how.get("sp")) and tensor > 1)
    chunks = how.get("vpp") or 1
    order = f"interleaved({chunks})" if chunks > 1 else "1f1b"
    groups = model["kv_heads"] or model["heads"]
    places = {
        "x": placed(["R"] * (replicas > 1) + ["X"] * (shards > 1)),
        "y": placed(["Y"] * (tensor > 1)),
        "fsdp": placed(["X"] * (isSharded and shards > 1)),
        "t": placed(tokens),
    }
    return (
        f"hardware {MACHINES[chip]}[{shape}]"
        + (f" {{ {fields} }}\n" if fields else "\n")
        + f"mesh [{', '.join(axes)}]\n"
        + STEP.format(
            batch=batch,
            seq=row["seq_len"],
            # Megatron pads it.
            vocab=-(-model["vocab"] // tensor) * tensor,
            layers=model["layers"],
            d_model=model["d_model"],
            d_ff=model["d_ff"],
            groups=groups,
            queries=model["heads"] // groups,
            head_dim=model["head_dim"] or model["d_model"] // model["heads"],
            unembedding=""
            if model["tied"]
            else "weight Wout: bf16[D@{fsdp}, V@{y}]\n".format(**places),
            table="Wemb[V, D]" if model["tied"] else "Wout[D, V]",
            stages="@pp" if stages > 1 else "",
            mlp=(GATED if model["gated"] else PLAIN).format(**places),
            remat=REMAT[how["remat"]],
            microbatches=int(microbatches),
            schedule=f"  schedule = {order}" if stages > 1 else "",
            **places,
        )
    )


def stepSeconds(row):
    """A row's measured step. Where only the rate is published: of 6 FLOPs for
    each parameter and token and those of full attention."""
    measured, model = row["measured"], row["model"]
    if measured.get("step_time_s"):
        return measured["step_time_s"]
    tokens = row["global_batch"]["sequences"] * row["seq_len"]
    attention = 12 * model["layers"] * model["d_model"] * row["seq_len"]
    flops = tokens * (6 * model["params"] + attention)
    rate = measured["tflops_per_chip"] * 1e12 * row["hardware"]["count"]
    return flops / rate


def askedSteps(rows, step=None):
    """Training rows that a program can say, and their programs."""
    for row in rows:
        program = stepProgram(row, step)
        if program:
            yield row, program


def printSteps(asker, rows):
    asked = list(askedSteps(rows))
    if not asked:
        return
    print()
    print("| training | measured | at peak rates | calibrated | memory |")
    print("|---|---|---|---|---|")
    chips = {}
    for row, program in asked:
        report = asker.ask(program, True)
        seconds = stepSeconds(row)
        raw = report["calibration"]["roofline"]["scheduled_s"] / seconds
        near = report["time"]["scheduled_s"] / seconds
        chips.setdefault(row["hardware"]["chip"], []).append((raw, near))
        held = row["measured"].get("mem_gib_per_device")
        memory = f"{report['memory']['peak'] / 2**30 / held:.2f}" if held else ""
        print(
            f"| {row['id']} | {seconds:.3g} s | {raw:.2f} | {near:.2f} | {memory} |"
        )
    for chip, ratios in chips.items():
        raws, nears = zip(*ratios)
        print(
            f"| {chip}: median, error | | {median(raws):.2f}, {meanError(raws):.0f} %"
            f" | {median(nears):.2f}, {meanError(nears):.0f} % | |"
        )


def printFit(asker, rows):
    """`step` of each chip, and the error of its steps, each source's with the
    median of the others."""
    chips = {}
    for row, program in askedSteps(rows, step=1):
        time = asker.ask(program, True)["time"]
        waits = time["scheduled_s"] - time["device_s"]
        share = time["device_s"] / (stepSeconds(row) - waits)
        source = re.split(r"[-_]", row["id"])[0]
        if share > 0:
            chips.setdefault(row["hardware"]["chip"], []).append((source, share))
    for chip, shares in sorted(chips.items()):
        every = [share for _, share in shares]
        step = min(1, median(every))
        left = []
        for source, share in shares:
            others = [other for name, other in shares if name != source]
            if others:
                left.append(share / min(1, median(others)))
        print(
            f"step {chip}: {step:.3f}; error"
            f" {meanError([share / step for share in every]):.1f} %"
            + (f", source left out {meanError(left):.1f} %" if left else "")
            + f" ({len(every)} steps of {', '.join(sorted({n for n, _ in shares}))})"
        )


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def meanError(ratios):
    return 100 * sum(abs(ratio - 1) for ratio in ratios) / len(ratios)


def printLine(name, raw, calibrated):
    cells = [name, str(len(raw))]
    for ratios in (raw, calibrated):
        cells += [f"{median(ratios):.2f}", f"{meanError(ratios):.0f} %"]
    print("| " + " | ".join(cells) + " |")


def printTables(asker, rows):
    print("| rows | points | at peak rates | error | calibrated | error |")
    print("|---|---|---|---|---|---|")
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
    print()
    print("| inference | measured | at peak rates | calibrated |")
    print("|---|---|---|---|")
    raws, nears = [], []
    for row in rows:
        if row["kind"] != "infer":
            continue
        raw = inferenceRatio(asker, row, False)
        near = inferenceRatio(asker, row, True)
        raws.append(raw)
        nears.append(near)
        latency = row["measured"]["total_latency_ms"]
        print(f"| {row['id']} | {latency} ms | {raw:.2f} | {near:.2f} |")
    if raws:
        print(
            f"| all: median, error | | {median(raws):.2f}, {meanError(raws):.0f} %"
            f" | {median(nears):.2f}, {meanError(nears):.0f} % |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", help="rows.json")
    parser.add_argument("--shardc", default="shardc", help="the compiler")
    parser.add_argument("--only", metavar="REGEX", help="rows whose id it matches")
    parser.add_argument("--fit", action="store_true", help="fits `step`")
    options = parser.parse_args()
    with open(options.rows, encoding="utf-8") as file:
        rows = json.load(file)
    rows = [row for row in rows if re.search(options.only or "", row["id"])]
    asker = Asker(options.shardc)
    if options.fit:
        printFit(asker, rows)
        return
    printTables(asker, rows)
    printSteps(asker, rows)


if __name__ == "__main__":
    main()
