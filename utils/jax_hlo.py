#!/usr/bin/env python3
"""Compares the collectives of a plan with those of the program that XLA makes.

    shardc model.shd --emit-jax -o model.py
    shardc model.shd --emit-spmd -o model.mlir
    build/jax-env/bin/python utils/jax_hlo.py [--small] model.py model.mlir

compiles device_program for the plan's mesh on host devices, without data, and
reads the collectives in the compiled HLO: their kinds, which devices form a
group, how many elements of which type each device contributes or gets, and how
often they run (the bodies of loops count as often as the loops do). They are
compared with those of the device's program. Ends with status 1 if they differ.
With --small, the .mlir is that of the small form:

    shardc model.shd --emit-ir | shardc-opt --shd-shrink --convert-shd-to-spmd

XLA keeps each collective as it is written, with these exceptions, which the
comparison takes into account:
- it may combine several into one, which then has several results: each counts;
- the CPU has sums of 16 bits in 32: element types of sums are not compared;
- of collectives that do the same twice it keeps one, and it moves those that do
  the same in every iteration out of a loop: reported, and no difference.
"""

import argparse
import collections
import math
import re
import sys

import jax_files

# A collective: `groups` is a set of sets of devices, of a permute the set of pairs.
Collective = collections.namedtuple("Collective", "kind groups elements")


def elements(shape):
    """Of `4x8xbf16` or `f32[4,8]`."""
    if "[" in shape:
        dims = re.match(r"\w+\[([\d,]*)\]", shape).group(1)
        return math.prod(int(extent) for extent in dims.split(",") if extent)
    return math.prod(int(extent) for extent in shape.split("x")[:-1])


# ---------------------------------------------------------------------------
# The plan
# ---------------------------------------------------------------------------

PLAN_KINDS = {
    "all_gather": "all-gather",
    "all_to_all": "all-to-all",
    "reduce_scatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "collective_permute": "collective-permute",
    "halo_exchange": "collective-permute",
    "halo_reduce": "collective-permute",
    "ring_shift": "collective-permute",
}


def groups_of(mesh, axes):
    """Devices that differ only on `axes`; the last axis of the mesh is innermost."""
    groups = collections.defaultdict(set)
    for device in range(math.prod(mesh.values())):
        place, rest = {}, device
        for axis, size in reversed(mesh.items()):
            rest, place[axis] = divmod(rest, size)
        groups[tuple(place[axis] for axis in mesh if axis not in axes)].add(device)
    return frozenset(frozenset(group) for group in groups.values())


