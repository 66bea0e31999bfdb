#!/usr/bin/env python3
"""Compares plans on four and five axes with those on merged axes, for
docs/Performance.md.

For each model and mesh: wall-clock and processor seconds of the whole command,
its largest memory, the step, and the fastest step on a mesh of three axes in which
neighbours are merged. Fails if that is faster.

    benchmark/axes.py [--shardc build/bin/shardc] [--model mixtral-8x7b ...]
"""

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = ["llama3-70b", "llama3-70b-decode", "mixtral-8x7b", "qwen3-235b-a22b",
          "llama3-8b-train"]
MACHINE = "tpu_v5p[4, 4, 4]"
MESHES = [[4, 4, 2, 2], [4, 2, 2, 2, 2]]
MERGED_AXES = 3


def mergings(sizes):
    """The sizes after merging neighbours into three axes, in every way."""
    for cuts in itertools.combinations(range(1, len(sizes)), MERGED_AXES - 1):
        bounds = (0, *cuts, len(sizes))
        yield [math.prod(sizes[a:b]) for a, b in zip(bounds, bounds[1:])]


def plan(shardc, model, sizes):
    """The step in ms, the command's wall-clock and processor seconds, and its
    largest memory in MB."""
    mesh = ", ".join(f"{chr(ord('A') + i)}={size}" for i, size in enumerate(sizes))
    start = time.perf_counter()
    child = subprocess.Popen(
        [shardc, os.path.join(ROOT, "models", model + ".shd"),
         f"--hardware={MACHINE}", f"--mesh=[{mesh}]", "--emit-json"],
        stdout=subprocess.PIPE, text=True)
    report = json.loads(child.stdout.read())
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return (1e3 * report["time"]["scheduled_s"], time.perf_counter() - start,
            usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(ROOT, "build/bin/shardc"))
    parser.add_argument("--model", nargs="+", default=MODELS)
    options = parser.parse_args()
    failed = False
    print("| model | mesh | s | processor s | MB | step | best with merged "
          "axes |")
    print("|---|---|---|---|---|---|---|")
    for model, sizes in itertools.product(options.model, MESHES):
        step, seconds, busy, megabytes = plan(options.shardc, model, sizes)
        merged = min((plan(options.shardc, model, each)[0], each)
                     for each in mergings(sizes))
        print(f"| `{model}` | {sizes} | {seconds:.1f} | {busy:.1f} | {megabytes:.0f} "
              f"| {step:.5g} ms | {merged[0]:.5g} ms on {merged[1]} |",
              flush=True)
        failed |= step > merged[0]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
