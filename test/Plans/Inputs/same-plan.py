#!/usr/bin/env python3
"""Compares two JSON reports: time, memory, and what is saved for the backward pass.

Usage: same-plan.py PLAN.json TEXT.json; prints the names of saved tensors.
"""

import json
import sys

reports = [json.load(open(path)) for path in sys.argv[1:]]


def saved(report):
    return sorted(each["name"] for each in report["tensors"] if each["kind"] == "saved")


def figures(report):
    return report["time"]["scheduled_s"], report["memory"]["peak"], saved(report)


if figures(reports[0]) != figures(reports[1]):
    sys.exit(f"{figures(reports[0])} and as text {figures(reports[1])}")
print("saved", *saved(reports[0]))
