"""Prints a config that nobody wrote: large.py deep | many."""

import json
import sys

if sys.argv[1] == "deep":
    print('{"model_type": ' + "[" * 300000)
else:
    print(json.dumps({"model_type": "llama"} | {f"k{i}": 1 for i in range(200000)}))
