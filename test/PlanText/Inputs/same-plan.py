"""Compares two JSON reports: all but the name of the file, places in it, and how
the plan was found.

    same-plan.py [--any-order] FIRST SECOND

With --any-order the operations may run in another order, which moves times and
memory.
"""

import json
import sys

# How it was found, what else was tried, and remarks, which cite places.
FOUND = {"plan", "variants", "schedules", "program", "source", "file", "hints", "notes"}
ORDERED = {"time", "memory", "price", "overlap", "lint", "shortfall", "tensors"}
ORDERED |= {"tokens_per_s", "examples_per_s", "rooflines", "flops", "training"}
PLACES = {"file", "loc", "location", "at", "line", "column"}


def without_places(value):
    if isinstance(value, dict):
        return {k: without_places(v) for k, v in value.items() if k not in PLACES}
    if isinstance(value, list):
        return [without_places(each) for each in value]
    return value


def without_order(report):
    """The report of the plan in no order."""
    kept = {key: value for key, value in report.items() if key not in ORDERED}
    for op in kept["ops"]:
        for key in ("exposed_s", "exposed_total_s", "phase"):
            op.pop(key, None)
    kept["ops"].sort(key=lambda op: json.dumps(without_places(op), sort_keys=True))
    return kept


def main():
    first, second = (json.load(open(path)) for path in sys.argv[-2:])
    missing = {"time", "memory", "words", "training", "ops"} - set(first)
    if missing:
        sys.exit(f"the report has no {', '.join(sorted(missing))}")
    if sys.argv[1] == "--any-order":
        first, second = without_order(first), without_order(second)
    differ = [
        key
        for key in first
        if key not in FOUND
        and without_places(first[key]) != without_places(second.get(key))
    ]
    if differ:
        sys.exit(f"the plans differ in {', '.join(differ)}")


main()
