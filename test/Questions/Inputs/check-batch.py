"""Compares the batch that `batch = auto` finds with all others.

    check-batch.py SHARDC FILE.shd MOST [OPTION ...]

Each batch up to MOST is planned by itself, and MOST is large enough that none
above it fits.
"""

import json
import subprocess
import sys

shardc, path, most, *options = sys.argv[1:]


def run(*more):
    result = subprocess.run([shardc, path, "--emit-json", *options, *more],
                            stdout=subprocess.PIPE, text=True)
    assert result.returncode in (0, 3), result.returncode
    return json.loads(result.stdout)


found = run()["training"]["batch"]
points = run("--sweep", f"{found['dim']} in 1..{most} + 1")["points"]
fits = [point["set"][found["dim"]] for point in points
        if point["report"] and point["report"]["memory"]["fits"]]
assert max(fits) < int(most), "the largest batch may be larger"
assert found["size"] == max(fits), (found, fits)
assert found["fits"] and not found["cut"] and found["too_large"] > found["size"]
print(f"{found['size']}, of {len(fits)} that fit, with {found['tried']} plans")
