#!/usr/bin/env python3
"""Keeps what README.md shows of shardc's output what it prints.

Writes README.md, or with --check prints the difference and fails if there is
one. The program is the first block marked `shd`; blocks marked `text` are, in
order, what the commands below print for it."""

import difflib
import os
import re
import subprocess
import sys
import tempfile

COMMANDS = [[], ["--verify"]]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    path = os.path.join(ROOT, "README.md")
    with open(path, encoding="utf-8") as file:
        readme = file.read()
    source = re.search(r"```shd\n(.*?)```", readme, re.DOTALL).group(1)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "block.shd"), "w", encoding="utf-8") as file:
            file.write(source)
        reports = iter([
            subprocess.run([os.path.join(ROOT, "build/bin/shardc"), "block.shd", *command],
                           cwd=folder, check=True, capture_output=True,
                           text=True).stdout
            for command in COMMANDS])
        current = re.sub(r"```text\n.*?```", lambda _: f"```text\n{next(reports)}```",
                         readme, count=len(COMMANDS), flags=re.DOTALL)
    if "--check" not in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(current)
        return 0
    sys.stderr.writelines(difflib.unified_diff(
        readme.splitlines(True), current.splitlines(True),
        "README.md", "current"))
    return int(readme != current)


if __name__ == "__main__":
    sys.exit(main())
