"""Compares `mesh auto` with every mesh, each planned by itself.

    exhaustive.py SHARDC OBJECTIVE FILE.shd HARDWARE [OPTION ...]

The meshes are listed here without shardc: all ordered factorisations of the
number of chips into at most three axes, unbound and on every list of at most
two physical axes for each that shardc accepts.
"""

import itertools
import json
import re
import subprocess
import sys

shardc, objective, program, hardware = sys.argv[1:5]
options = sys.argv[5:]
shape = [int(n) for n in re.findall(r"\d+", hardware.split("[", 1)[1])]
chips = 1
for extent in shape:
    chips *= extent


def run(mesh):
    result = subprocess.run(
        [shardc, program, f"--hardware={hardware}", f"--mesh={mesh}",
         f"--objective={objective}", "--emit-json", *options],
        capture_output=True, text=True)
    if result.returncode not in (0, 3):
        return None
    return json.loads(result.stdout)


def factorisations(number, parts):
    if parts == 1:
        return [[number]] if number > 1 else []
    return [[size, *rest] for size in range(2, number)
            if number % size == 0 for rest in factorisations(number // size, parts - 1)]


auto = run("auto")
assert auto, "no mesh was chosen"
levels = [level["name"] for level in auto["physical"]]
places = [list(p) for n in (1, 2) for p in itertools.permutations(levels, n)]
best, tried = None, 0
for count in (1, 2, 3):
    for sizes in factorisations(chips, count):
        for on in [None, *itertools.product(places, repeat=count)]:
            axes = [f"{name}={size}" + (f" on ({', '.join(on[i])})" if on else "")
                    for i, (name, size) in enumerate(zip("XYZ", sizes))]
            report = run("[" + ", ".join(axes) + "]")
            if report is None or not report["memory"]["fits"]:
                continue
            tried += 1
            value = report["plan"]["value_s"]
            best = value if best is None else min(best, value)
print(f"{tried} meshes")
assert auto["mesh"]["search"] is not None
assert auto["plan"]["value_s"] == best, (auto["plan"], best)
bound = auto["plan"]["bound_s"]
assert bound is None or bound <= best, (auto["plan"], best)
print("chosen as by exhaustive search")
