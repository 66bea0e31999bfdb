#!/usr/bin/env python3
"""Checks that calibrated times grow with work and do not with faster machines.

Usage: monotone.py SHARDC PROGRAM.shd
"""

import json
import subprocess
import sys

MACHINES = {
    "more HBM": "h100[8] { hbm.bandwidth = 6.7 TB/s }",
    "more FLOPs": "h100[8] { flops.bf16 = 1978 TFLOP/s }",
    "more network": "h100[8] { network nvlink { bandwidth = 900 GB/s } }",
}


def times(*options):
    """The step's time and bytes on each point of B."""
    command = [
        sys.argv[1],
        sys.argv[2],
        "--calibrated",
        "--emit-json",
        "--sweep",
        "B in 32..65536 * 2",
        *options,
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return [
        point["report"]["time"]["scheduled_s"]
        for point in json.loads(answer.stdout)["points"]
    ]


base = times()
assert len(base) == 12, base
assert all(less < more for less, more in zip(base, base[1:])), base
print("grows with the batch")
for name, machine in MACHINES.items():
    faster = times("--hardware", machine)
    assert all(new <= old for new, old in zip(faster, base)), (name, faster, base)
    assert any(new < old for new, old in zip(faster, base)), (name, faster, base)
    print(f"{name}: never slower")
