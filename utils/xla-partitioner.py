#!/usr/bin/env python3
"""What XLA's own partitioner inserts where only the plan's layouts are given.

    build/jax-env/bin/python utils/xla-partitioner.py [--shardc PATH] MODEL.shd...

For each model: plans it, compiles the unsharded program under jax.jit with the
plan's layouts of inputs, weights, states and outputs, and with_sharding_constraint
to its layouts of the values that the program names, and lists the collectives of
the compiled HLO beside those of the plan, priced by shardc. Prints the table of
docs/Jax.md.

Both lists are of one step, priced by shardc for the model's machine. XLA gets
the benefit of every doubt: its floats count as bf16, whatever it makes of them for
the CPU; a sum of which only slices are used counts as a reduce-scatter, which its
other backends make of it; a permute as the exchange of axes that it mostly is.
"""

import argparse
import ast
import inspect
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import jax_files
import jax_hlo


def shardc(*arguments):
    run = subprocess.run([options.shardc, *arguments], capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stdout


# ---------------------------------------------------------------------------
# XLA's list
# ---------------------------------------------------------------------------


class Constrain(ast.NodeTransformer):
    """`x = e` becomes `x = constrain("x", e)` for the values with a layout."""

    def __init__(self, layouts):
        self.layouts = layouts

    def visit_Assign(self, node):
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in self.layouts:
            node.value = ast.Call(
                ast.Name("constrain", ast.Load()),
                [ast.Constant(target.id), node.value],
                [],
            )
        return node


def constrained_reference(exported, mesh):
    """`reference`, or of a training step the program that it differentiates, constrained."""
    whole = getattr(exported, "forward_program", exported.reference)
    tree = ast.parse(inspect.getsource(whole))
    tree = ast.fix_missing_locations(Constrain(exported.LAYOUTS).visit(tree))

    def constrain(name, value):
        sharding = exported.NamedSharding(mesh, exported.LAYOUTS[name])
        return exported.lax.with_sharding_constraint(value, sharding)

    scope = dict(vars(exported), constrain=constrain)
    # Partial sums in the operands' type, as the plan has them.
    scope["einsum"] = exported.jnp.einsum
    exec(compile(tree, whole.__name__, "exec"), scope)
    if whole is not exported.reference:
        exec(inspect.getsource(exported.reference), scope)
    return scope["reference"]


def partitioned(path, sizes):
    """The collectives that XLA's partitioner makes, in a process of its own."""
    jax_files.start(devices=math.prod(sizes.values()))
    exported = jax_files.load(path, "--full")
    import jax
    import numpy as np

    devices = np.array(jax.devices()[: math.prod(sizes.values())])
    mesh = jax.sharding.Mesh(devices.reshape(tuple(sizes.values())), tuple(sizes))
    placed = lambda spec: exported.NamedSharding(mesh, spec)
    arguments = [
        jax.ShapeDtypeStruct(
            [exported.size[index] for index in indices],
            dtype,
            sharding=placed(exported.SPECS[name]),
        )
        for name, (dtype, indices, _) in exported.TENSORS.items()
    ]
    results = (
        {
            name: None if name in exported.PARTIAL else placed(spec)
            for name, spec in exported.OUTPUTS.items()
        },
        {name: placed(exported.SPECS[name]) for name in exported.STATES},
    )
    run = jax.jit(constrained_reference(exported, mesh), out_shardings=results)
    hlo = run.lower(*arguments).compile().as_text()
    return jax_hlo.compiled(hlo, math.prod(sizes.values()), slices=True)


def in_own_process(path, sizes):
    """JAX has as many devices as it was started with."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        rows = [
            [c.kind, jax_hlo.axes_of(sizes, c), axis_aligned(sizes, c), c.elements, n]
            for c, n in partitioned(path, sizes).items()
        ]
        with os.fdopen(writer, "w") as out:
            json.dump(rows, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as text:
        answer = text.read()
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"error: XLA did not compile {path}")
    return [(kind, tuple(axes), *rest) for kind, axes, *rest in json.loads(answer)]


def axis_aligned(mesh, collective):
    """True if the groups are all devices that differ on some axes."""
    if collective.kind == "collective-permute":
        return True
    axes = jax_hlo.axes_of(mesh, collective)
    return collective.groups == jax_hlo.groups_of(mesh, axes)


# ---------------------------------------------------------------------------
# Prices
# ---------------------------------------------------------------------------

COST = r"bandwidth_s = ([\d.e+-]+), latency_s = ([\d.e+-]+)"


def planned(text):
    """The plan's collectives with their counts and seconds, from --emit-ir."""
    found, counts = {}, []
    for line in text.splitlines():
        if match := re.search(r'shd\.repeat "[^"]*" = (\d+)', line):
            counts.append(int(match.group(1)))
        elif line.strip() == "}" and counts:
            counts.pop()
        match = re.search(r"= shd\.(\w+) (?:max |min )?%.* over \[(.*?)\] cost", line)
        if not match or match.group(1) not in jax_hlo.PLAN_KINDS:
            continue
        kind = jax_hlo.PLAN_KINDS[match.group(1)]
        axes = tuple(re.findall(r'"([^"]*)"', match.group(2)))
        bandwidth, latency = map(float, re.search(COST, line).groups())
        seconds = bandwidth + latency
        key = (kind, axes)
        entry = found.setdefault(key, [0, 0.0])
        entry[0] += math.prod(counts)
        entry[1] += math.prod(counts) * seconds
    return found


def statement(kind, axes, idle, count, elements):
    """A program's lines that make one collective of bf16. Another index on the
    axes that are idle keeps the planner from using their links."""
    x, o = (f"@({', '.join(list)})" for list in (axes, idle))
    if kind == "all-gather":
        return (
            f"dim I = {elements}\ninput a: bf16[I{x}, O{o}]\n"
            f"b[I@(), O{o}] = a[I, O]\noutput b\n"
        )
    if kind == "all-to-all":
        return (
            f"dim I = {count}, J = {elements}\ninput a: bf16[I{x}, J, O{o}]\n"
            f"b[I, J{x}, O{o}] = a[I, J, O]\noutput b\n"
        )
    if kind == "collective-permute":
        turned = "(" + ", ".join(reversed(axes)) + ")"
        return (
            f"dim I = {elements * count}\ninput a: bf16[I{x}, O{o}]\n"
            f"b[I@{turned}, O{o}] = a[I, O]\noutput b\n"
        )
    sums = "{" + ", ".join("+" + axis for axis in axes) + "}"
    left = x if kind == "reduce-scatter" else "@()"
    return (
        f"dim I = {elements}, J = {count}\n"
        f"input a: bf16[I, J{x}, O{o}]\ninput v: bf16[J{x}]\n"
        f"c[I@(), O{o}]{sums} = a[I, J{x}, O{o}] * v[J{x}]\n"
        f"b[I{left}, O{o}] = c[I, O]\noutput b\n"
    )


def price(head, sizes, kind, axes, elements):
    """Seconds of one collective, or of the cheapest way to do the same."""
    count = math.prod(sizes[axis] for axis in axes)
    # What the axes do not divide is padded.
    elements = -(-elements // count) * count
    idle = [axis for axis in sizes if axis not in axes]
    others = math.prod(sizes[axis] for axis in idle)
    text = f"{head}dim O = {others}\n{statement(kind, axes, idle, count, elements)}"
    with tempfile.NamedTemporaryFile("w", suffix=".shd") as program:
        program.write(text)
        program.flush()
        run = subprocess.run(
            [options.shardc, program.name, "--opt=none", "--emit-ir"],
            capture_output=True,
            text=True,
        )
    # Status 3: it does not fit, which does not matter here.
    if run.returncode not in (0, 3):
        sys.exit(run.stderr)
    return sum(float(b) + float(l) for b, l in re.findall(COST, run.stdout))


def report(model):
    source = open(model).read()
    head = "\n".join(re.findall(r"^(?:hardware|mesh) .*", source, re.M)) + "\n"
    name = os.path.basename(model).removesuffix(".shd")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.py")
        shardc(model, "--emit-jax", "-o", path)
        plan_path = os.path.join(folder, "plan.mlir")
        shardc(model, "--emit-spmd", "-o", plan_path)
        sizes, _ = jax_hlo.planned(plan_path)
        found = in_own_process(path, sizes)
    rows, seconds = {}, {}
    for (kind, axes), (number, total) in planned(shardc(model, "--emit-ir")).items():
        rows.setdefault((kind, axes), {})["plan"] = (number, total)
    unpriced = 0
    for kind, axes, aligned, elements, number in found:
        if not axes:
            continue
        if not aligned:
            unpriced += number
            continue
        one = price(head, sizes, kind, axes, elements)
        entry = rows.setdefault((kind, axes), {})
        count, total = entry.get("xla", (0, 0.0))
        entry["xla"] = (count + number, total + number * one)
    mesh = " x ".join(f"{axis}={size}" for axis, size in sizes.items())
    label = f"{name}, {mesh}"
    for (kind, axes), entry in sorted(rows.items()):
        cells = []
        for side in ("plan", "xla"):
            number, total = entry.get(side, (0, 0.0))
            seconds[side] = seconds.get(side, 0) + total
            cells += [str(number), f"{total * 1e3:.3f}"] if number else ["", ""]
        print(f"| {label} | {kind} | {', '.join(axes)} | {' | '.join(cells)} |")
        label = ""
    plan, xla = seconds.get("plan", 0), seconds.get("xla", 0)
    note = f", {unpriced} of XLA's not priced" if unpriced else ""
    print(
        f"| {label} | **together**{note} | | "
        f"| **{plan * 1e3:.3f}** | | **{xla * 1e3:.3f}** |",
        flush=True,
    )


parser = argparse.ArgumentParser()
parser.add_argument("--shardc", default="build/bin/shardc")
parser.add_argument("models", nargs="+")
options = parser.parse_args()

if __name__ == "__main__":
    print("| model, mesh | collective | axes | shardc | ms | XLA | ms |")
    print("|---|---|---|--:|--:|--:|--:|")
    for model in options.models:
        report(model)
