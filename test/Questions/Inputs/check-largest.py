"""Compares the batch that `batch = auto` finds with the next one.

    check-largest.py SHARDC FILE.shd [OPTION ...]
"""

import json
import subprocess
import sys

command = [*sys.argv[1:], "--emit-json"]


def run(*more):
    return subprocess.run([*command, *more], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL)


found = json.loads(run().stdout)["training"]["batch"]
assert found["fits"] and not found["cut"], found
for size, code in (found["size"], 0), (found["size"] + 1, 3):
    planned = run("--dim", f"{found['dim']}={size}")
    assert planned.returncode == code, (size, planned.returncode)
print(f"{found['size']} fits, {found['size'] + 1} does not")
