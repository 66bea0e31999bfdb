"""Asks shardc about pipelines whose figures a pencil finds, and compares.

    pipeline.py SHARDC FOLDER

The machine of these programs has HBM and a network of no time and an einsum of a
layer takes 4 us, so that F, B and W of a layer are 4 us each. What stands in
FOLDER is written by hand; this file replaces sizes and schedules in it. The
simulation is written apart from shardc's: it looks for the stage that may run its
next item first, again and again, until all have run."""

import json
import os
import subprocess
import sys

SHARDC, FOLDER = sys.argv[1:3]
FAILURES = []
US = 1e-6
LAYER = 4  # us of F, of B and of W


def ask(name, *replacements, fails=False):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        text = file.read()
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    path = os.path.join(FOLDER, "asked.shd")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    run = subprocess.run([SHARDC, path, "--emit-json"], capture_output=True,
                         text=True, check=False)
    if fails:
        return run.returncode, run.stderr
    if run.returncode != 0:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def expect(what, found, wanted):
    isNear = (abs(found - wanted) <= 1e-6 * max(abs(wanted), 1e-9)
              if isinstance(wanted, (int, float)) else found == wanted)
    if not isNear:
        FAILURES.append(f"{what}: found {found}, expected {wanted}")


def withSchedule(schedule):
    return "remat = none", f"remat = none  schedule = {schedule}"


