#!/usr/bin/env python3
"""Makes a .shd program smaller while the same check of random-programs fails.

    utils/reduce-program.py PROGRAM.shd [--seed S] [--tool PATH] > small.shd

Drops blocks of lines, lines, placements, terms and arguments, as long as the
first failure has the same check and plan. shardc-reduce does the same for IR.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

FAILED = re.compile(r"^FAILED (\S+) of plan (\S+):", re.M)


class Tool:
    """random-programs on texts; remembers what it said of each."""

    def __init__(self, path, seed):
        self.command = [path, "--seed", str(seed)]
        self.known = {}
        self.file = os.path.join(tempfile.mkdtemp(), "program.shd")

    def run(self, text):
        with open(self.file, "w") as out:
            out.write(text)
        padding = ["--allow-padding"] if "--allow-padding" in text else []
        done = subprocess.run(
            [*self.command, self.file, *padding], capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    def failure(self, text):
        """The check and the plan that fail, `crash`, or nothing."""
        if text not in self.known:
            status, said = self.run(text)
            match = FAILED.search(said)
            crashed = status < 0 or status > 1
            self.known[text] = (
                "crash" if crashed else match.groups() if match else None
            )
        return self.known[text]


def blocks(lines):
    """Ranges of lines to drop: whole blocks, then runs of lines, then lines."""
    for start, line in enumerate(lines):
        if line.rstrip().endswith("{"):
            depth = 0
            for end in range(start, len(lines)):
                depth += lines[end].count("{") - lines[end].count("}")
                if depth == 0:
                    yield [*range(start, end + 1)]
                    yield [start, end]
                    break
    size = len(lines) // 2
    while size >= 1:
        for start in range(0, len(lines), size):
            yield [*range(start, min(start + size, len(lines)))]
        size //= 2


def without_lines(text):
    lines = text.splitlines()
    for dropped in blocks(lines):
        rest = [line for i, line in enumerate(lines) if i not in dropped]
        yield "\n".join(rest) + "\n"


# What to replace where, one occurrence at a time.
SIMPLER = [
    (r"@(\([^()]*\)|\?|\w+)", ""),
    (r"\{\+[^{}]*\}", ""),
    (r"(?m)^(\s*\w+): \w+(\[.*\] = )", r"\1\2"),
    (r" [-+*/] [\w.]+(\[[^\[\]]*\])?(?=[ ),]|$)", ""),
    (r"[\w.]+(\[[^\[\]]*\])? [-+*/] ", ""),
    (r", \w+=[^,()]*(\([^()]*\))?", ""),
    (r"\b[a-z]\w*\(([^()]*)\)", r"\1"),
    (r", \w+ = [^,\n]*", ""),
    (r"(?<=\[)\w+=\d+, ", ""),
    (r", \w+=\d+(?=[\],])", ""),
    (r" \{ flops[^}]*\}", ""),
]


def with_simpler_parts(text):
    for pattern, replacement in SIMPLER:
        for match in reversed([*re.finditer(pattern, text)]):
            changed = match.expand(replacement)
            yield text[: match.start()] + changed + text[match.end() :]


def reduce(text, fails):
    changed = True
    while changed:
        changed = False
        for variants in (without_lines, with_simpler_parts):
            again = True
            while again:
                again = False
                for candidate in variants(text):
                    if len(candidate) < len(text) and fails(candidate):
                        text = candidate
                        again = changed = True
                        break
    return text


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=0, help="of the random plan")
    parser.add_argument(
        "--tool", default=os.path.join(here, "../build/test/Random/random-programs")
    )
    arguments = parser.parse_args()
    with open(arguments.program) as source:
        text = source.read()
    tool = Tool(arguments.tool, arguments.seed)
    wanted = tool.failure(text)
    if wanted is None:
        sys.exit(f"reduce-program.py: error: '{arguments.program}' fails no check")
    print(reduce(text, lambda other: tool.failure(other) == wanted), end="")


if __name__ == "__main__":
    main()