def planned(path):
    """The mesh, and the collectives of a device's program with their counts."""
    mesh, found, counts = {}, collections.Counter(), []
    for text in open(path):
        if match := re.search(r"spmd\.program .* mesh <\[(.*?)\]>", text):
            for name, size in re.findall(r'(\w+)"? = (\d+)', match.group(1)):
                mesh[name] = int(size)
        if match := re.search(r'shd\.repeat "[^"]*" = (\d+)', text):
            counts.append(int(match.group(1)))
        elif text.strip() == "}" and counts:
            counts.pop()
        match = re.search(r"spmd\.(\w+) .*over \[(.*?)\](?: of | \{| :)", text)
        if not match or match.group(1) not in PLAN_KINDS:
            continue
        kind = PLAN_KINDS[match.group(1)]
        axes = re.findall(r'"([^"]*)"', match.group(2))
        taken, given = re.search(
            r": tensor<([^>]*)>(?: -> tensor<([^>]*)>)?\s*$", text
        ).groups()
        size = elements(given if kind == "all-gather" else taken)
        if match.group(1).startswith("halo"):
            size = abs(elements(given) - elements(taken))
        # In zigzag order a halo is of both neighbours.
        permutes = 2 if match.group(1).startswith("halo") and "shd.dealt" in text else 1
        groups = groups_of(mesh, axes)
        if len(next(iter(groups))) > 1:
            found[Collective(kind, groups, size // permutes)] += permutes * math.prod(counts)
    return mesh, found


# ---------------------------------------------------------------------------
# The compiled program
# ---------------------------------------------------------------------------


def numbered(text):
    """`[2,4]`, `[2,4]T(1,0)`: the numbers from 0 on in that shape, transposed."""
    import numpy as np

    dims, order = re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text).groups()
    numbers = lambda list: [int(number) for number in list.split(",")]
    devices = np.arange(math.prod(numbers(dims))).reshape(numbers(dims))
    return devices.transpose(numbers(order)) if order else devices


def iota_groups(text):
    """`[2,4]<=[8]`, `[4,2]<=[2,4]T(1,0)`"""
    shape, devices = text.split("<=")
    rows = numbered(devices).reshape([int(n) for n in shape[1:-1].split(",")])
    return frozenset(frozenset(map(int, row)) for row in rows)


def mesh_groups(text, line):
    """`mesh['a'=4,'b'=8] {'b'}`: the devices that differ on the axes in braces."""
    match = re.fullmatch(
        r"mesh\[([^\]]*)\](?:, device_ids=\((\[.*\](?:T\([\d,]+\))?)\))? \{([^}]*)\}", text
    )
    if not match:
        sys.exit(f"error: unknown form of replica groups: {line}")
    mesh = {axis: int(size) for axis, size in re.findall(r"'(\w+)'=(\d+)", match.group(1))}
    groups = groups_of(mesh, re.findall(r"'(\w+)'", match.group(3)))
    if not match.group(2):
        return groups
    order = numbered(match.group(2)).reshape(-1)
    return frozenset(frozenset(int(order[device]) for device in group) for group in groups)


def compiled_groups(line, devices):
    if match := re.search(r"source_target_pairs=\{(\{.*?\})\}", line):
        pairs = re.findall(r"\{(\d+),(\d+)\}", match.group(1))
        return frozenset((int(source), int(target)) for source, target in pairs)
    if match := re.search(r"replica_groups=(\[[^ ]*\]<=[^ ]*?)(?:, |$)", line):
        return iota_groups(match.group(1))
    if match := re.search(r"replica_groups=(mesh\[.*?\})(?:, |$)", line):
        return mesh_groups(match.group(1), line)
    match = re.search(r"replica_groups=\{(.*?)\}(?:, |$)", line)
    groups = re.findall(r"\{([\d,]+)\}", match.group(1))
    if not groups:
        return frozenset([frozenset(range(devices))])
    return frozenset(frozenset(map(int, group.split(","))) for group in groups)


HLO_KINDS = "all-gather|all-to-all|reduce-scatter|all-reduce|collective-permute"


def computations_of(hlo):
    """The lines of each computation by its name, and the name of the entry."""
    computations, entry, name = {}, None, None
    for line in hlo.splitlines():
        if match := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            name = match.group(2)
            computations[name] = []
            entry = name if match.group(1) else entry
        elif name:
            computations[name].append(line)
    return computations, entry


# What hands on the elements of its operand.
PASSES_ON = r"(?:bitcast|convert|copy|reshape|transpose|get-tuple-element)\("


def uses_of(computations, name, value):
    """What becomes of an instruction's elements: `sliced`, `used`, or `root` if
    they are the computation's result."""
    uses = set()
    for line in computations[name]:
        target, operation = line.split(" = ", 1) if " = " in line else ("", "")
        if not re.search(rf"%{re.escape(value)}[,)]", operation):
            continue
        if " dynamic-slice(" in operation:
            uses.add("sliced")
            continue
        found = {"root"} if re.search(" " + PASSES_ON, operation) else {"used"}
        if " fusion(" in operation:
            inner = re.search(r"calls=%([\w.\-]+)", operation).group(1)
            operands = re.findall(r"%([\w.\-]+)", operation.split(" fusion(")[1].split(")")[0])
            parameter = rf"%([\w.\-]+) = .* parameter\({operands.index(value)}\)"
            inside = re.search(parameter, "\n".join(computations[inner])).group(1)
            found = uses_of(computations, inner, inside)
        if "root" in found and not target.lstrip().startswith("ROOT"):
            found.remove("root")
            found |= uses_of(computations, name, target.split("%")[-1])
        uses |= found
    return uses


def compiled(hlo, devices, slices=False):
    """The collectives that the entry of an HLO module runs, with their counts.
    With `slices`, a sum of which only slices are used is a reduce-scatter, as
    other backends than the CPU's make it."""
    computations, entry = computations_of(hlo)

    def shapes(line, operation):
        result = line.split(" = ", 1)[1].split(f" {operation}", 1)[0]
        return re.findall(r"\w+\[[\d,]*\]", result)

    def collectives(name, line):
        match = re.search(rf" ({HLO_KINDS})(?:-start)?\(", line)
        if not match:
            return
        kind = match.group(1)
        groups = compiled_groups(line, devices)
        sizes = [elements(shape) for shape in shapes(line, kind)]
        if kind == "all-to-all":
            # One result for each device of the group.
            sizes = [sum(sizes)]
        if kind == "reduce-scatter":
            sizes = [size * len(next(iter(groups))) for size in sizes]
        value = line.split(" = ", 1)[0].split("%")[-1]
        if slices and kind == "all-reduce" and uses_of(computations, name, value) == {"sliced"}:
            kind = "reduce-scatter"
        for size in sizes:
            yield Collective(kind, groups, size)

    def count(name):
        found = collections.Counter()
        for line in computations[name]:
            found.update(collectives(name, line))
            times = 1
            if match := re.search(r'"known_trip_count":\{"n":"(\d+)"\}', line):
                times = int(match.group(1))
            elif " while(" in line:
                sys.exit(f"error: a loop does not say how often it runs: {line}")
            for called in re.findall(r"(?:body|to_apply|calls)=%?([\w.\-]+)", line):
                for collective, number in count(called).items():
                    found[collective] += times * number
        return found

    return count(entry)


def compile_device_program(exported, donate=()):
    """device_program, compiled for the plan's mesh; no data is made. XLA may write
    results in the place of the arguments in `donate`."""
    import jax
    import numpy as np

    mesh = jax.sharding.Mesh(
        np.array(jax.devices()[: math.prod(exported.MESH.values())]).reshape(
            tuple(exported.MESH.values())
        ),
        tuple(exported.MESH),
    )
    run, shardings = exported.on_mesh(mesh)
    arguments = [
        jax.ShapeDtypeStruct(
            [exported.size[index] for index in indices], dtype, sharding=sharding
        )
        for (dtype, indices, _), sharding in zip(exported.TENSORS.values(), shardings)
    ]
    donated = [name in donate for name in exported.TENSORS]
    numbers = [number for number, is_donated in enumerate(donated) if is_donated]
    run = jax.jit(run.__wrapped__, donate_argnums=numbers)
    return run.lower(*arguments).compile()


# ---------------------------------------------------------------------------
# The comparison
# ---------------------------------------------------------------------------


def axes_of(mesh, collective):
    """The axes over which the devices of a group differ."""
    axes = set()
    for group in collective.groups:
        places = []
        for device in group:
            place = []
            for size in reversed(mesh.values()):
                device, coordinate = divmod(device, size)
                place.append(coordinate)
            places.append(place[::-1])
        for number, axis in enumerate(mesh):
            if len({place[number] for place in places}) > 1:
                axes.add(axis)
    return tuple(axis for axis in mesh if axis in axes)


def comparable(mesh, counter):
    """Permutes are compared by axes: a plan does not list its pairs."""
    result = collections.Counter()
    for collective, number in counter.items():
        groups = collective.groups
        if collective.kind == "collective-permute":
            groups = groups_of(mesh, axes_of(mesh, collective))
        result[Collective(collective.kind, groups, collective.elements)] += number
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true")
    parser.add_argument("file")
    parser.add_argument("plan")
    options = parser.parse_args()
    mesh, plan = planned(options.plan)
    jax_files.start(devices=math.prod(mesh.values()))
    exported = jax_files.load(options.file, *([] if options.small else ["--full"]))
    if exported.MESH != mesh:
        sys.exit(f"error: the file's mesh is {exported.MESH}, the plan's {mesh}")
    hlo = compile_device_program(exported).as_text()
    found = comparable(mesh, compiled(hlo, math.prod(mesh.values())))
    plan = comparable(mesh, plan)
    differs = False
    print(f"{'collective':20} {'axes':12} {'elements':>14} {'plan':>6} {'XLA':>6}")
    for collective in sorted(
        plan | found, key=lambda c: (c.kind, axes_of(mesh, c), c.elements)
    ):
        expected, number = plan[collective], found[collective]
        note = ""
        if 0 < number < expected:
            note = "  XLA runs once what the plan repeats"
        elif number != expected:
            note = "  DIFFERS"
            differs = True
        axes = ", ".join(axes_of(mesh, collective))
        print(
            f"{collective.kind:20} {axes:12} {collective.elements:14,} "
            f"{expected:6} {number:6}{note}"
        )
    sys.exit("error: XLA's collectives are not the plan's" if differs else 0)


if __name__ == "__main__":
    main()
