"""Fails unless the step of the first report takes no longer than that of each
other one."""

import json
import sys


def scheduled(path):
    with open(path) as file:
        return json.load(file)["time"]["scheduled_s"]


first, *others = sys.argv[1:]
for other in others:
    if scheduled(first) > scheduled(other):
        sys.exit(f"{first}: {scheduled(first)} s, {other}: {scheduled(other)} s")
