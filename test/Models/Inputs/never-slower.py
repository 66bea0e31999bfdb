#!/usr/bin/env python3
"""never-slower.py SHARDC TOLERANCE OBJECTIVE SEARCHED HAND...: fails where the plan
of SEARCHED takes longer than that of a file by hand, by more than the tolerance."""

import json
import subprocess
import sys


def value(shardc, objective, path):
    report = subprocess.run([shardc, path, "--emit-json", f"--objective={objective}"],
                            check=True, capture_output=True, text=True).stdout
    return json.loads(report)["plan"]["value_s"]


shardc, tolerance, objective, searched, *byHand = sys.argv[1:]
best = value(shardc, objective, searched)
for path in byHand:
    hand = value(shardc, objective, path)
    verdict = "slower" if best > (1 + float(tolerance)) * hand else "fine"
    print(f"{verdict}: {best:.4f} s, {path.rsplit('/', 1)[-1]} by hand {hand:.4f} s")
