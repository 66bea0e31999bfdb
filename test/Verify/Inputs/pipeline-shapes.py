"""Verifies pipelines of many shapes: pipeline-shapes.py SHARDC FILE, where FILE is written."""

import json
import subprocess
import sys
from pathlib import Path

HEAD = """
hardware h100[8]
mesh [pp=4, X=2]
dim B = 32, C = 64, D = C, V = 128, L = 5, M = 2, K = 3
input tokens: int32[B]
input labels: int32[B]
input s: bf16[B, D]
weight E: bf16[V, D]
weight O: bf16[D, V]
weight g: bf16[D]
"""
FIRST = "x[B, D] = E[tokens[B], D]\n"
LAYERS = """
repeat L@pp {
  weight W: bf16[C, D]
  x[B, D] = relu(x[B, C] * W[C, D])%s
}
"""
LAST = """
logits[B, V] = x[B, D] * O[D, V]
loss[] = mean[B](cross_entropy[V](logits, labels))
"""


def repeat(index, weight):
    return f"repeat {index} {{\n  weight {weight}: bf16[C, D]\n  x[B, D] = relu(x[B, C] * {weight}[C, D])\n}}\n"


NESTED = "repeat M {\n  repeat K {\n    weight A: bf16[C, D]\n    x[B, D] = relu(x[B, C] * A[C, D])\n  }\n}\n"
NORM = "x[B, D] = rmsnorm[D](x, 1.0 + g)\n"
# By name: what the first stage has beside the embedding, the layers, the last stage.
SHAPES = {
    "repeats on the first and the last stage": (repeat("M", "A"), "", repeat("K", "Q")),
    "repeats of one index on both": (repeat("M", "A"), "", repeat("M", "Q")),
    "nested repeats on the first stage": (NESTED, "", ""),
    "a norm on the first stage": (NORM, "", ""),
    "a norm of one weight on both": (NORM, "", NORM),
    "an input read by the layers": ("", " + s[B, D]", ""),
    "an input read by all": ("x += s\n", " + s[B, D]", "x += s\n"),
    "labels on the first stage": ("x += E[labels[B], D]\n", "", ""),
}
TRAINS = ("schedule = gpipe  clip = 1.0", "schedule = zero_bubble  frozen = E  clip = 1.0", "schedule = 1f1b  optimizer = sgd(momentum=none)")

shardc, path = sys.argv[1:]
for name, (first, layer, last) in SHAPES.items():
    for train in TRAINS:
        text = f"{HEAD}{FIRST}{first}{LAYERS % layer}{last}{LAST}train {{ loss = loss  microbatches = 8  {train} }}\n"
        Path(path).write_text(text)
        run = subprocess.run([shardc, path, "--opt=propagate", "--verify", "--emit-json"], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{name}, {train}: {run.stderr}")
        # The last stage has the labels until the first one has read them, too.
        for stage in json.loads(run.stdout)["stages"]["memory"]:
            if stage["peak"] != stage["predicted"] and "labels" not in name:
                sys.exit(f"{name}, {train}: {stage}")
    print(f"{name}: verified")
