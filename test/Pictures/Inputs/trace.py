"""Checks a file of --emit-trace against the JSON report of the same plan.

    trace.py TRACE REPORT

Slices of a track are disjoint or nested, flows begin and end inside slices, and
every number is the report's."""

import json
import sys
from fractions import Fraction

with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file, parse_float=Fraction)
with open(sys.argv[2], encoding="utf-8") as file:
    report = json.load(file)

assert set(trace) == {"traceEvents", "displayTimeUnit"}, set(trace)
assert trace["displayTimeUnit"] in ("ms", "ns")
events = trace["traceEvents"]
assert all(event["ph"] in "XMCsf" for event in events)


def ns(us):
    result = us * 1000
    assert result == int(result), f"{us} us is no whole number of ns"
    return int(result)


def rounded(seconds):
    # As std::llround: halves away from zero.
    return int(seconds * 1e9 + 0.5)


tracks = {}
named = set()
for event in events:
    key = (event["pid"], event["tid"])
    if event["ph"] == "M":
        assert event["args"]["name"]
        if event["name"] == "thread_name":
            assert key not in named, key
            named.add(key)
    elif event["ph"] == "X":
        start = ns(event["ts"])
        assert event["dur"] >= 0 and start >= 0
        tracks.setdefault(key, []).append((start, start + ns(event["dur"]), event))
assert set(tracks) <= named, set(tracks) - named

for key, slices in tracks.items():
    open_ends = []
    for start, end, event in sorted(slices, key=lambda each: (each[0], -each[1])):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], (key, event)
        open_ends.append(end)

# Every event of the timeline is a slice, once, with the report's start and end.
expected = set()
for section in report["timeline"]:
    for event in section["events"]:
        expected.add(
            (event["op"], rounded(event["start_s"]), rounded(event["end_s"]))
        )
found = []
for key, slices in tracks.items():
    for start, end, event in slices:
        args = event.get("args", {})
        if "op" not in args:
            continue
        found.append((args["op"], start, end))
        op = report["ops"][args["op"]]
        assert event["name"] == op["name"]
        for name, value in args.items():
            if name != "op":
                same = op[name] if not isinstance(op[name], float) else None
                assert same is None or value == same, (name, value, op[name])
                if same is None:
                    assert abs(float(value) - op[name]) <= 1e-12 * abs(op[name])
assert len(found) == len(set(found))
assert set(found) == expected, (set(found) ^ expected)

# Counters are numbers, those of the operation that begins there.
counters = [event for event in events if event["ph"] == "C"]
assert counters
for event in counters:
    assert event["args"]
    assert all(isinstance(value, int) for value in event["args"].values())
peak = max(op["memory"]["bytes"] for op in report["ops"] if "memory" in op)
assert peak == report["memory"]["peak"], (peak, report["memory"]["peak"])
assert max(sum(event["args"].values()) for event in counters) <= peak

flows = {}
for event in events:
    if event["ph"] in "sf":
        flows.setdefault((event["cat"], event["name"], event["id"]), []).append(event)
        at = ns(event["ts"])
        on = tracks[(event["pid"], event["tid"])]
        assert any(start <= at <= end for start, end, _ in on), event
        assert event["ph"] == "s" or event["bp"] == "e"
for key, ends in flows.items():
    assert sorted(event["ph"] for event in ends) == ["f", "s"], key
    begin, end = sorted(ends, key=lambda event: event["ts"])
    assert begin["ph"] == "s"

stages = report.get("stages", [])
for i, stage in enumerate(stages):
    on = tracks.get((2, i + 1), [])
    ran = stage["events"] + [stage["update"]]
    assert len(ran) > 1
    assert sorted((start, end) for start, end, _ in on) == sorted(
        (rounded(event["start_s"]), rounded(event["end_s"]))
        for event in ran
        if event["end_s"] > event["start_s"]
    )
print(f"{len(found)} slices, {len(flows)} flows, {len(stages)} stages: the trace holds")
