"""Compares the plan of a program with the choices of its --emit-problem.

compare-problem.py SHARDC SHARDC-SOLVE PROGRAM OPTION...
"""

import json
import subprocess
import sys

shardc, solve, program, *options = sys.argv[1:]
report = json.loads(subprocess.run(
    [shardc, program, "--objective=upper", "--emit-json"] + options,
    stdout=subprocess.PIPE, check=True).stdout)
problem = subprocess.run([shardc, program, "--emit-problem"] + options,
                         stdout=subprocess.PIPE, check=True).stdout
answer = json.loads(subprocess.run([solve, "-", "--json"], input=problem,
                                   stdout=subprocess.PIPE, check=True).stdout)
expected = round(report["time"]["upper_s"] * 1e12)
equal = "equal" if answer["cost"] == expected else f"{answer['cost']} {expected}"
print(report["plan"]["status"], answer["status"], equal)
