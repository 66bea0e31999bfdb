"""Checks the frontier of time against memory in a report on standard input."""

import json
import sys

report = json.load(sys.stdin)
frontier = report["mesh"]["search"]["frontier"]
if frontier[0]["scheduled_s"] == report["time"]["scheduled_s"]:
    print("the fastest is the chosen one")
if all(a["scheduled_s"] <= b["scheduled_s"] and b["memory"] <= 0.95 * a["memory"]
       for a, b in zip(frontier, frontier[1:])):
    print("every other one is slower and smaller")
