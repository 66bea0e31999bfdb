"""Compares two JSON reports: all but the name of the file, places in it, and how
the plan was found.

    same-plan.py FIRST SECOND
"""

import json
import sys

# How it was found, what else was tried, and remarks, which cite places.
FOUND = {"plan", "variants", "program", "source", "file", "hints", "notes"}
PLACES = {"file", "loc", "location", "at", "line", "column"}


def without_places(value):
    if isinstance(value, dict):
        return {k: without_places(v) for k, v in value.items() if k not in PLACES}
    if isinstance(value, list):
        return [without_places(each) for each in value]
    return value


def main():
    first, second = (json.load(open(path)) for path in sys.argv[1:3])
    missing = {"time", "memory", "words", "training", "ops"} - set(first)
    if missing:
        sys.exit(f"the report has no {', '.join(sorted(missing))}")
    differ = [
        key
        for key in first
        if key not in FOUND
        and without_places(first[key]) != without_places(second.get(key))
    ]
    if differ:
        sys.exit(f"the plans differ in {', '.join(differ)}")


main()
