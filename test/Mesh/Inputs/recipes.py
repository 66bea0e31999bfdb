"""Compares the recipe that `mesh auto` finds with all others, each planned by
itself.

    recipes.py SHARDC FILE.shd DEVICES [OPTION...]

The machine is one switch, so that sizes are all of a mesh. They are listed here
without shardc: all factorisations of the number of devices into at most three
axes without stages, and with stages on an axis of at most as many devices as
the program has layers.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile

shardc, path, devices, options = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
text = open(path).read()
layers = int(re.search(r"\bL = (\d+)", text).group(1))


def run(program, mesh):
    result = subprocess.run(
        [shardc, program, f"--hardware=h100[{devices}] {{ shape.max = [{devices}] }}",
         f"--mesh={mesh}", "--emit-json", *options], capture_output=True, text=True)
    return json.loads(result.stdout) if result.returncode in (0, 3) else None


def sizes(number, most):
    """Descending, each above 1."""
    if number == 1:
        yield []
        return
    if most == 0:
        return
    for size in range(number, 1, -1):
        if number % size == 0:
            for rest in sizes(number // size, most - 1):
                if not rest or size >= rest[0]:
                    yield [size, *rest]


auto = run(path, "auto")
assert auto, "no recipe was chosen"
with tempfile.TemporaryDirectory() as folder:
    staged = os.path.join(folder, "staged.shd")
    with open(staged, "w") as file:
        file.write(text.replace("repeat L {", "repeat L@pp {"))
    found = {}
    for stages in range(1, min(layers, devices) + 1):
        if devices % stages:
            continue
        for rest in sizes(devices // stages, 3 if stages == 1 else 2):
            axes = [f"pp={stages}"] if stages > 1 else []
            axes += [f"{name}={size}" for name, size in zip("XYZ", rest)]
            mesh = "[" + ", ".join(axes) + "]"
            report = run(staged if stages > 1 else path, mesh)
            if report and report["memory"]["fits"]:
                found[mesh] = report["plan"]["value_s"]
best = min(found.values())
print(f"{len(found)} recipes")
assert math.isclose(auto["plan"]["value_s"], best), (auto["plan"], found)
assert auto["mesh"]["search"]["cut"] is False
statuses = [each["status"] for each in auto["variants"]]
assert statuses[0] == "chosen" and "chosen" not in statuses[1:], statuses
print("chosen as by exhaustive search")
