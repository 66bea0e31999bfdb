#!/usr/bin/env python3
"""Times sweeps of shardc and prints the table of docs/Performance.md.

Every row is the median wall-clock time of whole runs of 1,000 points, and the
processor time of a run, which says more on a machine that has other work to do.
Exit status 1 if a run fails, a point has no report, or a time is over its limit.

    benchmark/sweep.py [--shardc build/bin/shardc] [--runs 3] [--jobs 2]
"""

import argparse
import os
import resource
import subprocess
import sys

from speed import ROOT, median_seconds


def processor_seconds():
    """Of all runs so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(ROOT, "build/bin/shardc"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()

    def model(name):
        return os.path.join(ROOT, "models", name + ".shd")

    # The batch stays divisible by the 256 of mesh axis X.
    sweep = ["--sweep", "B in 256..256000 + 256", "--emit-csv",
             f"--jobs={options.jobs}"]
    # Nothing is annotated in llama3-70b.shd, so its plan needs room.
    cases = [
        ("`llama3-70b.shd --opt=none`",
         [model("llama3-70b"), "--opt=none", "--memory-limit=1000TB"]),
        ("`llama3-70b-fsdp-tp.shd --opt=none`",
         [model("llama3-70b-fsdp-tp"), "--opt=none"]),
        ("`llama3-70b-fsdp-tp.shd --opt=propagate`",
         [model("llama3-70b-fsdp-tp"), "--opt=propagate"]),
    ]
    limit = 5.0
    over = False
    print("| 1,000 points of | time | limit | processor time |\n|---|---|---|---|")
    for name, arguments in cases:
        command = [options.shardc, *arguments, *sweep]
        before = processor_seconds()
        lines = subprocess.run(command, capture_output=True, text=True,
                               check=True).stdout.splitlines()
        used = processor_seconds() - before
        points = [line for line in lines[1:] if ",fixed," in line
                  or ",infeasible," in line]
        if len(points) != 1000:
            sys.exit(f"error: {len(points)} of 1,000 points have a report")
        seconds = median_seconds(command, options.runs)
        over |= seconds > limit
        print(f"| {name} | {seconds:.1f} s | {limit:.0f} s | {used:.1f} s |",
              flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
