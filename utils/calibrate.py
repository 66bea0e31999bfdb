#!/usr/bin/env python3
"""Fits networks and matmuls of machines to measured rows, by least squares.

A collective of n members that sends w bytes over a chip's link takes
    base + latency * log2(n) + w / bandwidth + ramp * sqrt(w)  seconds,
where w is (n - 1) / n of the full buffer, twice for all_reduce. A matmul of
F FLOPs takes (F + loss) / (plateau * peak) seconds. Every term is at least
zero, so that times grow with bytes and FLOPs. One set of figures serves all
operations and group sizes of a machine. Errors are relative to the
measurement; the left-out ones come from fits that never saw the operation,
or the group size, on which they are taken.

Usage: calibrate.py ROWS.json
"""

import argparse
import itertools
import json
import math


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


def printMatmuls(rows):
    for row in rows:
        if not row.get("efficiency_by_log10_flops"):
            continue
        peak = row["hardware"]["peak_bf16_tflops"] * 1e12
        points = []
        for bucket in row["efficiency_by_log10_flops"]:
            flops = 10 ** bucket["log10_flops"]
            points.append(([1, flops / peak], flops / peak / bucket["p50"]))
        overhead, slowdown = fit(points)
        print(
            f"matmul {row['hardware']['chip']}: plateau {1 / slowdown:.3f},"
            f" overhead {overhead * 1e6:.2f} us; error"
            f" {meanError([overhead, slowdown], points):.1f} %"
            f" ({len(points)} buckets)"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", help="rows.json with curves")
    with open(parser.parse_args().rows, encoding="utf-8") as file:
        rows = json.load(file)
    rows = rows if isinstance(rows, list) else rows["rows"]
    printNetworks(rows)
    printMatmuls(rows)


if __name__ == "__main__":
    main()
