"""Compares a sweep over machines, which leaves out points by their bounds, with
sweeps of each machine alone, which plan every point: the same answer, and no
bound above what the plan takes.

check-serving-sweep.py SWEEP.json TARGET MACHINE.json..."""

import json
import sys


def load(path):
    with open(path) as file:
        return json.load(file)


swept, target = load(sys.argv[1]), float(sys.argv[2])
planned = [point for path in sys.argv[3:] for point in load(path)["points"]]
assert len(swept["points"]) == len(planned)
kept = [point["serving"]["usd_per_request"] for point in planned
        if point["serving"]["fits"] and point["serving"]["token_s"] <= target]
chosen = swept["points"][swept["frontier"]["chosen"]]["serving"]
assert chosen["usd_per_request"] == min(kept)
left_out = 0
for found, point in zip(swept["points"], planned):
    if found["serving"]:
        assert found["serving"]["usd_per_request"] == point["serving"]["usd_per_request"]
        continue
    left_out += 1
    bound = found["at_least"]
    for key in ("first_token_s", "token_s", "usd_per_request"):
        assert bound[key] <= point["serving"][key], (key, bound, point["set"])
    assert bound["fits"] or not point["serving"]["fits"]
    # A guess leaves out no better point here; else the bound says that it is none.
    judged = point["serving"] if "about" in found else bound
    assert (judged["usd_per_request"] >= min(kept) or judged["token_s"] > target
            or not judged["fits"])
assert left_out > 0, "every point was planned"
