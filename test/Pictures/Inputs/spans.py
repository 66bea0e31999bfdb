"""Checks the tensors over time of a report of --timeline: at each operation the bytes
of those that are alive add up to what the operation says is in use, kind by kind.

    spans.py REPORT"""

import collections
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)

ops, spans = report["ops"], report["memory"]["spans"]
assert any("memory" in op for op in ops)
for i, op in enumerate(ops):
    if "memory" not in op:
        continue
    alive = collections.Counter()
    for span in spans:
        if span["first"] <= i <= span["last"]:
            alive[span["kind"]] += span["bytes"]
    said = {kind: value for kind, value in op["memory"].items() if kind != "bytes"}
    assert alive == said, (i, op["name"], alive, said)
    assert sum(alive.values()) == op["memory"]["bytes"], (i, op["name"])
for before, span in zip(spans, spans[1:]):
    assert (before["first"], -before["bytes"]) <= (span["first"], -span["bytes"])
assert all(0 <= span["first"] <= span["last"] < len(ops) for span in spans)
print("tensors over time add up")
