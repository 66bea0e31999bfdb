#!/usr/bin/env python3
"""Times the search on every model and prints the table of docs/Performance.md.

For each machine with its mesh and each objective: the wall-clock time of the
whole command, the plan's time and how far from the best it can be.

    benchmark/planning.py [--shardc build/bin/shardc] [--objective upper ...]
                          [--machine 'h100[8, 8]' ...] [--unrolled | --train]
                          [--time-limit 30]

With --unrolled every layer is written out (unroll.py), and its plan its own.
With --train the models are training steps, on machines of their own: gaps are
those of the chosen microbatches and recomputation, and of any.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import unroll

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DECODE = "llama3-70b-decode"
# With the dims that are set.
MODELS = [("ffn", []), ("attention", []), ("llama3-8b", []), ("llama3-70b", []),
          (DECODE, ["B=32"]), (DECODE, []), (DECODE, ["B=1024"]),
          ("gemma2-27b", []), ("gpt3-175b", []), ("llama3-405b", [])]
MACHINES = {"tpu_v5p[8, 8, 16]": "[X=8, Y=8, Z=16]",
            "tpu_v5e[8, 8]": "[X=8, Y=8]",
            "h100[8, 8]": "[X=8, Y=8]"}
TRAINED = [(f"{model}-train", []) for model in ("llama3-8b", "llama3-70b", "llama3-405b")]
TRAINERS = {"tpu_v5p[8, 8, 16]": "[X=8, Y=8, Z=16]",
            "tpu_v5p[16, 16, 8]": "[X=256 on (x, y), Y=8 on z]",
            "h100[2, 32, 8]": "[X=64, Y=8]"}


def words(status, gap):
    if gap is None:
        return status
    return "optimal" if gap == 0 else f"{100 * gap:.2f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(ROOT, "build/bin/shardc"))
    parser.add_argument("--objective", nargs="+",
                        default=["upper", "lower", "scheduled"])
    parser.add_argument("--machine", nargs="+", choices=MACHINES | TRAINERS)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--unrolled", action="store_true")
    kind.add_argument("--train", action="store_true")
    parser.add_argument("--time-limit", metavar="SECONDS")
    options = parser.parse_args()
    models, machines = (TRAINED, TRAINERS) if options.train else (MODELS, MACHINES)
    chosen = options.machine or list(machines)
    if not machines.keys() >= set(chosen):
        parser.error(f"--machine: choose from {', '.join(machines)}")
    time_limit = ([f"--time-limit={options.time_limit}"]
                  if options.time_limit else [])
    failed = False
    for objective in options.objective:
        for machine in chosen:
            mesh = machines[machine]
            print(f"\n`--objective={objective}` on `{machine}`, `mesh {mesh}`\n")
            columns = ["model", "s", "plan", "gap"] + ["of any"] * options.train
            print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
            for name, dims in models:
                path = os.path.join(ROOT, "models", name + ".shd")
                text = unroll.program(path) if options.unrolled else None
                start = time.perf_counter()
                result = subprocess.run(
                    [options.shardc, "-" if text else path,
                     f"--hardware={machine}", f"--mesh={mesh}",
                     f"--objective={objective}", "--emit-json",
                     # So that layers that are written out are planned as such.
                     "--roll-layers=off", *time_limit]
                    + [f"--dim={dim}" for dim in dims],
                    input=text, capture_output=True, text=True)
                seconds = time.perf_counter() - start
                # 3: no plan fits, which is proven or not.
                if result.returncode not in (0, 3):
                    print(result.stderr, file=sys.stderr)
                    failed = True
                    continue
                report = json.loads(result.stdout)
                plan = report["plan"]
                gaps = [words(plan["status"], plan["gap"])]
                if options.train:
                    gaps.insert(0, words(plan["status"], report["variants"][0]["gap"]))
                label = f"`{name}`" + "".join(f", `{dim}`" for dim in dims)
                print(f"| {label} | {seconds:.2f} | {1e3 * plan['value_s']:.4g} ms "
                      f"| {' | '.join(gaps)} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
