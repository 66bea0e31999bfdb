#!/usr/bin/env python3
"""Fits what machines reach to measured rows, by least squares.

A collective of n members that sends w bytes over a chip's link takes
    base + latency * log2(n) + w / bandwidth + ramp * sqrt(w)  seconds,
where w is (n - 1) / n of the full buffer, twice for all_reduce. A matmul of
F FLOPs takes F / (plateau * peak) + overhead seconds. A pass over a model's
weights, which generates a token of one sequence, takes
bytes / (hbm * bandwidth) + layers * (time of a layer) beside its all-reduces.
Every term is at least zero, so that times grow with bytes and FLOPs. One set
of figures serves all operations and group sizes of a machine. Errors are
relative to the measurement; the left-out ones come from fits that never saw
the operation, or the group size, on which they are taken.

Usage: calibrate.py ROWS.json
       calibrate.py ROWS.json --block hardware/a100.shd --chip A100-80GB

The second form prints the `calibration` block of a hardware file
(docs/Language.md#11-describing-a-machine), as fractions of the file's rates.
"""

import argparse
import itertools
import json
import math
import re
import sys


def solve(matrix, right):
    """Solves a small square system by elimination; None where singular."""
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        if abs(rows[pivot][column]) < 1e-12:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for other in range(size):
            if other != column:
                factor = rows[other][column] / rows[column][column]
                rows[other] = [
                    a - factor * b for a, b in zip(rows[other], rows[column])
                ]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit(points):
    """Weights, none negative, with the least squared relative error.

    Each point is (terms, time). The best of all subsets of terms is exact,
    and there are at most 15 of them.
    """
    count = len(points[0][0])
    # Columns of one length keep the system's pivots comparable.
    scale = [
        math.sqrt(sum((terms[i] / time) ** 2 for terms, time in points))
        for i in range(count)
    ]
    table = [
        [terms[i] / time / scale[i] for i in range(count)]
        for terms, time in points
    ]
    best = None
    for size in range(1, count + 1):
        for chosen in itertools.combinations(range(count), size):
            normal = [
                [sum(row[i] * row[j] for row in table) for j in chosen]
                for i in chosen
            ]
            found = solve(normal, [sum(row[i] for row in table) for i in chosen])
            if found is None or min(found) < 0:
                continue
            weights = [0.0] * count
            for i, value in zip(chosen, found):
                weights[i] = value
            loss = sum(
                (sum(w * x for w, x in zip(weights, row)) - 1) ** 2
                for row in table
            )
            if best is None or loss < best[0] - 1e-12:
                best = (loss, weights)
    return [weight / length for weight, length in zip(best[1], scale)]


def meanError(weights, points):
    """Mean absolute relative error in percent."""
    errors = [
        abs(sum(w * x for w, x in zip(weights, terms)) / time - 1)
        for terms, time in points
    ]
    return 100 * sum(errors) / len(errors)


def collectivePoints(rows):
    """Points of nccl-tests' curves: {chip: [(operation, members, point)]}."""
    chips = {}
    for row in rows:
        parts = row["id"].split("-")
        if row["kind"] != "collective" or not row.get("curve"):
            continue
        if parts[0] != "nccl" or not row["hardware"]["count"]:
            continue
        operation, members = parts[-2], row["hardware"]["count"]
        factor = (2 if operation == "all_reduce" else 1) * (members - 1) / members
        for sample in row["curve"]:
            sent = factor * sample["bytes"]
            terms = [1, math.log2(members), sent, math.sqrt(sent)]
            point = (terms, sample["time_us"] * 1e-6)
            chips.setdefault(row["hardware"]["chip"], []).append(
                (operation, members, point)
            )
    return chips


def leftOut(samples, key):
    """Error over all samples, each predicted without its own group."""
    total = 0
    for group in sorted({sample[key] for sample in samples}):
        inside = [s[2] for s in samples if s[key] == group]
        outside = [s[2] for s in samples if s[key] != group]
        if not outside:
            return float("nan")
        total += meanError(fit(outside), inside) * len(inside)
    return total / len(samples)


def reductionMin(rows, chip, perByte):
    """The members from which on an all-reduce comes nearer to one that the
    switches add up, at the fitted bandwidth, than to one that they do not."""
    least = None
    for row in rows:
        busbw = row["measured"].get("busbw_gbps") if row.get("measured") else None
        off = busbw and row["measured"].get("busbw_gbps_nvls_off")
        if not off or row["hardware"]["chip"] != chip or not perByte:
            continue
        members = row["hardware"]["count"]
        sent = 2 * (members - 1) / members
        measured = sent / (busbw * 1e9)
        # Times of a large buffer, for each of its bytes.
        apart, together = sent * perByte, perByte
        isNearer = abs(math.log(together / measured)) < abs(
            math.log(apart / measured)
        )
        if not isNearer:
            least = None
        elif least is None or members < least:
            least = members
    return least


