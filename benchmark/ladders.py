#!/usr/bin/env python3
"""Searches training steps on more and more chips, and with more and more memory.

More chips with the same batch on each must not lower tokens per second, nor
more memory make the step slower. Prints each step, and fails where one is.

    benchmark/ladders.py [--shardc build/bin/shardc] [--only NAME ...]
"""

import argparse
import os
import sys

import recipes

# Sequences on each chip; machines by the number of their chips.
H100 = {8: "h100[8]", 16: "h100[2, 8]", 32: "h100[4, 8]", 64: "h100[8, 8]",
        128: "h100[16, 8]", 256: "h100[1, 32, 8]", 512: "h100[2, 32, 8]",
        1024: "h100[4, 32, 8]", 2048: "llama3_h100[1, 128, 2, 8]"}
CHIPS = [("8b", recipes.FSDP, 2, {}, [8, 16, 32, 64, 128, 256, 512]),
         ("70b", recipes.TITAN, 2, {}, [64, 128, 256, 512, 1024, 2048]),
         ("1b", recipes.FSDP, 2, recipes.SMALL, [8, 32, 128, 512, 2048])]
# Gigabytes of a chip.
MEMORY = [("8b-8", recipes.FSDP, "h100[8]", {"B": 16}, [32, 40, 48, 64, 80]),
          ("70b-64", recipes.TITAN, "h100[8, 8]", {"B": 128}, [32, 40, 48, 64, 80]),
          ("405b-16384", "llama3-405b-16k", None, {}, [24, 32, 48, 80])]


def search(options, file, flags):
    """The step, or None if nothing fits."""
    with open(os.path.join(recipes.ROOT, "models/recipes", file + ".shd")) as source:
        text = recipes.opened(source.read())
    report, _, _ = recipes.ask(options.shardc, text,
                               flags + ["--mesh=auto", f"--jobs={options.jobs}"])
    return report if report["memory"]["fits"] else None


def climb(name, steps, value):
    """Prints a ladder; true if no step is lower than the one before it."""
    rises, before = True, 0
    for what, report in steps:
        now = value(report) if report else 0
        fell = now < before * (1 - recipes.TOLERANCE)
        rises &= not fell
        before = max(before, now)
        words = report["words"] if report else "nothing fits"
        step = f"{report['time']['scheduled_s']:.4g} s" if report else ""
        print(f"| {name} | {what} | {step} | {now:.4g} | {words} "
              f"| {'lower than before' if fell else ''} |", flush=True)
    return rises


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(recipes.ROOT, "build/bin/shardc"))
    parser.add_argument("--only", nargs="+", help="names of ladders")
    parser.add_argument("--jobs", default="2")
    options = parser.parse_args()
    print("| ladder | | step | tokens or steps per second | plan | |\n|---|---|---|---|---|---|")
    lower = []
    for name, file, batch, dims, numbers in CHIPS:
        if options.only and name not in options.only:
            continue
        steps = ((f"{chips:,} chips",
                  search(options, file, [f"--hardware={H100[chips]}"] +
                         [f"--dim={dim}={extent}" for dim, extent in
                          (dims | {"B": batch * chips}).items()]))
                 for chips in numbers)
        if not climb(name, steps, lambda report: report["training"]["tokens_per_s"]):
            lower.append(name)
    for name, file, machine, dims, limits in MEMORY:
        if options.only and name not in options.only:
            continue
        flags = ([f"--hardware={machine}"] if machine else []) + [
            f"--dim={dim}={extent}" for dim, extent in dims.items()]
        steps = ((f"{limit} GB",
                  search(options, file, flags + [f"--memory-limit={limit}GB"]))
                 for limit in limits)
        if not climb(name, steps, lambda report: 1 / report["time"]["scheduled_s"]):
            lower.append(name)
    if lower:
        sys.exit("lower than a step before: " + ", ".join(lower))


if __name__ == "__main__":
    main()
