#!/usr/bin/env python3
"""Prints `N passed, N failed` from the JSON file that `lit --output` writes.

Exit status 1 if a test failed or none ran."""

import json
import sys

PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
NOT_RUN = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def main(path):
    with open(path, encoding="utf-8") as file:
        codes = [test["code"] for test in json.load(file)["tests"]]
    passed = sum(code in PASSED for code in codes)
    failed = sum(code not in PASSED | NOT_RUN for code in codes)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
