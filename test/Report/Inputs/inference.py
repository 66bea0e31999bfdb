"""Asks shardc about a pipeline of inference and compares with a pencil.

    inference.py SHARDC FILE

HBM and network take no time. All 16 rows are 32 us of a layer's einsum, 64 us of a
stage's two; m microbatches on p = 4 stages take (m + p - 1) 64 / m us, in v chunks
(m + (p - 1) / v) 64 / m."""

import json
import subprocess
import sys
from pathlib import Path

SHARDC, FILE = sys.argv[1:3]
TEXT = Path(FILE).read_text(encoding="utf-8")
FAILURES = []


def ask(old="", new="", *options):
    assert old in TEXT, old
    path = Path(FILE).with_suffix(".asked.shd")
    path.write_text(TEXT.replace(old, new) if old else TEXT, encoding="utf-8")
    run = subprocess.run([SHARDC, path, "--emit-json", *options],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def expect(what, found, wanted):
    isNear = (abs(found - wanted) <= 1e-6 * max(abs(wanted), 1e-12)
              if isinstance(wanted, float) else found == wanted)
    if not isNear:
        FAILURES.append(f"{what}: found {found}, expected {wanted}")


def step(m, p=4, v=1):
    return (m + (p - 1) / v) * 64e-6 / m


for m in (1, 2, 4, 8, 16):
    report = ask("L@pp", f"L@pp microbatches({m})")
    # p divides m where stages hold chunks: layers are 8, so that v is at most 2.
    best = step(m, v=2) if m % 4 == 0 else step(m)
    expect(f"{m} microbatches", report["time"]["scheduled_s"], best)
    expect(f"{m}", report["pipeline"]["microbatches"], m)
    expect(f"bubble of {m}", report["pipeline"]["bubble"], 1 - 64e-6 / best)
    tried = {each["schedule"]: each["scheduled_s"] for each in report["schedules"]}
    expect(f"forward of {m}", tried["gpipe"], step(m))
    expect("training", report["training"], None)
    for number, stage in enumerate(report["stages"]):
        expect("layers", sum(stage["layers"]), 2)
        expect("work", stage["time_s"], 64e-6)
        memory = stage["memory"]
        expect("weights", memory["weights"], 4_000_000)
        # The output is on the last stage: 16 rows of 2,000 B.
        expect(f"states of {number}", memory["states"], 32_000 if number == 3 else 0)
        expect("gradients", memory["gradients"], 0)
        expect("saved", memory["saved"], 0)
    expect("parameters", report["parameters"]["total"], 8_000_000)
    expect("FLOPs", report["flops"]["model"], 2.0 * 16 * 8_000_000)
    expect("MFU", report["flops"]["mfu"], 64e-6 / best)

# More microbatches shorten the bubble: of an open number the most is best.
report = ask()
expect("open", report["pipeline"]["microbatches"], 16)
expect("open step", report["time"]["scheduled_s"], step(16, v=2))
expect("variants", sorted(each["microbatches"] for each in report["variants"]),
       [1, 2, 4, 8, 16])

# 5 layers on 4 stages: one has 2, and the others wait for it.
report = ask("L = 8", "L = 5")
expect("uneven", sorted(sum(each["layers"]) for each in report["stages"]), [1, 1, 1, 2])
slow, fast = 4e-6, 2e-6  # of a microbatch of 1 row
expect("uneven step", report["time"]["scheduled_s"], 16 * slow + 3 * fast)

# 2,000 B of a row at 1 GB/s are 2 us, beside the next microbatch's compute of 4 us:
# they delay the first microbatch at each of 3 borders.
report = ask("1_000_000_000 GB/s", "1 GB/s")
tried = {each["schedule"]: each["scheduled_s"] for each in report["schedules"]}
expect("transfers", tried["gpipe"], step(16) + 3 * 2e-6)
expect("a transfer", report["pipeline"]["transfer_s"], 2e-6)

for failure in FAILURES:
    print(failure)
if not FAILURES:
    print("all figures follow")
