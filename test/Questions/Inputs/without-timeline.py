"""Takes off a report of serving what --timeline adds to it."""

import json
import sys

report = json.load(sys.stdin)
for phase in ("prefill", "decode"):
    plan = report["serving"][phase]
    assert plan.pop("timeline")
    assert plan["memory"].pop("spans")
    for op in plan["ops"]:
        assert op.pop("memory")["bytes"] > 0
print(json.dumps(report, indent=2))
