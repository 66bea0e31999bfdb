# Checks a finding of --lint: check-lint.py LINT.json KIND MICROSECONDS FIXED.json
# says that there is one of this kind, that its change saves so much, that the
# program with the change made by hand takes as long as the change was said to,
# and that it has no such finding any more.
import json
import sys

found, kind, saves, fixed = sys.argv[1:]
found, fixed = json.load(open(found)), json.load(open(fixed))
of_kind = [each for each in found["findings"] if each["kind"] == kind]
assert len(of_kind) == 1, of_kind
fix = of_kind[0]["fix"]
ps = lambda seconds: round(seconds * 1e12)
assert abs(ps(fix["saves_s"]) - float(saves) * 1e6) < 1e4, fix["saves_s"]
assert ps(found["value_s"]) - ps(fix["saves_s"]) == ps(fixed["value_s"]), (
    found["value_s"], fix["saves_s"], fixed["value_s"])
assert all(each["kind"] != kind for each in fixed["findings"])
