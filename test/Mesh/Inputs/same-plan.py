"""The second report is of the first one's plan, read back."""

import json
import sys

chosen, read = (json.load(open(path)) for path in sys.argv[1:3])
assert chosen["mesh"]["axes"] == read["mesh"]["axes"]
for report in (chosen, read):
    del report["memory"]["at"]  # another file
for key in ("time", "memory", "flops"):
    assert chosen[key] == read[key], key
