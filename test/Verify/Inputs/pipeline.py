"""Verifies a pipeline in every order: pipeline.py SHARDC FILE, where FILE is written.

Messages are counted by hand: each microbatch crosses every border between virtual
stages, there and back.
"""

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
hardware h100[8]
mesh [pp=4, X=2]
dim B = 32, C = 64, D = C, V = 128, L = 10
input tokens: int32[B]
input labels: int32[B]
weight E: bf16[V, D]
x[B, D] = E[tokens[B], D]
repeat L@pp {
  weight W: bf16[C, D]
  x[B, D] = relu(x[B, C] * W[C, D])
}
logits[B, V] = x[B, D] * E[V, D]
loss[] = mean[B](cross_entropy[V](logits, labels))
train { loss = loss  microbatches = 8  clip = 1.0  schedule = %s }
"""

shardc, path = sys.argv[1:]
for order in ("gpipe", "1f1b", "1f1b(2)", "interleaved(2)", "zero_bubble", "zero_bubble(2)"):
    Path(path).write_text(PROGRAM % order)
    run = subprocess.run([shardc, path, "--verify", "--emit-json"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{order}: {run.stderr}")
    found = json.loads(run.stdout)["stages"]
    borders = len(found["layers"]) - 1
    wrong = []
    if found["schedule"] != order:
        wrong.append("another schedule")
    if found["stages"] != 4 or len(found["layers"]) != (8 if "(2)" in order and order[0] == "i" else 4):
        wrong.append(f"stages: {found}")
    if len(set(found["layers"])) < 2:
        wrong.append(f"layers are even: {found['layers']}")
    if found["messages"] != 2 * borders * found["microbatches"]:
        wrong.append(f"messages: {found}")
    # The loss, the step's number, and of E and W: weight, gradient, two moments, master.
    if found["results"] != 12:
        wrong.append(f"results: {found}")
    # Those of zero_bubble, which runs gradients of weights apart, are not measured.
    memory = found["memory"]
    if len(memory) != (0 if order.startswith("zero") else 4) or any(
        stage["peak"] != stage["predicted"] for stage in memory
    ):
        wrong.append(f"memory: {memory}")
    if not found["verified"]:
        wrong.append("differs")
    print(f"{order}: {'; '.join(wrong) or 'verified'}")
