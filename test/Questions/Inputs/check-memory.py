#!/usr/bin/env python3
"""Checks what a GiB more is said to save, and each point of --memory-curve.

Every limit is given to shardc as --memory-limit, and the reports must have the
same times and memory, unless less memory led to a faster plan.

Usage: check-memory.py SHARDC FILE.shd [options of shardc]
"""

import json
import subprocess
import sys

shardc, path, *options = sys.argv[1:]
kGiB = 2**30


def ask(*flags):
    run = subprocess.run(
        [shardc, path, "--emit-json", *options, *flags], capture_output=True, text=True
    )
    if not run.stdout:
        sys.exit(f"exit status {run.returncode}: {run.stderr}")
    return run.returncode, json.loads(run.stdout)


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: found {found}, expected {wanted}")


def check(what, plan, limit, before):
    status, report = ask("--memory-limit", str(limit))
    if plan["fits"] and (status != 0 or plan["value_s"] < report["plan"]["value_s"]):
        expect(what + ", value with less memory", plan["value_s"], before)
        return
    expect(what + ", fits", plan["fits"], status == 0)
    expect(what + ", peak", plan["memory"]["peak"], report["memory"]["peak"])
    if plan["fits"]:
        for key in ("lower_s", "scheduled_s", "upper_s"):
            expect(f"{what}, {key}", plan[key], report["time"][key])
        if plan["status"] == "optimal":
            expect(what + ", bound", plan["bound_s"], plan["value_s"])
        else:
            expect(what + ", status", plan["status"], report["plan"]["status"])
        expect(what + ", value", plan["value_s"], report["plan"]["value_s"])


status, report = ask()
_, curve = ask("--memory-curve")
memory = report["memory"]
allowed = memory["limit"] if memory["limit"] is not None else memory["capacity"]
expect("allowed", curve["allowed"], allowed)
value = float("inf")
for point in curve["points"]:
    check(f"limit {point['limit']}", point, point["limit"], value)
    # More memory never makes a step longer.
    if point["fits"]:
        if point["value_s"] > value:
            sys.exit(f"limit {point['limit']}: more memory, and a longer step")
        value = point["value_s"]
check("no limit", curve["unlimited"], curve["unlimited"]["memory"]["peak"], value)

now = {point["limit"]: point for point in curve["points"]}
more = memory["more"]
if status == 0:
    gained = now[allowed]["value_s"] - now[allowed + kGiB]["value_s"]
    expect("a GiB more saves time", more is not None, gained > 0)
    if more:
        expect("bytes", more["bytes"], kGiB)
        expect("with more", more["value_s"], now[allowed + kGiB]["value_s"])
        if abs(more["saves_s"] - gained) > 1e-12:
            sys.exit(f"saves {more['saves_s']}, expected {gained}")
else:
    expect("a GiB more", more, None)
print(f"{len(curve['points'])} limits agree")
