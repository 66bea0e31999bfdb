# check-plan.py REPORT.json AGAIN.json: a program that was planned from its own
# plan takes no longer, perhaps in another order, and every tensor lies where it
# did.
import json
import sys

first, again = (json.load(open(name)) for name in sys.argv[1:])
assert again["given"]["value_s"] == again["plan"]["value_s"]
assert again["plan"]["value_s"] <= first["plan"]["value_s"]
places = lambda report: [(each["name"], each["kind"], each["sharding"])
                         for each in report["tensors"]]
assert sorted(places(first)) == sorted(places(again))
