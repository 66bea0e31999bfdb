#!/usr/bin/env python3
"""Compares `--mesh auto` of training steps with published recipes.

Each program of models/recipes is priced as it is; then all its annotations are
taken off, and shardc searches mesh, stages, microbatches, schedule and
recomputation. Prints both with the words of their plans (docs/Training.md,
Published recipes), and fails where the search is slower than the recipe.

    benchmark/recipes.py [--shardc build/bin/shardc] [--only NAME ...]
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Plans are not proven optimal: a recipe by hand leaves less to search.
TOLERANCE = 1e-3
# LLaMA-3.2 1B but for its tied embeddings: 1.5 billion parameters.
SMALL = {"L": 16, "D": 2048, "F": 8192, "H": 64}
FSDP, TITAN = "llama3-8b-torchtitan", "llama3-70b-torchtitan"
# Name, program, machine, mesh, dims; None: those of the program.
CASES = [
    ("1b-8", FSDP, None, None, SMALL),
    ("1b-128", FSDP, "h100[16, 8]", "[X=128]", SMALL | {"B": 256}),
    ("1b-256", "llama3-1b-hsdp", None, None, {}),
    ("1b-1024", "llama3-1b-hsdp", "h100[4, 32, 8]", "[X=32, Z=4, Y=8 on gpu]", {}),
    ("1b-16384", "llama3-1b-16k", None, None, {}),
    ("8b-8", FSDP, None, None, {}),
    ("8b-64", FSDP, "h100[8, 8]", "[X=64]", {"B": 128}),
    ("8b-512", FSDP, "h100[2, 32, 8]", "[X=512]", {"B": 1024}),
    ("70b-64", TITAN, "h100[8, 8]", "[X=8 on node, Y=8 on gpu]", {"B": 128}),
    ("70b-512", TITAN, "h100[2, 32, 8]", "[X=64 on (leaf, node), Y=8 on gpu]",
     {"B": 1024}),
    ("70b-2048", TITAN, "llama3_h100[1, 128, 2, 8]", "[X=256, Y=8 on gpu]",
     {"B": 4096}),
    ("175b-64", "gpt3-175b-64", None, None, {}),
    ("175b-1024", "gpt3-175b-megatron", None, None, {}),
    ("405b-16384", "llama3-405b-16k", None, None, {}),
    ("405b-128k", "llama3-405b-128k", None, None, {}),
    ("70b-8192", "llama3-70b-book", None, None, {}),
    ("deepseek-2048", "deepseek-v3-2k", None, None, {}),
]


def opened(text):
    """The program with nothing of it decided."""
    text = re.sub(r"@(\w+|\([^)]*\))", "", text)
    return re.sub(r"train \{.*\}", "train { loss = loss }", text, flags=re.DOTALL)


def ask(shardc, text, options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    result = subprocess.run([shardc, "-", "--emit-json"] + options, input=text,
                            stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode not in (0, 3):
        sys.exit(f"shardc ended with {result.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(result.stdout), seconds, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(ROOT, "build/bin/shardc"))
    parser.add_argument("--only", nargs="+", help="names of cases")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--time-limit", help="seconds of each search")
    parser.add_argument("--keep", help="folder for the reports")
    options = parser.parse_args()
    print("| case | chips | recipe | step | found | step | memory | s | processor s |\n"
          "|---|---|---|---|---|---|---|---|---|")
    slower = []
    for name, file, machine, mesh, dims in CASES:
        if options.only and name not in options.only:
            continue
        with open(os.path.join(ROOT, "models/recipes", file + ".shd")) as source:
            text = source.read()
        common = [f"--hardware={machine}"] if machine else []
        common += [f"--dim={dim}={extent}" for dim, extent in dims.items()]
        recipe, _, _ = ask(options.shardc, text,
                           common + ([f"--mesh={mesh}"] if mesh else []))
        search = ["--mesh=auto", f"--jobs={options.jobs}"]
        if options.time_limit:
            search.append(f"--time-limit={options.time_limit}")
        found, seconds, cpu = ask(options.shardc, opened(text), common + search)
        if options.keep:
            with open(os.path.join(options.keep, name + ".json"), "w") as kept:
                json.dump(found, kept)
        steps = [each["time"]["scheduled_s"] for each in (recipe, found)]
        if not found["memory"]["fits"] or steps[1] > steps[0] * (1 + TOLERANCE):
            slower.append(name)
        print(f"| {name} | {found['hardware']['chips']:,} | {recipe['words']} "
              f"| {steps[0]:.4g} s | {found['words']} | {steps[1]:.4g} s "
              f"| {found['memory']['peak'] / 1e9:.1f} GB | {seconds:.0f} | {cpu:.0f} |",
              flush=True)
    if slower:
        sys.exit("slower than the recipe: " + ", ".join(slower))


if __name__ == "__main__":
    main()
