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

Usage: calibrate.py ROWS.json...
       calibrate.py ROWS.json... --block hardware/a100.shd --chip A100-80GB
       calibrate.py --block my_gpu.shd --nccl all_reduce.txt all_gather.txt
                    --matmul matmul.csv [--whole]

The second form prints the `calibration` block of a hardware file
(docs/Language.md#11-describing-a-machine), as fractions of the file's rates. Of rows
of benchmark/device.py it takes the medians of kernels of attention, of large sums and
of matmuls beside copies.
The third one fits measurements of your own: what nccl-tests print, and a table
of matmuls with the columns m, n, k and one of time_us, time_ms and tflops. With
--whole it prints the hardware file with the block in it.
"""

import argparse
import itertools
import json
import math
import os
import re
import statistics
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


def isOfPasses(row):
    """Whether a row is a run of passes over the weights, of one sequence in one
    node.

    The passes of the input and of each output token read the weights once; few
    output tokens would make it a measurement of the input.
    """
    if row["kind"] != "infer" or not row["measured"].get("total_latency_ms"):
        return False
    how, spread = row["inference"], row["parallelism"]
    return (
        how["batch"] == 1
        and how["output_len"] >= 20
        and spread["tp"] <= 8
        and (spread["pp"] or 1) == 1
    )


def passPoints(rows, chip, network):
    """Runs of passes: (bytes that a pass reads, layers), its time but moves."""
    points = []
    for row in rows:
        if row["hardware"]["chip"] != chip or not isOfPasses(row):
            continue
        how, model = row["inference"], row["model"]
        members = row["parallelism"]["tp"]
        latency = row["measured"]["total_latency_ms"]
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


# ---- kernels that benchmark/device.py measures

# Shorter attention does not fill a GPU, and less than this is in its caches.
LEAST_QUERIES, LEAST_BYTES = 2048, 2**26 - 2**12
# Products of the backward pass over those of the forward pass.
BACKWARD = 2.5


def attentionRates(rows, chip):
    """FLOP/s of each kernel of attention over its own tokens, in both passes."""
    for row in rows:
        if row["kind"] != "attention" or row["hardware"]["chip"] != chip:
            continue
        for point in row["curve"]:
            if min(point["queries"], point["keys"]) < LEAST_QUERIES:
                continue
            pairs = point["batch"] * point["heads"] * point["queries"] * point["keys"]
            flops = 4 * pairs * point["head_dim"] / (2 if point["causal"] else 1)
            yield flops / (point["forward_us"] * 1e-6)
            if "backward_us" in point:
                yield BACKWARD * flops / (point["backward_us"] * 1e-6)


def sumRates(rows, chip):
    """Bytes/s of sums of two large arrays."""
    for row in rows:
        if row["kind"] == "hbm" and row["hardware"]["chip"] == chip:
            for point in row["curve"]:
                if point["operation"] == "add" and point["bytes"] >= LEAST_BYTES:
                    yield point["bytes"] / (point["time_us"] * 1e-6)


def sharesBeside(rows, chip):
    """The share of a copy's time that costs a matmul beside it nothing: in the time
    t that takes t' beside the copy, the work of t' - t is lost. NCCL gives a
    collective on NVLink 16 to 24 processors of a GPU."""
    for row in rows:
        if row["kind"] == "beside" and row["hardware"]["chip"] == chip:
            for point in row["curve"]:
                isMatmul = point["kernel"].startswith("matmul")
                if isMatmul and point["beside"] in ("copy by 16", "copy by 24"):
                    yield min(1, point["alone_us"] / point["time_us"])


def kernelFits(rows, text, chip):
    """(figure, share, what it is the median of) of kernels that are measured."""
    for figure, shares, what, field in (
        ("attention", attentionRates, "kernels of attention", "flops.bf16"),
        ("hbm", sumRates, "large sums", "hbm.bandwidth"),
        ("overlap", sharesBeside, "matmuls beside copies", None),
    ):
        reached = list(shares(rows, chip))
        if reached:
            share = statistics.median(reached) / (rateOf(text, field) if field else 1)
            yield figure, min(1, share), f"{len(reached)} {what}"


# ---- measurements of one's own, as rows

OWN = "own measurements"


def fail(message):
    sys.exit(f"calibrate.py: error: {message}")


def readText(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}")


def readRows(path):
    """The rows of a file, a list or an object that holds one."""
    rows = json.loads(readText(path))
    return rows if isinstance(rows, list) else rows["rows"]


def ncclRow(path, chip):
    """The row of a file that a program of nccl-tests printed: out of place."""
    text = readText(path)
    named = re.search(r"(all_reduce|all_gather|reduce_scatter|alltoall)_perf", text)
    named = named or re.search(
        r"(all_reduce|all_gather|reduce_scatter|alltoall)", os.path.basename(path)
    )
    if not named:
        fail(f"neither '{path}' nor its name says which collective it measures")
    members = len(re.findall(r"^# *Rank +\d+", text, re.MULTILINE))
    if members < 2:
        fail(f"'{path}' lists {members} ranks, expected 2 or more")
    curve = []
    for line in text.splitlines():
        # size, count, type, redop, root, time
        cells = line.split()
        if len(cells) > 7 and cells[0].isdigit() and cells[1].isdigit():
            size, microseconds = int(cells[0]), float(cells[5])
            if size > 0 and microseconds > 0:
                curve.append({"bytes": size, "time_us": microseconds})
    if not curve:
        fail(f"'{path}' has no line of size, count, type, redop, root and time")
    return {
        "id": f"nccl-{chip}-{named[1]}-{members}",
        "kind": "collective",
        "source": OWN,
        "hardware": {"chip": chip, "count": members},
        "measured": {},
        "curve": curve,
    }


def matmulRow(path, chip, peak):
    """The row of a table of matmuls: shares of the peak, by FLOPs."""
    lines = [
        re.split(r"[,;\s]+", line.strip())
        for line in readText(path).splitlines()
        if line.strip() and not line.startswith("#")
    ]
    names = [name.lower() for name in lines[0]] if lines else []
    unit = next((n for n in ("time_us", "time_ms", "tflops") if n in names), None)
    if not unit or not {"m", "n", "k"} <= set(names):
        fail(
            f"the first line of '{path}' names the columns: expected m, n, k and"
            f" one of time_us, time_ms and tflops, found '{' '.join(names)}'"
        )
    points = []
    for number, cells in enumerate(lines[1:], 2):
        try:
            row = {name: float(cell) for name, cell in zip(names, cells)}
            flops = 2 * row["m"] * row["n"] * row["k"]
            value = row[unit]
            if value <= 0 or flops <= 0:
                raise ValueError
        except (KeyError, ValueError):
            fail(f"row {number} of '{path}' has no {unit} above 0: {cells}")
        scale = {"time_us": 1e-6, "time_ms": 1e-3}.get(unit)
        rate = flops / (value * scale) if scale else value * 1e12
        points.append({"log10_flops": math.log10(flops), "p50": rate / peak})
    return {
        "id": f"gemm-{chip}",
        "kind": "gemm",
        "source": OWN,
        "hardware": {"chip": chip, "peak_bf16_tflops": peak / 1e12},
        "measured": {},
        "efficiency_by_log10_flops": points,
    }


# ---- the block of a hardware file

UNITS = {"G": 1e9, "T": 1e12, "P": 1e15}


def rateOf(text, field):
    """A rate of a hardware file, in its base unit."""
    found = re.search(re.escape(field) + r" = ([0-9.]+) ([GTP])", text)
    if not found:
        fail(f"the hardware file states no '{field}' in G, T or P")
    return float(found[1]) * UNITS[found[2]]


def sourceName(source):
    """The first word of a source, its repository; one's own have all words."""
    return source if source == OWN else source.split(" ")[0]


def chipLines(rows, text, chip, hardware):
    """Lines of the block that say what a chip reaches, each with its note."""
    lines = []
    for figure, share, what in kernelFits(rows, text, chip):
        lines.append((f"    {figure} = {share:.3f}", f"{what}, own measurements"))
    for name, overhead, plateau, points, source in matmulFits(rows):
        if name != chip:
            continue
        peak = hardware["peak_bf16_tflops"] * 1e12
        share = min(1, plateau * peak / rateOf(text, "flops.bf16"))
        what = "matmuls by FLOPs" if points else "a large matmul"
        note = f"{what}, {sourceName(source)}"
        lines.append((f"    matmul = {share:.3f}", note))
        if points:
            note = "what matmuls take beside their FLOPs"
            lines.append((f"    overhead = {overhead * 1e6:.2f} us", note))
    for name, share, _, points, source in hbmFits(rows):
        if name != chip:
            continue
        reached = share * hardware["hbm_gbps"] * 1e9
        share = min(1, reached / rateOf(text, "hbm.bandwidth"))
        what = "tokens of one sequence" if points else "a copy"
        note = f"{what}, {sourceName(source)}"
        lines.append((f"    hbm = {share:.3f}", note))
    return lines


def networkLines(rows, text, chip):
    """Lines of the block that say what the innermost network reaches."""
    samples = collectivePoints(rows).get(chip)
    if not samples:
        return []
    base, latency, perByte, ramp = fit([sample[2] for sample in samples])
    found = re.search(r"network (\w+) (switch|torus)\[.*?\] {(.*?)}", text, re.DOTALL)
    if not found:
        fail("the hardware file has no network of a switch or torus")
    network, _, body = found.groups()
    share = min(1, 1 / perByte / rateOf(body, "bandwidth")) if perByte else 1
    source = next(
        row["source"]
        for row in rows
        if row["kind"] == "collective" and row["hardware"]["chip"] == chip
    )
    lines = [
        (f"    network {network} {{", None),
        (f"      base = {base * 1e6:.2f} us", f"nccl-tests, {sourceName(source)}"),
        (f"      latency = {latency * 1e6:.2f} us", "for each doubling of the group"),
        (f"      bandwidth = {share:.3f}", "of what a GPU sends"),
        (f"      ramp = {ramp * 1e9:.3f} us", "at 1 MB, growing with its root"),
    ]
    least = reductionMin(rows, chip, perByte)
    if least:
        note = "all-reduces of 8 GiB with NVLS"
        lines.append((f"      reduction.min = {least}", note))
    return lines + [("    }", None)]


def block(rows, text, chip):
    """The calibration of a machine, as fractions of its file's rates."""
    known = [
        row["hardware"]
        for row in rows
        if row["hardware"]["chip"] == chip and row["kind"] != "train"
    ]
    if not known:
        fail(f"no row measures '{chip}'")
    lines = chipLines(rows, text, chip, known[0]) + networkLines(rows, text, chip)
    width = max(len(line) for line, note in lines if note)
    return "\n".join(
        ["  calibration {  // printed by utils/calibrate.py"]
        + [f"{line:{width}}  // {note}" if note else line for line, note in lines]
        + ["  }"]
    )


# Fields of a chip that whole steps say, or nothing here does.
KEPT = ("kernels", "attention", "step", "overlap", "hbm", "like")


def withBlock(text, printed):
    """A hardware file with a block in place of its own, whose fields that nobody
    measures here stay."""
    old = re.search(r"^  calibration \{.*?^  \}\n", text, re.DOTALL | re.MULTILINE)
    fields = re.findall(r"^    ([a-z]+) = .*\n", old[0], re.M) if old else []
    kept = [
        re.search(rf"^    {field} = .*\n", old[0], re.M)[0]
        for field in fields
        if field in KEPT and not re.search(rf"^    {field} = ", printed, re.M)
    ]
    first, rest = printed.split("\n", 1)
    printed = first + "\n" + "".join(kept) + rest + "\n"
    if old:
        return text.replace(old[0], printed)
    end = text.rindex("}")
    return text[:end].rstrip("\n") + "\n\n" + printed + text[end:]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", nargs="*", help="files of rows with curves")
    parser.add_argument("--block", metavar="FILE.shd", help="a hardware file")
    parser.add_argument("--chip", help="with --block: what rows call the chip")
    parser.add_argument("--nccl", nargs="+", default=[], metavar="FILE")
    parser.add_argument("--matmul", metavar="FILE")
    parser.add_argument("--whole", action="store_true", help="prints FILE.shd, too")
    options = parser.parse_args()
    own = bool(options.nccl or options.matmul)
    if own and not options.block:
        parser.error("--nccl and --matmul need --block")
    if not own and bool(options.block) != bool(options.chip):
        parser.error("--block and --chip stand together")
    if not own and not options.rows:
        parser.error("expected rows.json, or --nccl or --matmul")
    rows = [row for path in options.rows for row in readRows(path)]
    if not options.block:
        printNetworks(rows)
        printMatmuls(rows)
        printHbm(rows)
        return
    text = readText(options.block)
    chip = options.chip or "own"
    if options.matmul:
        peak = rateOf(text, "flops.bf16")
        rows.append(matmulRow(options.matmul, chip, peak))
    rows += [ncclRow(path, chip) for path in options.nccl]
    printed = block(rows, text, chip)
    print(withBlock(text, printed) if options.whole else printed)


if __name__ == "__main__":
    main()
