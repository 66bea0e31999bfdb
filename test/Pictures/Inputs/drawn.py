"""Compares the figures that `draw.js` prints with those of a report.

    drawn.py DRAWN REPORT

The report has the keys of `--timeline`."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    lines = file.read().splitlines()
with open(sys.argv[2], encoding="utf-8") as file:
    report = json.load(file)

numbers = 0
for line in lines:
    if not line.startswith("figure "):
        continue
    _, key, value = line.split()
    inside = report
    if "." in key:
        for part in key.split("."):
            inside = inside[part]
    elif key in report:
        inside = report[key]
    elif key in ("local_bytes", "bytes", "count", "time_s", "exposed_total_s"):
        rows = report["tensors"] + report["ops"] + report["memory"]["spans"]
        rows += report["memory"]["live"]
        assert float(value) in {row.get(key) for row in rows}, line
        numbers += 1
        continue
    elif key in ("intensity", "critical"):
        assert float(value) in {row[key] for row in report["rooflines"]}, line
        numbers += 1
        continue
    else:
        continue
    assert (inside is None and value == "null") or float(value) == inside, line
    numbers += 1
assert numbers > 10, numbers
print("figures equal the report's")
