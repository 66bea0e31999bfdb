#!/usr/bin/env python3
"""Runs shardc on prefixes of a program; none may end but with status 0 or 1.

Usage: truncate.py SHARDC FILE FLAG. With status 1 there is an error with a
place in the file; every prefix of up to a few hundred is tried, evenly spaced
in longer files, and the whole file must be accepted.
"""
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PREFIXES = 300


def problem(shardc, flag, path, text):
    path.write_bytes(text)
    result = subprocess.run(
        [shardc, flag, str(path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    if result.returncode == 0 or (
        result.returncode == 1
        and re.search(rb"\.shd:\d+:\d+: error: ", result.stderr)
    ):
        return result.returncode, None
    return result.returncode, result.stderr[-300:]


def main():
    shardc, source, flag = sys.argv[1:]
    text = Path(source).read_bytes()
    step = max(1, len(text) // PREFIXES)
    lengths = [*range(0, len(text), step), len(text)]
    with tempfile.TemporaryDirectory() as directory:
        with ThreadPoolExecutor(2) as pool:
            results = list(
                pool.map(
                    lambda n: problem(
                        shardc, flag, Path(directory) / f"{n}.shd", text[:n]
                    ),
                    lengths,
                )
            )
    failed = 0
    for length, (status, why) in zip(lengths, results):
        if why is not None:
            failed += 1
            print(f"prefix of {length} bytes: status {status}: {why!r}")
    if results[-1][0] != 0:
        failed += 1
        print("the whole file is refused")
    refused = sum(status == 1 for status, _ in results)
    print(f"{len(lengths)} prefixes, {refused} refused, {failed} failed")
    return 1 if failed or not refused else 0


sys.exit(main())
