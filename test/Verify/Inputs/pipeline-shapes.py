"""Verifies pipelines of many shapes: pipeline-shapes.py SHARDC FILE, where FILE is written."""

import json
import subprocess
import sys
from pathlib import Path

HEAD = """
hardware h100[8]
mesh [pp=4, X=2]
dim B = 32, C = 64, D = C, V = 128, L = 9, M = 2, K = 3
input tokens: int32[B]
input labels: int32[B]
input s: bf16[B, D]
weight E: bf16[V, D]
weight O: bf16[D%(pin)s, V]
weight g: bf16[D]
weight Q: bf16[C, D]
"""
FIRST = "x[B, D] = E[tokens[B], D]\n"
LAYERS = """
repeat L@pp {
  weight W: bf16[C%(pin)s, D]
  x[B%(pin)s, D] = relu(x[B, C] * W[C, D])%(layer)s
}
"""
LAST = """
logits[B, V] = x[B, D] * O[D, V]
loss[] = mean[B](cross_entropy[V](logits, labels))
"""


def repeat(index, weight):
    return f"repeat {index} {{\n  weight {weight}: bf16[C, D]\n  x[B, D] = relu(x[B, C] * {weight}[C, D])\n}}\n"


NESTED = "repeat M {\n  repeat K {\n    weight A: bf16[C, D]\n    x[B, D] = relu(x[B, C] * A[C, D])\n  }\n}\n"
RESIDUAL = "x[B, D] = x[B, D] + x[B, C] * Q[C, D]\n"
NORM = "x[B, D] = rmsnorm[D](x, 1.0 + g)\n"
# By name: what the first stage has beside the embedding, the layers, the last stage; and where the layers' results lie.
SHAPES = {
    "repeats on the first and the last stage": (repeat("M", "A"), "", repeat("K", "R")),
    "repeats of one index on both": (repeat("M", "A"), "", repeat("M", "R")),
    "nested repeats on the first stage": (NESTED, "", ""),
    "a norm on the first stage": (NORM, "", ""),
    "a norm of one weight on both": (NORM, "", NORM),
    "an input read by the layers": ("", " + s[B, D]", ""),
    "an input read by all": ("x += s\n", " + s[B, D]", "x += s\n"),
    "labels on the first stage": ("x += E[labels[B], D]\n", "", ""),
    "results that nothing reads": ("", "\n  weight A: bf16[C, D]\n  z[B, D] = x[B, C] * A[C, D]", ""),
    # The norm's backward pass is no part of the forward pass' kernel.
    "a norm that a product and a sum read": (NORM + RESIDUAL, "", ""),
    # The kernel that adds up both gradients ends late, and so does the part of it on the first stage.
    "a product of one weight on both": (NORM + RESIDUAL, "", RESIDUAL),
    # The last stage keeps what it has gathered for the backward pass, and what it was gathered from.
    "results of layers that are gathered": ("", "", "", "@X"),
    # Both products of the backward pass compute the sum from its operands.
    "an input added to results that are gathered": ("", "", "x += s\n", "@X"),
    # Each stage reduces its own summand of the gradient.
    "tied embeddings with a sharded batch": ("x[B@X, D] = x * 2.0\n", "", ""),
    # A kernel's derivative is no part of the forward pass.
    "a soft cap behind the layers": ("", "", "x[B, D] = 5.0 * tanh(x / 5.0)\n"),
}
STEPS = (
    "train { loss = loss  microbatches = 8  schedule = gpipe  clip = 1.0 }",
    "train { loss = loss  microbatches = 8  schedule = zero_bubble  frozen = E  clip = 1.0 }",
    "train { loss = loss  microbatches = 8  schedule = 1f1b  optimizer = sgd(momentum=none) }",
    # Buffers of saved values are full at one item, other values at another.
    "train { loss = loss  microbatches = 8  schedule = interleaved(2)  optimizer = sgd  remat = full }",
    # No layer has a backward pass, but where the first stage learns.
    "train { loss = loss  microbatches = 8  schedule = 1f1b  frozen = E, g, Q, W }",
    "output logits\noutput loss",
    "output logits",
)

shardc, path = sys.argv[1:]
for name, (first, layer, last, *pin) in SHAPES.items():
    for step in STEPS:
        parts = {"layer": layer, "pin": pin[0] if pin else ""}
        text = f"{HEAD % parts}{FIRST}{first}{LAYERS % parts}{last}{LAST}{step}\n"
        if "tied" in name:
            text = text.replace("* O[D, V]", "* E[V, D]").replace("frozen = E, g", "frozen = g")
        Path(path).write_text(text)
        run = subprocess.run([shardc, path, "--opt=propagate", "--verify", "--emit-json"], capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{name}, {step}: {run.stderr}")
        memory = json.loads(run.stdout)["stages"]["memory"]
        if bool(memory) == ("zero_bubble" in step):
            sys.exit(f"{name}, {step}: {memory}")
    print(f"{name}: verified")
