"""Prices every pair of meshes by itself, each in a run of its own, and compares
the cheapest one that keeps the target with the answer of a sweep with mesh auto.

check-serving-pairs.py SHARDC SWEEP.json TARGET BATCHES FILE.shd MACHINE=MESH;MESH...

FILE.shd may write PREFILL and DECODE for the meshes of separate machines; else
both phases have one mesh."""

import itertools
import json
import subprocess
import sys

shardc, swept, target, batches, path = sys.argv[1:6]
target = float(target)
with open(swept) as file:
    points = json.load(file)
with open(path) as file:
    program = file.read()
is_separate = "PREFILL" in program


def price(machine, batch, prefill, decode):
    text = program.replace("MACHINE", machine)
    text = text.replace("PREFILL", prefill).replace("DECODE", decode)
    flags = [] if is_separate else ["--hardware", machine, "--mesh", decode]
    run = subprocess.run([shardc, "-", "--dim", f"B={batch}", "--emit-json", *flags],
                         input=text, stdout=subprocess.PIPE, text=True)
    serving = json.loads(run.stdout)["serving"] if run.stdout else None
    if not serving or not serving["fits"] or serving["token_s"] > target:
        return None
    return serving["usd_per_request"]


found = {}
for machine, meshes in (each.split("=", 1) for each in sys.argv[6:]):
    meshes = meshes.split(";")
    pairs = itertools.product(meshes, meshes) if is_separate else zip(meshes, meshes)
    for (prefill, decode), batch in itertools.product(list(pairs), batches.split(",")):
        found[machine, batch, prefill, decode] = price(machine, batch, prefill, decode)
kept = {pair: usd for pair, usd in found.items() if usd is not None}
assert kept and len(kept) < len(found), "the target must tell pairs apart"
best = min(kept, key=kept.get)
chosen = points["points"][points["frontier"]["chosen"]]
answer = chosen["serving"]["usd_per_request"]
assert abs(answer / kept[best] - 1) < 1e-9, (answer, kept[best], best)
assert str(chosen["set"]["B"]) == best[1] and chosen["set"]["hardware"] == best[0], (chosen["set"], best)
