#!/usr/bin/env python3
"""Prints a .shd program with every `repeat` written out, layer after layer, so
that plans are free to differ from layer to layer.

Weights and states of a body get the number of the iteration: `Wq` of the second
one is `Wq_1`. Bodies that read the number itself are refused.

    benchmark/unroll.py models/llama3-405b.shd | shardc -
"""

import re
import sys


def dims(text):
    """What each dim of the program is declared as."""
    found = {}
    for line in re.findall(r"\bdim\s+(.*)", text):
        # Commas in parentheses separate arguments.
        for name, value in re.findall(r"(\w+)\s*=\s*((?:\([^)]*\)|[^,(])+)", line):
            found.setdefault(name, value)
    return found


def extent(name, declared):
    """The number that a dim stands for; Python reads these expressions too."""
    names = {other: extent(other, declared)
             for other in re.findall(r"[A-Za-z_]\w*", declared[name])
             if other != "ceildiv"}
    names["ceildiv"] = lambda a, b: -(-a // b)
    return eval(declared[name].replace("/", "//"), {"__builtins__": {}}, names)


def body_end(text, start):
    """Where the brace closes that is open at `start`."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise SystemExit("error: a repeat is not closed")


def unroll(text, declared):
    """The text with the body of every `repeat` as often as it runs."""
    found = re.search(r"\brepeat\b\s*(\w+)([^{]*)\{\n?", text)
    if not found:
        return text
    index, clauses = found[1], found[2].strip()
    end = body_end(text, found.end())
    body = unroll(text[found.end():end], declared)
    if clauses or re.search(rf"\b{index}\b", body):
        raise SystemExit(f"error: 'repeat {index}' says more than how often its "
                         "body runs")
    own = re.findall(r"\b(?:weight|state)\s+(\w+)", body)
    names = re.compile(rf"\b({'|'.join(own) or '(?!)'})\b")
    copies = [names.sub(rf"\g<1>_{i}", body)
              for i in range(extent(index, declared))]
    return text[:found.start()] + "".join(copies) + unroll(text[end + 1:], declared)


def program(path):
    """The text of a file without its comments and its `repeat`s."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"[ \t]*//.*", "", file.read())
    return unroll(text, dims(text))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: unroll.py FILE.shd")
    sys.stdout.write(program(sys.argv[1]))
