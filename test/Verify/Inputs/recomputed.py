"""Checks how often an operation runs again in a step: NAME COUNT, on standard
input the JSON report."""

import json
import sys

name, expected = sys.argv[1], int(sys.argv[2])
found = [op["count"] for op in json.load(sys.stdin)["ops"]
         if op["phase"] == "recompute" and op["name"] == name]
assert found == [expected], f"{name} runs again {found} times, expected {expected}"
