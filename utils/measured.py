#!/usr/bin/env python3
"""Asks shardc for measured rows, at peak rates and calibrated, in tables.

Each row becomes a program on the machine of the catalogue: a collective that
a layout forces, a square matmul of the row's FLOPs, or the input pass and the
token passes of a GPT in tensor parallelism. Nothing in a program depends on
what was measured.

Usage: measured.py ROWS.json --shardc build/bin/shardc
"""

import argparse
import json
import subprocess
import sys

import calibrate

MACHINES = {
    "A100-80GB": "a100",
    "H100-SXM": "h100",
    "H200-SXM": "h200",
    "B200": "b200",
    "TPU7x": "tpu_v7x",
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

# A chip runs as many square matmuls at once as the row's devices make a chip.
MATMUL = """\
hardware {machine}
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
    options = parser.parse_args()
    with open(options.rows, encoding="utf-8") as file:
        rows = json.load(file)
    printTables(Asker(options.shardc), rows)


if __name__ == "__main__":
    main()
