"""Checks every change that --crossover prints by planning the two values.

    check-crossover.py SHARDC FILE NAME LOW..HIGH [--all] [options of shardc]

At `at` the new state must hold, at `before` the old one, and no value between
them may be legal. With --all every value of the range is planned, and nothing may
be missing.
"""

import json
import subprocess
import sys


def run(arguments):
    return subprocess.run(arguments, capture_output=True, text=True)


def state(report):
    """What a crossover compares, from a report of one value."""
    bounds = {}
    for op in report["ops"]:
        key = (op["name"], op["kind"], op["loc"], op.get("operand"))
        bounds.setdefault(key, []).append(op["bound"])
    plan = [tensor["name"] + tensor["sharding"] for tensor in report["tensors"]]
    fits = report["memory"]["fits"] and report["plan"]["status"] != "infeasible"
    roles = [axis["name"] + " " + axis["role"].removeprefix("mostly ")
             for axis in report["mesh"]["axes"] if axis["role"] != "none"]
    return {"time.bound": report["time"]["bound"], "memory.fits": fits,
            "parallelism": ", ".join(roles), "plan": plan, "op.bound": bounds}


def main():
    shardc, file, name, bounds = sys.argv[1:5]
    rest = sys.argv[5:]
    every = "--all" in rest
    rest = [option for option in rest if option != "--all"]
    low, high = map(int, bounds.split(".."))

    result = run([shardc, file, "--crossover", f"{name} in {bounds}",
                  "--emit-json", *rest])
    assert result.returncode == 0 and not result.stderr, result.stderr
    crossover = json.loads(result.stdout)
    assert crossover["schema"] == "shardc.crossover/1"
    assert crossover["name"] == name

    states = {}

    def plan(value):
        """The state at a value; nothing if the value is not legal."""
        if value not in states:
            result = run([shardc, file, "--dim", f"{name}={value}", "--emit-json",
                          *rest])
            assert result.returncode in (0, 1, 3), result.stderr
            states[value] = (None if result.returncode == 1
                             else state(json.loads(result.stdout)))
        return states[value]

    def differences(before, after):
        found = [what for what in ("time.bound", "memory.fits", "parallelism",
                                   "plan")
                 if before[what] != after[what]]
        for key, old in before["op.bound"].items():
            new = after["op.bound"].get(key, [])
            found += ["op.bound" for a, b in zip(old, new) if a != b]
        return sorted(found)

    printed = {}
    for change in crossover["changes"]:
        before, after = plan(change["before"]), plan(change["at"])
        between = range(change["before"] + 1, change["at"])
        assert all(plan(value) is None for value in between), change
        what = change["what"]
        if what in ("time.bound", "memory.fits", "parallelism"):
            assert before[what] == change["from"], change
            assert after[what] == change["to"], change
        elif what == "op.bound":
            key = (change["op"], change["kind"], change["loc"],
                   change.get("operand"))
            assert change["from"] in before[what][key], change
            assert change["to"] in after[what][key], change
        printed.setdefault(change["at"], []).append(what)
    for at, what in printed.items():
        before = next(change["before"] for change in crossover["changes"]
                      if change["at"] == at)
        # A plan that differs in its collectives alone is not told apart here.
        found = differences(plan(before), plan(at))
        assert sorted(w for w in what if w != "plan") == \
            [w for w in found if w != "plan"], (at, what, found)
        assert "plan" in what or "plan" not in found, (at, what, found)

    if every:
        legal = [value for value in range(low, high + 1) if plan(value)]
        assert crossover["first"] == legal[0] and crossover["last"] == legal[-1]
        for before, at in zip(legal, legal[1:]):
            found = differences(plan(before), plan(at))
            assert set(found) <= set(printed.get(at, [])), (at, found)
    print(f"{len(crossover['changes'])} changes hold")


main()
