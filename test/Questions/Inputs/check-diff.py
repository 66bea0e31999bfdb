# check-diff.py DIFF.json A.json B.json KEY: the differences of a --diff add up
# to that of the two reports' times of this key, and so do the sides.
import json
import sys

diff, a, b = (json.load(open(name)) for name in sys.argv[1:4])
key = sys.argv[4]
ps = lambda seconds: round(seconds * 1e12)
for side, report in (("a", a), ("b", b)):
    assert ps(diff[side]["value_s"]) == ps(report["time"][key])
    assert sum(ps(cost[side + "_s"]) for cost in diff["costs"]) == ps(
        report["time"][key])
assert sum(ps(cost["difference_s"]) for cost in diff["costs"]) == ps(
    diff["difference_s"])
assert all(cost["what"] != "the rest" for cost in diff["costs"])
# Each tensor is said once, and what is said of it is what the reports say.
for side, report in (("a", a), ("b", b)):
    said = [each for each in diff["moved"] if each[side]]
    assert len(said) + diff["unmoved"] == len(report["tensors"])
    lies = [(each["name"], each["sharding"]) for each in report["tensors"]]
    assert all((each[side]["name"], each[side]["sharding"]) in lies
               for each in said)
