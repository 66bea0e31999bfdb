"""Reads a report with a timeline on its input: what stages send begins when it is
made, and what they need has arrived before they begin."""

import json
import sys

stages = json.load(sys.stdin)["stages"]
near = 1e-12
wrong = 0
for number, stage in enumerate(stages):
    ends = {(e["kind"], e["microbatch"]): e["end_s"] for e in stage["events"]}
    starts = [e["start_s"] for e in stage["events"]]
    wrong += starts != sorted(starts)
    for sent in stage["transfers"]:
        forward = sent["kind"] == "F"
        wrong += sent["to"] != number + (1 if forward else -1)
        wrong += sent["start_s"] < ends[sent["kind"], sent["microbatch"]] - near
        # 4,000 B at 1 GB/s.
        wrong += abs(sent["end_s"] - sent["start_s"] - 4e-6) > near
        reader = next(e for e in stages[sent["to"]]["events"]
                      if e["microbatch"] == sent["microbatch"] and
                      e["kind"] in (("F",) if forward else ("B", "BW")))
        wrong += reader["start_s"] < sent["end_s"] - near
    # 8 microbatches each way, but for the ends.
    wrong += len(stage["transfers"]) != (8 if number in (0, len(stages) - 1) else 16)
    wrong += stage["update"]["start_s"] < stage["events"][-1]["end_s"] - near
print(f"{wrong} differ" if wrong else "events follow")