def printNetworks(rows):
    for chip, samples in sorted(collectivePoints(rows).items()):
        points = [sample[2] for sample in samples]
        base, latency, perByte, ramp = fit(points)
        bandwidth = f"{1e-9 / perByte:.0f} GB/s" if perByte else "unbounded"
        print(
            f"network {chip}: base {base * 1e6:.2f} us, latency"
            f" {latency * 1e6:.2f} us, bandwidth {bandwidth}, ramp"
            f" {ramp * 1e9:.3f} ns/sqrt(byte); error"
            f" {meanError(fit(points), points):.1f} %, operation left out"
            f" {leftOut(samples, 0):.1f} %, group size left out"
            f" {leftOut(samples, 1):.1f} % ({len(points)} points)"
        )


def matmulPoints(row):
    """Points of a matmul row's curve: shares of the peak by FLOPs."""
    hardware = row["hardware"]
    peak = (hardware.get("peak_bf16_tflops") or 0) * 1e12
    points = []
    for bucket in row.get("efficiency_by_log10_flops") or []:
        flops = 10 ** bucket["log10_flops"]
        points.append(([1, flops / peak], flops / peak / bucket["p50"]))
    for square in row.get("curve") or []:
        if "mnk" not in square:
            continue
        flops = 2 * square["mnk"] ** 3
        share = square.get("eff_of_1153") or square["efficiency"]
        reached = square["tflops_per_device"] * 1e12
        points.append(([1, flops * share / reached], flops / reached))
    return points


def matmulFits(rows):
    """(chip, overhead, plateau, points, source) of each chip with matmuls."""
    for row in rows:
        if row["kind"] != "gemm":
            continue
        points = matmulPoints(row)
        chip, source = row["hardware"]["chip"], row.get("source", "")
        if points:
            overhead, slowdown = fit(points)
            yield chip, overhead, 1 / slowdown, points, source
        elif row["id"].startswith("gemm-"):
            # One large matmul says nothing of small ones.
            yield chip, None, row["measured"]["efficiency"], [], source


def printMatmuls(rows):
    for chip, overhead, plateau, points, _ in matmulFits(rows):
        if not points:
            print(f"matmul {chip}: plateau {plateau:.3f} (1 matmul)")
            continue
        error = meanError([overhead, 1 / plateau], points)
        print(
            f"matmul {chip}: plateau {plateau:.3f},"
            f" overhead {overhead * 1e6:.2f} us; error"
            f" {error:.1f} % ({len(points)} buckets)"
        )


def allReduceSeconds(weights, members, size):
    if members == 1:
        return 0
    sent = 2 * (members - 1) / members * size
    terms = [1, math.log2(members), sent, math.sqrt(sent)]
    return sum(w * x for w, x in zip(weights, terms))


def passPoints(rows, chip, network):
    """Passes over the weights of generated tokens, of one sequence in one node.

    The passes of the input and of each output token read the weights once; few
    output tokens would make it a measurement of the input.
    """
    points = []
    for row in rows:
        if row["kind"] != "infer" or row["hardware"]["chip"] != chip:
            continue
        how, model = row["inference"], row["model"]
        members, latency = row["parallelism"]["tp"], row["measured"].get(
            "total_latency_ms"
        )
        if how["batch"] != 1 or members > 8 or not latency:
            continue
        if (row["parallelism"]["pp"] or 1) > 1 or how["output_len"] < 20:
            continue
        moves = 2 * model["layers"] * allReduceSeconds(
            network, members, 2 * model["d_model"]
        )
        read = 2 * model["params"] / members
        rate = row["hardware"]["hbm_gbps"] * 1e9
        seconds = latency * 1e-3 / how["output_len"] - moves
        points.append(([read / rate, model["layers"]], seconds))
    return points


def hbmFits(rows):
    """(chip, share of HBM, seconds of a layer, points, source) of each chip."""
    for row in rows:
        if row["id"].startswith("hbm-"):
            share = row["measured"]["efficiency"]
            yield row["hardware"]["chip"], share, None, [], row["source"]
    networks = collectivePoints(rows)
    for chip, samples in sorted(networks.items()):
        network = fit([sample[2] for sample in samples])
        points = passPoints(rows, chip, network)
        if len(points) > 2:
            slowdown, layer = fit(points)
            source = next(
                row["source"]
                for row in rows
                if row["kind"] == "infer" and row["hardware"]["chip"] == chip
            )
            yield chip, 1 / slowdown, layer, points, source


