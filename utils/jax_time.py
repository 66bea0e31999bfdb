#!/usr/bin/env python3
"""Times a step of files of shardc --emit-jax on the device that JAX has.

    shardc FILE.shd --emit-jax -o FILE.py
    utils/jax_time.py [--small] [-o TIMES.json] FILE.py...

Each file runs in a process of its own: device_program of a plan for one device,
compiled, with random arguments that are made on the device, and its states
donated, as the plan overwrites them. Prints the median time of a step, what
memory_analysis() says of the program (arguments, results that do not take an
argument's place, temporary buffers) and the most bytes that the device held.
With --small, the files' small forms run, on a CPU, too: a test.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import jax_files


def randomArgument(jax, key, name, dtype, shape, bound):
    """Small numbers, above zero where the program takes a root of them; integers
    with a bound are positions below it."""
    jnp = jax.numpy
    if jnp.issubdtype(dtype, jnp.integer):
        return jax.random.randint(key, shape, 0, bound or 2, dtype)
    value = jax.random.uniform(key, shape, dtype, -0.02, 0.02)
    return abs(value) if name.endswith("_v") or not shape else value


def placer(model):
    """Where a tensor lies: what the plan keeps on the host is there, if it can be."""
    jax = model.jax
    host = getattr(model, "HOST", []) if getattr(model, "has_host", bool)() else []

    def place(name):
        kind = "pinned_host" if name in host else None
        return jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind=kind)

    return place


def compileStep(model, arguments, place):
    """The step, and how to call it with the arguments. States are one argument, as
    they are one result: JAX gives a donated array to the first result of its type."""
    jax = model.jax

    def given():
        return [
            {
                name: array
                for name, array in arguments.items()
                if (name in model.STATES) == isState
            }
            for isState in (True, False)
        ]

    placed = tuple(
        {name: place(name) for name in names} for names in (model.OUTPUTS, model.STATES)
    )
    program = jax.jit(
        lambda states, rest: model.device_program(**states, **rest),
        donate_argnums=0,
        out_shardings=placed,
    )
    compiled = program.lower(*given()).compile()
    return compiled, lambda: compiled(*given())


def measure(path, isSmall):
    """Times of one file, as keys of its line."""
    model = jax_files.load(path, *([] if isSmall else ["--full"]))
    jax = model.jax
    place = placer(model)
    make = jax.jit(
        lambda key, name, dtype, shape, bound: randomArgument(
            jax, key, name, dtype, shape, bound
        ),
        static_argnums=(1, 2, 3, 4),
    )
    keys = jax.random.split(jax.random.key(0), len(model.TENSORS))
    arguments = {}
    for key, (name, (dtype, indices, bound)) in zip(keys, model.TENSORS.items()):
        shape = tuple(model.size[index] for index in indices)
        limit = model.size[bound] if bound else None
        array = make(key, name, dtype, shape, limit)
        arguments[name] = jax.device_put(array, place(name))
    begin = time.perf_counter()
    compiled, step = compileStep(model, arguments, place)
    compiling = time.perf_counter() - begin
    memory = compiled.memory_analysis()
    times = []
    for _ in range(12):
        jax.block_until_ready(arguments)
        begin = time.perf_counter()
        outputs, states = step()
        jax.block_until_ready((outputs, states))
        times.append(time.perf_counter() - begin)
        arguments.update(states)
    held = jax.devices()[0].memory_stats() or {}
    return {
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "step_s": statistics.median(times[2:]),
        "compile_s": compiling,
        "arguments": memory.argument_size_in_bytes,
        "results": memory.output_size_in_bytes - memory.alias_size_in_bytes,
        "temporary": memory.temp_size_in_bytes,
        "peak": held.get("peak_bytes_in_use"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE.py")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("-o", "--output", metavar="TIMES.json")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.files[0], options.small)))
        return
    found = {}
    for path in options.files:
        name = os.path.basename(path).removesuffix(".py")
        command = [sys.executable, __file__, "--one", path]
        command += ["--small"] if options.small else []
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            print(f"{name}: {run.stderr.strip()[-1500:]}", flush=True)
            continue
        found[name] = json.loads(run.stdout.splitlines()[-1])
        one = found[name]
        sizes = [one["arguments"], one["results"], one["temporary"], one["peak"] or 0]
        print(
            f"{name}: {one['step_s'] * 1e3:.3f} ms, arguments, results, temporary,"
            f" peak {', '.join(f'{size / 2**30:.2f}' for size in sizes)} GiB;"
            f" compiled in {one['compile_s']:.0f} s",
            flush=True,
        )
        if options.output:
            with open(options.output, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
