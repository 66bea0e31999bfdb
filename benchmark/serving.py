#!/usr/bin/env python3
"""Times the search for the cheapest machine that serves LLaMA-3 70B.

Which slice of up to 64 chips of five machines, with which batch, serves prompts
of 8,192 and 512 output tokens for the least price at no more than 20 ms per
token? Prints the row of docs/Serving.md#latency-against-throughput that is
chosen and the wall-clock time of the command; exit status 1 above a minute.

    benchmark/serving.py [--shardc build/bin/shardc] [--jobs 2]
"""

import argparse
import json
import os
import subprocess
import sys
import time

from speed import ROOT

LIMIT_SECONDS = 60
MACHINES = [
    *(f"tpu_v5e[{x}, {y}]" for x, y in
      [(1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8)]),
    *(f"tpu_v5p[{x}, {y}, {z}]" for x, y, z in
      [(1, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4),
       (4, 4, 4)]),
    *(f"{gpu}[{size}]" for gpu in ("h100", "h200", "b200")
      for size in ("1", "2", "4", "8", "8, 2", "8, 4", "8, 8")),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shardc", default=os.path.join(ROOT, "build/bin/shardc"))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    command = [options.shardc, os.path.join(ROOT, "models/llama3-70b-serve.shd"),
               "--mesh", "auto", f"--jobs={options.jobs}",
               "--sweep", "hardware in " + ", ".join(MACHINES),
               "--sweep", "B in 8..128 * 2",
               "--target-time", "20 ms", "--emit-json"]
    start = time.perf_counter()
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.perf_counter() - start
    report = json.loads(result.stdout)
    points = report["points"]
    chosen = points[report["frontier"]["chosen"]]
    setting = " ".join(f"{key}={value}" for key, value in chosen["set"].items())
    serving = chosen["serving"]
    print(f"{len(points)} points in {seconds:.0f} s (limit {LIMIT_SECONDS} s): {setting}, "
          f"{serving['token_s'] * 1e3:.3g} ms per token, "
          f"{serving['usd_per_million_output_tokens']:.3g} USD per million tokens")
    return 1 if seconds > LIMIT_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
