"""Whether two reports are of the same plan, in times, memory and tensors."""

import json
import sys

KEYS = ("time", "memory", "tensors")


def main(a, b):
    plans = [json.load(open(path)) for path in (a, b)]
    for key in KEYS:
        first, second = (plan[key] for plan in plans)
        assert first == second, f"{key}: {first} and {second}"
    print("the same plan")


main(*sys.argv[1:])
