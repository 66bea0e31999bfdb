#!/usr/bin/env python3
"""Compares the peak of memory that shardc predicts with what XLA allocates.

    build/jax-env/bin/python utils/jax_memory.py [--shardc PATH] [--opt HOW] FILE.shd...

For each program: plans it, by default from its annotations alone (--opt=propagate),
compiles device_program of its --emit-jax for as many host devices as the mesh has,
without data, and reads memory_analysis() of the compiled program: its arguments,
the results that do not take an argument's place, and its temporary buffers. Prints
the table of docs/Jax.md. XLA_FLAGS=--xla_dump_to=FOLDER shows the buffers.

All programs share one process and its devices, so no mesh may have more than 64.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import jax_files
import jax_hlo


def shardc(program, output):
    command = [options.shardc, program, f"--opt={options.opt}", output]
    run = subprocess.run(command, capture_output=True, text=True)
    # Status 3: it does not fit, which does not matter here.
    if run.returncode not in (0, 3):
        sys.exit(run.stderr)
    return run.stdout


def exported(program):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(shardc(program, "--emit-jax"))
        file.flush()
        return jax_files.load(file.name, "--full")


def allocated(model, inputs):
    """One device's bytes of arguments, further results and temporary buffers. The
    plan has inputs until they are read, and replaces weights and states where they
    are, so XLA may overwrite them."""
    compiled = jax_hlo.compile_device_program(model, donate=[*model.STATES, *inputs])
    memory = compiled.memory_analysis()
    results = memory.output_size_in_bytes - memory.alias_size_in_bytes
    return memory.argument_size_in_bytes, results, memory.temp_size_in_bytes


def row(program):
    report = json.loads(shardc(program, "--emit-json"))
    inputs = [each["name"] for each in report["tensors"] if each["kind"] == "input"]
    model = exported(program)
    buffers = allocated(model, inputs)
    predicted, found = report["memory"]["peak"], sum(buffers)
    name = os.path.basename(program).removesuffix(".shd")
    mesh = " x ".join(f"{axis}={size}" for axis, size in model.MESH.items())
    cells = [f"{size / 1e6:.3f}" for size in (predicted, *buffers, found)]
    difference = f"{100 * (found / predicted - 1):+.1f} %"
    return f"| {name}, {mesh} | {' | '.join(cells)} | {difference} |"


parser = argparse.ArgumentParser()
parser.add_argument("--shardc", default="build/bin/shardc")
parser.add_argument("--opt", default="propagate")
parser.add_argument("programs", nargs="+")
options = parser.parse_args()

if __name__ == "__main__":
    # The CPU's library of kernels would take several products and what stands
    # between them as one, with workspace that nobody counts.
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "") + " --xla_cpu_experimental_ynn_fusion_type="
    )
    jax_files.start(devices=64)
    print("| program, mesh | shardc | arguments | results | temporary | XLA | |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for program in options.programs:
        print(row(program), flush=True)
