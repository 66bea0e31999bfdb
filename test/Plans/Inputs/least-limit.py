"""Asks for the smallest --memory-limit of a program, and plans with it.

least-limit.py SHARDC FILE.shd [OPTION ...]

Fails unless the program has a plan within the limit that shardc names, and none
within a byte less.
"""

import re
import subprocess
import sys


def plan(limit):
    command = [*sys.argv[1:], "--memory-limit", str(limit)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stderr


code, errors = plan(0)
named = re.search(r"smallest --memory-limit that works is (\d+)", errors)
if code != 3 or not named:
    sys.exit(f"no limit is named:\n{errors}")
limit = int(named[1])
for bytes, expected in (limit, 0), (limit - 1, 3):
    code, errors = plan(bytes)
    if code != expected:
        sys.exit(f"{bytes} bytes: exit status {code}, expected {expected}\n{errors}")