def printHbm(rows):
    for chip, share, layer, points, _ in hbmFits(rows):
        if not points:
            print(f"hbm {chip}: {share:.3f} (1 copy)")
            continue
        error = meanError([1 / share, layer], points)
        print(
            f"hbm {chip}: {share:.3f}, {layer * 1e6:.0f} us a layer; error"
            f" {error:.1f} % ({len(points)} runs)"
        )


# ---- the block of a hardware file

UNITS = {"G": 1e9, "T": 1e12, "P": 1e15}


def rateOf(text, field):
    """A rate of a hardware file, in its base unit."""
    number, prefix = re.search(
        re.escape(field) + r" = ([0-9.]+) ([GTP])", text
    ).groups()
    return float(number) * UNITS[prefix]


def sourceName(source):
    """The first word of a source: its repository."""
    return source.split(" ")[0]


def printBlock(rows, path, chip):
    """The calibration of a machine, as fractions of its file's rates."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    known = [
        row["hardware"]
        for row in rows
        if row["hardware"]["chip"] == chip and row["kind"] != "train"
    ]
    if not known:
        sys.exit(f"calibrate.py: error: no row measures '{chip}'")
    hardware = known[0]
    lines = []

    def add(indent, field, figure, note):
        lines.append((" " * indent + f"{field} = {figure}", note))

    for name, overhead, plateau, points, source in matmulFits(rows):
        if name != chip:
            continue
        peak = hardware["peak_bf16_tflops"] * 1e12
        share = min(1, plateau * peak / rateOf(text, "flops.bf16"))
        what = "matmuls by FLOPs" if points else "a large matmul"
        add(4, "matmul", f"{share:.3f}", f"{what}, {sourceName(source)}")
        if points:
            note = "what matmuls take beside their FLOPs"
            add(4, "overhead", f"{overhead * 1e6:.2f} us", note)
    for name, share, _, points, source in hbmFits(rows):
        if name != chip:
            continue
        reached = share * hardware["hbm_gbps"] * 1e9
        share = min(1, reached / rateOf(text, "hbm.bandwidth"))
        what = "tokens of one sequence" if points else "a copy"
        add(4, "hbm", f"{share:.3f}", f"{what}, {sourceName(source)}")
    samples = collectivePoints(rows).get(chip)
    if samples:
        base, latency, perByte, ramp = fit([sample[2] for sample in samples])
        network, _, body = re.search(
            r"network (\w+) (switch|torus)\[.*?\] {(.*?)}", text, re.DOTALL
        ).groups()
        share = min(1, 1 / perByte / rateOf(body, "bandwidth")) if perByte else 1
        source = next(
            row["source"]
            for row in rows
            if row["kind"] == "collective" and row["hardware"]["chip"] == chip
        )
        lines.append((f"    network {network} {{", None))
        add(6, "base", f"{base * 1e6:.2f} us", f"nccl-tests, {sourceName(source)}")
        add(6, "latency", f"{latency * 1e6:.2f} us", "for each doubling of the group")
        add(6, "bandwidth", f"{share:.3f}", "of what a GPU sends")
        add(6, "ramp", f"{ramp * 1e9:.3f} us", "at 1 MB, growing with its root")
        least = reductionMin(rows, chip, perByte)
        if least:
            add(6, "reduction.min", least, "all-reduces of 8 GiB with NVLS")
        lines.append(("    }", None))
    width = max(len(line) for line, note in lines if note)
    print("  calibration {  // printed by utils/calibrate.py")
    for line, note in lines:
        print(f"{line:{width}}  // {note}" if note else line)
    print("  }")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", help="rows.json with curves")
    parser.add_argument("--block", metavar="FILE.shd", help="a hardware file")
    parser.add_argument("--chip", help="with --block: what rows call the chip")
    options = parser.parse_args()
    if bool(options.block) != bool(options.chip):
        parser.error("--block and --chip stand together")
    with open(options.rows, encoding="utf-8") as file:
        rows = json.load(file)
    rows = rows if isinstance(rows, list) else rows["rows"]
    if options.block:
        printBlock(rows, options.block, options.chip)
        return
    printNetworks(rows)
    printMatmuls(rows)
    printHbm(rows)


if __name__ == "__main__":
    main()