def order(schedule, stage, stages, count, chunks):
    """The items of a stage, of a contract's text: (kind, microbatch, chunk)."""
    p, s, m, v = stages, stage, count, chunks
    if schedule == "gpipe":
        return ([("F", i, 0) for i in range(m)] +
                [("BW", i, 0) for i in range(m)])
    items = []
    if schedule.startswith("interleaved"):
        def item(kind, k):
            chunk = k % (p * v) // p
            return (kind, p * (k // (p * v)) + k % p,
                    chunk if kind == "F" else v - 1 - chunk)
        warm = min(m * v, 2 * (p - 1 - s) + (v - 1) * p)
        items = [item("F", k) for k in range(warm)]
        for k in range(m * v):
            if warm + k < m * v:
                items.append(item("F", warm + k))
            items.append(item("BW", k))
        return items
    warm, delay, isSplit = {
        "1f1b": (p - s, 0, False),
        "1f1b(2)": (2 * (p - s) - 1, 0, False),
        "zero_bubble": (p - s, s, True),
        "zero_bubble(2)": (2 * p - 1 - 2 * s, 2 * s, True),
    }[schedule]
    warm = min(warm, m)
    items = [("F", i, 0) for i in range(warm)]
    for i in range(m):
        items.append(("B" if isSplit else "BW", i, 0))
        if isSplit and i - delay >= 0:
            items.append(("W", i - delay, 0))
        if i + warm < m:
            items.append(("F", i + warm, 0))
    if isSplit:
        items += [("W", i, 0) for i in range(max(0, m - delay), m)]
    return items


def simulate(schedule, forward, backward, weights, count, chunks=1, transfer=0,
             waits=False):
    """The step, of times of [stage][chunk]. Links carry one message at a time."""
    stages = len(forward)
    items = [order(schedule, s, stages, count, chunks) for s in range(stages)]
    at, first = [0] * stages, [None] * stages
    free = [0] * stages
    arrived = {}  # (kind, microbatch, virtual stage): when its input is there
    link = {}
    last = stages * chunks - 1
    for m in range(count):
        arrived["F", m, 0] = 0
    while any(at[s] < len(items[s]) for s in range(stages)):
        best = None
        for s in range(stages):
            if at[s] == len(items[s]):
                continue
            kind, m, c = items[s][at[s]]
            virtual = c * stages + s
            needs = ("F" if kind == "F" else "B", m, virtual)
            if kind != "W" and needs not in arrived:
                continue
            start = max(free[s], 0 if kind == "W" else arrived[needs])
            if best is None or start < best[0]:
                best = (start, s)
        start, s = best
        kind, m, c = items[s][at[s]]
        virtual = c * stages + s
        takes = {"F": forward[s][c], "B": backward[s][c], "W": weights[s][c],
                 "BW": backward[s][c] + weights[s][c]}[kind]
        end = start + takes
        at[s] += 1
        free[s] = end
        first[s] = start if first[s] is None else first[s]
        if kind == "W":
            continue
        to = virtual + 1 if kind == "F" else virtual - 1
        if kind == "F" and virtual == last:
            arrived["B", m, virtual] = end
            continue
        if to < 0:
            continue
        pair = s, to % stages
        takes = 0 if pair[0] == pair[1] else transfer
        leaves = max(end, link.get(pair, 0))
        link[pair] = leaves + takes
        arrived["F" if kind == "F" else "B", m, to] = leaves + takes
    if waits:
        return max(free)
    return max(free[s] - first[s] for s in range(stages))


def equalStages():
    """8 layers on 4 stages, 8 microbatches: t = 24 us, F = B = W = 8 us."""
    m, p, t, f = 8, 4, 24, 8
    closed = {
        "gpipe": (m + p - 1) * t,                           # 264
        "1f1b": (m + p - 1) * t,
        "interleaved(2)": m * t + (p - 1) * t / 2,          # 228
        "zero_bubble": m * t + (p - 1) * 2 * f - (p - 1) * f,  # 216
        "zero_bubble(2)": m * t,                            # 192
    }
    # Without the work of other stages where gradients of weights are apart.
    bound = {"gpipe": 264, "1f1b": 264, "1f1b(2)": 264, "interleaved(2)": 228,
             "zero_bubble": 192, "zero_bubble(2)": 192}
    kept = {
        "gpipe": [m] * p,
        "1f1b": [p - s for s in range(p)],
        "1f1b(2)": [2 * (p - s) - 1 for s in range(p)],
        # p + (p - 1 - 2 s) / v stages' worth, in chunks of half a stage.
        "interleaved(2)": [2 * p + p - 1 - 2 * s for s in range(p)],
        "zero_bubble": [p] * p,
        "zero_bubble(2)": [2 * p - 1] * p,
    }
    # Of a layer and a microbatch, x of 2 rows: 4,000 B. Where W is apart, the
    # gradient that it reads is kept, too, from B to W. One microbatch's in one
    # layer is an activation of the pass that runs.
    saved = {
        "gpipe": [8 * 8000] * p,
        "1f1b": [8000 * (p - s) for s in range(p)],
        "1f1b(2)": [8000 * (2 * (p - s) - 1) for s in range(p)],
        "interleaved(2)": [4000 * (3 * p - 1 - 2 * s) for s in range(p)],
        "zero_bubble": [4 * 8000 + 8000 * (s + 1) - 4000 for s in range(p)],
        "zero_bubble(2)": [7 * 8000 + 8000 * (2 * s + 1) - 4000
                           for s in range(p)],
    }
    for schedule, counts in kept.items():
        report = ask("equal.shd", withSchedule(schedule))
        chunks = 2 if schedule == "interleaved(2)" else 1
        per = [[f / chunks] * chunks] * p
        step = simulate(schedule, per, per, per, m, chunks)
        if schedule in closed:
            expect(f"{schedule} closed form", step, closed[schedule])
        time, training = report["time"], report["training"]
        expect(schedule, training["schedule"], schedule)
        expect(f"{schedule} step", time["scheduled_s"], step * US)
        expect(f"{schedule} bound", report["plan"]["bound_s"],
               bound[schedule] * US)
        expect(f"{schedule} bubble", training["bubble"], 1 - m * t / step)
        expect(f"{schedule} layers", training["layers"], [2] * p)
        phases = time["phases_s"]
        expect(f"{schedule} forward", phases["forward"], m * f * US)
        expect(f"{schedule} backward", phases["backward"], 2 * m * f * US)
        expect(f"{schedule} pipeline", phases["pipeline"], (step - m * t) * US)
        expect(f"{schedule} phases", sum(phases.values()), time["scheduled_s"])
        expect(f"{schedule} mfu", report["flops"]["mfu"], m * t / step)
        stages = report["stages"]
        expect(f"{schedule} in flight", [s["in_flight"] for s in stages], counts)
        for number, stage in enumerate(stages):
            memory = stage["memory"]
            expect(f"{schedule} work", stage["time_s"], m * t * US)
            # 2 million parameters, of 2, 4 and 12 B, and the optimizer's step.
            expect(f"{schedule} weights", memory["weights"], 4_000_000)
            expect(f"{schedule} gradients", memory["gradients"], 8_000_000)
            expect(f"{schedule} optimizer", memory["optimizer"], 24_000_004)
            # The last stage keeps a scalar of each microbatch in flight, too.
            scalars = memory["saved"] - saved[schedule][number]
            allowed = 2 * 2 * m if number == p - 1 else 0
            if not 0 <= scalars <= allowed:
                FAILURES.append(f"{schedule} saved on stage {number}: found "
                                f"{memory['saved']}, expected "
                                f"{saved[schedule][number]}")


def chosenOrder():
    """`auto` is none but the fastest that fits."""
    chosen = ask("equal.shd")
    steps = {each["schedule"]: each["scheduled_s"]
             for each in chosen["schedules"]}
    expect("tried", sorted(steps), sorted(
        ["gpipe", "1f1b", "1f1b(2)", "interleaved(2)", "zero_bubble",
         "zero_bubble(2)"]))
    for schedule, step in steps.items():
        written = ask("equal.shd", withSchedule(schedule))
        expect(f"{schedule} tried", step, written["time"]["scheduled_s"])
        if chosen["time"]["scheduled_s"] > written["time"]["scheduled_s"]:
            FAILURES.append(f"{schedule} is faster than auto")
    # The two that keep most do not fit in 36.09 MB: 1f1b keeps least of all.
    least = min(chosen["schedules"], key=lambda each: each["memory"])
    expect("least memory", least["schedule"], "1f1b")
    limited = ask("equal.shd",
                  ("80 GB", f"{least['memory'] / 1e6:.6f} MB"))
    expect("limited", limited["training"]["schedule"], "1f1b")


def unevenLayers():
    """7 layers on 2 stages: one has 4, and 4 x 12 us is the pace. The first
    stage, which keeps more microbatches, holds fewer."""
    two = (("ideal[4]", "ideal[2]"), ("pp=4", "pp=2"), ("L = 8", "L = 7"))
    for schedule in ("gpipe", "1f1b", "1f1b(2)", "zero_bubble",
                     "zero_bubble(2)"):
        report = ask("equal.shd", *two, withSchedule(schedule))
        expect("uneven layers", report["training"]["layers"], [3, 4])
        per = [[3 * LAYER], [4 * LAYER]]
        step = simulate(schedule, per, per, per, 8)
        expect(f"uneven {schedule}", report["time"]["scheduled_s"], step * US)
        expect(f"uneven {schedule} bubble", report["training"]["bubble"],
               1 - 8 * 48 / step)
    # 7 layers in 4 chunks: 2, 2, 2 and 1.
    report = ask("equal.shd", *two, withSchedule("interleaved(2)"))
    layers = [stage["layers"] for stage in report["stages"]]
    expect("chunks", sorted(sum(layers, [])), [1, 2, 2, 2])
    per = [[LAYER * n for n in chunks] for chunks in layers]
    expect("uneven interleaved", report["time"]["scheduled_s"],
           simulate("interleaved(2)", per, per, per, 8, 2) * US)


def transfers():
    """4,000 B of x at 1 GB/s are 4 us, as long as half of F; the slowest stage
    is in the middle and sends 8 of them each way."""
    slow = ("1_000_000_000 GB/s", "1 GB/s")
    per = [[8]] * 4
    for schedule in ("gpipe", "1f1b", "1f1b(2)", "zero_bubble",
                     "zero_bubble(2)"):
        report = ask("equal.shd", slow, withSchedule(schedule))
        expect(f"{schedule} with transfers", report["time"]["scheduled_s"],
               simulate(schedule, per, per, per, 8, transfer=4) * US)
    report = ask("equal.shd", slow, withSchedule("interleaved(2)"))
    per = [[4, 4]] * 4
    expect("interleaved with transfers", report["time"]["scheduled_s"],
           simulate("interleaved(2)", per, per, per, 8, 2, transfer=4) * US)


def tiedWeights():
    """E is on the first stage and on the last one, whose product with it takes
    8 us of F, B and W each. The last stage has 1 layer, its 36 us are the pace
    of stages of 3 layers."""
    report = ask("tied.shd")
    expect("tied layers", report["training"]["layers"], [2, 3, 2, 1])
    expect("slowest", [s["time_s"] for s in report["stages"]],
           [8 * us * US for us in (24, 36, 24, 36)])
    per = [[8], [12], [8], [4 + 8]]
    free = simulate("1f1b", per, per, per, 8, waits=True)
    expect("tied step", report["time"]["scheduled_s"], free * US)
    # The gradient of E, 2000 x 1000 in f32, goes from each end to the other one
    # at 1 GB/s: 8 ms, after the last microbatch.
    slow = ask("tied.shd", ("1_000_000_000 GB/s", "1 GB/s"))
    step = simulate("1f1b", per, per, per, 8, transfer=4, waits=True)
    least = step * US + 8_000_000 / 1e9 - 40 * US
    most = step * US + 8_000_000 / 1e9
    if not least <= slow["time"]["scheduled_s"] <= most * (1 + 1e-6):
        FAILURES.append(f"tied, slow network: found "
                        f"{slow['time']['scheduled_s']}, expected {most}")
    # 2 M parameters of E, 1 M of each layer.
    expect("tied parameters", report["parameters"]["total"], 10_000_000)
    states = [2 * 2 + 2 * 2, 3 * 2, 2 * 2, 2 * 2 + 2]
    expect("tied weights", [s["memory"]["weights"] / 1e6
                            for s in report["stages"]], states)
    for stage, weights in zip(report["stages"], states):
        expect("tied optimizer", stage["memory"]["optimizer"],
               6 * weights * 1e6 + 4)


def ownAxis():
    """Nothing but x between stages goes over pp: 4,000 B or, if x is split over
    X, 2,000 B, of 8 microbatches each way."""
    report = ask("sharded.shd")
    for operation in report["ops"]:
        if "pp" in operation.get("axes", []):
            FAILURES.append(f"{operation['name']} goes over pp")
    for axes in report["traffic"]["network"]:
        if "pp" in axes.split(",") and axes != "pp":
            FAILURES.append(f"traffic over {axes}")
    sent = report["traffic"]["network"]["pp"]
    if not any(abs(sent - bytes * 8 * ways) < 1
               for bytes in (2000, 4000) for ways in (1, 2)):
        FAILURES.append(f"{sent} B over pp")


def meshes():
    """One microbatch fills no pipeline: four devices that share each product
    take 192 us, where 4 stages take 576 us. The axes are not alike."""
    one = ("microbatches = 8", "microbatches = 1")
    stages = ask("equal.shd", one)
    expect("one microbatch", stages["time"]["scheduled_s"],
           simulate("zero_bubble", *[[[64]] * 4] * 3, 1) * US)
    best = ask("equal.shd", one, ("mesh [pp=4]", "mesh auto[pp, X]"))
    expect("stages of the best mesh", best["training"]["stages"], 1)
    expect("step of the best mesh", best["time"]["scheduled_s"], 192 * US)
    # More stages than layers are no mesh, and no error.
    wide = ask("equal.shd", ("mesh [pp=4]", "mesh auto[pp, X]"),
               ("ideal[4]", "ideal[16]"))
    expect("wide mesh", wide["time"]["scheduled_s"], 48 * US)


def refused():
    """Each at the repeat."""
    for replacements, message in (
            ([("L = 8", "L = 3")],
             "'L' has 3 layers, fewer than the 4 stages of 'pp'"),
            ([("L = 8", "L = 7"), withSchedule("interleaved(2)")],
             "interleaved(2) on 4 stages needs at least 8 layers, found 7"),
            ([("microbatches = 8", "microbatches = 2"),
              withSchedule("interleaved(2)")],
             "interleaved(2) needs a number of microbatches that the 4 stages "
             "divide, found 2"),
            ([withSchedule("interleaved(1)")],
             "interleaved(1) needs at least 2 chunks of layers on each stage"),
    ):
        status, error = ask("equal.shd", *replacements, fails=True)
        expect(message + ": status", status, 1)
        if message not in error or "\nrepeat L@pp" not in error:
            FAILURES.append(f"expected '{message}' at the repeat, found {error}")


def main():
    equalStages()
    chosenOrder()
    unevenLayers()
    transfers()
    tiedWeights()
    ownAxis()
    meshes()
    refused()
    for failure in FAILURES:
        print(failure)
    if not FAILURES:
        print("all figures follow")


main()
