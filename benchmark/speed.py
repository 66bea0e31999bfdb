#!/usr/bin/env python3
"""Times shardc and prints the table of docs/Performance.md.

Every row is the median wall-clock time of whole runs of the program. Exit status
1 if a run fails or a time is over its limit.

    benchmark/speed.py [--shardc build/bin/shardc] [--runs 5]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from generate import program

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def median_seconds(command, runs):
    """Median time of `runs` runs after one that warms the disk cache."""
    times = []
    for run in range(runs + 1):
        start = time.perf_counter()
        result = subprocess.run(command, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
        elapsed = time.perf_counter() - start
        if result.returncode != 0:
            sys.exit(f"error: {' '.join(command)} failed with exit status "
                     f"{result.returncode}\n{result.stderr[:500]}")
        if run > 0:
            times.append(elapsed)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(ROOT, "build/bin/shardc"))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()

    def model(name):
        return os.path.join(ROOT, "models", name + ".shd")

    with tempfile.TemporaryDirectory() as folder:
        generated = {}
        for statements in (10_000, 20_000):
            generated[statements] = os.path.join(folder, f"{statements}.shd")
            with open(generated[statements], "w", encoding="utf-8") as file:
                file.write(program(statements))

        # What is run, its arguments, and the limit in seconds.
        cases = [
            ("`--help`", ["--help"], 0.06),
            ("`ffn.shd`", [model("ffn")], 0.06),
            # Nothing is annotated there, so the plan needs room for everything.
            ("`llama3-405b.shd --opt=propagate`",
             [model("llama3-405b"), "--opt=propagate", "--memory-limit=10TB"], 0.15),
            ("`llama3-405b.shd`", [model("llama3-405b")], 1.0),
            ("10,000 statements, `--opt=propagate`",
             [generated[10_000], "--opt=propagate"], 5.0),
            ("20,000 statements, `--opt=propagate`",
             [generated[20_000], "--opt=propagate"], 10.0),
        ]
        print("| run | time | limit |\n|---|---|---|")
        over = False
        for name, arguments, limit in cases:
            seconds = median_seconds([options.shardc, *arguments], options.runs)
            over |= seconds > limit
            print(f"| {name} | {seconds * 1e3:,.0f} ms | {limit * 1e3:,.0f} ms |",
                  flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
