#!/usr/bin/env python3
"""Times `--mesh auto` on models and prints the table of docs/Performance.md.

For each machine of 256 chips: the wall-clock and processor time of the whole
command, the mesh that is chosen, and what is proven of it.

    benchmark/meshes.py [--shardc build/bin/shardc] [--objective upper ...]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = ["llama3-8b", "llama3-70b", "llama3-70b-decode"]
MACHINES = ["tpu_v5p[4, 8, 8]", "h100[32, 8]"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(ROOT, "build/bin/shardc"))
    parser.add_argument("--objective", nargs="+", default=["upper"])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--jobs", default="2")
    options = parser.parse_args()
    failed = False
    for objective in options.objective:
        print(f"\n`--mesh auto --objective={objective} --jobs {options.jobs}`\n")
        print("| model | machine | s | processor s | mesh | step | ruled out | gap |\n"
              "|---|---|---|---|---|---|---|---|")
        for machine in MACHINES:
            for name in options.models:
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                start = time.perf_counter()
                result = subprocess.run(
                    [options.shardc, os.path.join(ROOT, "models", name + ".shd"),
                     f"--hardware={machine}", "--mesh=auto",
                     f"--objective={objective}", f"--jobs={options.jobs}",
                     "--emit-json"],
                    capture_output=True, text=True)
                seconds = time.perf_counter() - start
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                if result.returncode not in (0, 3):
                    print(result.stderr, file=sys.stderr)
                    failed = True
                    continue
                report = json.loads(result.stdout)
                plan, search = report["plan"], report["mesh"]["search"]
                gap = ("optimal" if plan["status"] == "optimal"
                       else plan["status"] if plan["gap"] is None
                       else f"{100 * plan['gap']:.2f} %")
                print(f"| `{name}` | `{machine}` | {seconds:.1f} | {cpu:.1f} "
                      f"| `{search['best'][0]['mesh']}` | {1e3 * plan['value_s']:.4g} ms "
                      f"| {search['ruled_out']} of {search['meshes'] - 1} | {gap} |",
                      flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
