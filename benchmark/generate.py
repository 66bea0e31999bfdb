#!/usr/bin/env python3
"""Prints a .shd program with a given number of statements: residual blocks of
four, written out one after the other instead of in a `repeat`."""

import sys

HEADER = """\
hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim B = 1024, D = 512, F = 1024
input in: bf16[B@X, D]
x = in
"""

BLOCK = """\
weight g{i}: bf16[D]
weight u{i}: bf16[D, F@Y]
weight d{i}: bf16[F@Y, D]
a{i}[B, D] = rmsnorm[D](x, g{i})
h{i}[B, F] = a{i}[B, D] * u{i}[D, F]
s{i}[B, F] = silu(h{i}[B, F])
x[B, D] += s{i}[B, F] * d{i}[F, D]
"""


def program(statements):
    """The text of a program of `statements` statements, rounded up to a block."""
    blocks = [BLOCK.format(i=i) for i in range(-(-statements // 4))]
    return HEADER + "".join(blocks) + "output x\n"


if __name__ == "__main__":
    sys.stdout.write(program(int(sys.argv[1])))
