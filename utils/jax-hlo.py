#!/usr/bin/env python3
"""Compares the collectives of a plan with those of the program that XLA makes.

    shardc model.shd --emit-jax -o model.py
    shardc model.shd --emit-spmd -o model.mlir
    build/jax-env/bin/python utils/jax-hlo.py [--small] model.py model.mlir

compiles device_program for the plan's mesh on host devices, without data, and
reads the collectives in the compiled HLO: their kinds, which devices form a
group, how many elements of which type each device contributes or gets, and how
often they run (the bodies of loops count as often as the loops do). They are
compared with those of the device's program. Ends with status 1 if they differ.
With --small, the .mlir is that of the small form:

    shardc model.shd --emit-ir | shardc-opt --shd-shrink --convert-shd-to-spmd

XLA keeps each collective as it is written, with these exceptions, which the
comparison takes into account:
- it may combine several into one: the passes that do are disabled;
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

COMBINERS = [
    "all-reduce-combiner",
    "all-gather-combiner",
    "reduce-scatter-combiner",
    "collective-permute-combiner",
]

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
        match = re.search(r"spmd\.(\w+) .*over \[(.*?)\] of ", text)
        if not match or match.group(1) not in PLAN_KINDS:
            continue
        kind = PLAN_KINDS[match.group(1)]
        axes = re.findall(r'"([^"]*)"', match.group(2))
        taken, given = re.search(
            r": tensor<([^>]*)> -> tensor<([^>]*)>\s*$", text
        ).groups()
        size = elements(given if kind == "all-gather" else taken)
        groups = groups_of(mesh, axes)
        if len(next(iter(groups))) > 1:
            found[Collective(kind, groups, size)] += math.prod(counts)
    return mesh, found


# ---------------------------------------------------------------------------
# The compiled program
# ---------------------------------------------------------------------------


def iota_groups(text):
    """`[2,4]<=[8]`, `[4,2]<=[2,4]T(1,0)`"""
    import numpy as np

    shape, dims, order = re.match(
        r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text
    ).groups()
    numbers = lambda list: [int(number) for number in list.split(",")]
    devices = np.arange(math.prod(numbers(dims))).reshape(numbers(dims))
    if order:
        devices = devices.transpose(numbers(order))
    return frozenset(frozenset(map(int, row)) for row in devices.reshape(numbers(shape)))


def compiled_groups(line, devices):
    if match := re.search(r"source_target_pairs=\{(\{.*?\})\}", line):
        pairs = re.findall(r"\{(\d+),(\d+)\}", match.group(1))
        return frozenset((int(source), int(target)) for source, target in pairs)
    if match := re.search(r"replica_groups=(\[[^ ]*\]<=[^ ]*?)(?:, |$)", line):
        return iota_groups(match.group(1))
    match = re.search(r"replica_groups=\{(.*?)\}(?:, |$)", line)
    groups = re.findall(r"\{([\d,]+)\}", match.group(1))
    if not groups:
        return frozenset([frozenset(range(devices))])
    return frozenset(frozenset(map(int, group.split(","))) for group in groups)


HLO_KINDS = "all-gather|all-to-all|reduce-scatter|all-reduce|collective-permute"


def compiled(hlo, devices):
    """The collectives that the entry of an HLO module runs, with their counts."""
    computations, entry, name = {}, None, None
    for line in hlo.splitlines():
        if match := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            name = match.group(2)
            computations[name] = []
            entry = name if match.group(1) else entry
        elif name:
            computations[name].append(line)

    def shapes(line, operation):
        result = line.split(" = ", 1)[1].split(f" {operation}", 1)[0]
        return re.findall(r"\w+\[[\d,]*\]", result)

    def count(name):
        found = collections.Counter()
        for line in computations[name]:
            if match := re.search(rf" ({HLO_KINDS})(?:-start)?\(", line):
                kind = match.group(1)
                groups = compiled_groups(line, devices)
                size = sum(map(elements, shapes(line, match.group(1))))
                if kind == "reduce-scatter":
                    size *= len(next(iter(groups)))
                found[Collective(kind, groups, size)] += 1
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


def compile_device_program(exported):
    """The text of the compiled program; no data is made."""
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
    return run.lower(*arguments).compile().as_text()


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
    import os

    os.environ["XLA_FLAGS"] = "--xla_disable_hlo_passes=" + ",".join(COMBINERS)
    jax_files.start(devices=math.prod(mesh.values()))
    exported = jax_files.load(options.file, *([] if options.small else ["--full"]))
    if exported.MESH != mesh:
        sys.exit(f"error: the file's mesh is {exported.MESH}, the plan's {mesh}")
    hlo = compile_device_program(exported)
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
