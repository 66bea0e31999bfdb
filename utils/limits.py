#!/usr/bin/env python3
"""Programs that are small as files and large to compile: checks the promise that
any file under 1 MB ends within 10 s and 2 GB, with a result or with an error.

    utils/limits.py [--shardc build/bin/shardc] [--keep DIR] [NAME...]

Prints, for each program, seconds, MB, the exit status and the first line of what
shardc says. Exit status 1 if one of them takes more or ends in a defect (70 or a
signal). Timings are of this machine, so this is no test.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

SECONDS, MEGABYTES = 10, 2048
HEAD = "hardware tpu_v5e[4, 4]\nmesh [X=4, Y=4]\ndim B = 64, D = 64, F = 64\n"
ONE = "input x: bf16[B, D]\nweight w: bf16[D, F]\n"

programs = {}


def program(*options, files=None):
    """Registers a function that returns a program's text; `options` are shardc's.
    `files` returns more files by name."""

    def register(function):
        name = function.__name__.replace("_", "-")
        programs[name] = (function, list(options), files)
        return function

    return register


def fill(begin, each, end="", size=990_000):
    """`begin`, as many of `each(i)` as fit into `size` bytes, `end`."""
    parts, used, i = [begin], len(begin) + len(end), 0
    while True:
        part = each(i)
        used += len(part)
        if used > size:
            return "".join(parts) + end
        parts.append(part)
        i += 1


# ---- words and characters


@program()
def one_identifier():
    return HEAD + "input " + "a" * 990_000 + ": bf16[B, D]\n"


@program()
def long_identifier_used():
    a = "a" * 300_000
    return HEAD + f"input {a}: bf16[B, D]\ny = relu({a})\noutput y\n"


@program()
def one_comment():
    return HEAD + ONE + "/*" + "x" * 990_000 + "*/\noutput x\n"


@program()
def open_comment():
    return HEAD + "/*" * 490_000


@program()
def comments():
    return HEAD + "//\n" * 330_000


@program()
def one_string():
    return 'import "' + "x" * 990_000 + '"\n'


@program()
def one_number():
    return "dim B = " + "9" * 990_000 + "\n"


@program()
def bad_characters():
    return "$" * 990_000


@program()
def invalid_bytes():
    return HEAD + "\x7f" * 900_000


@program()
def brackets():
    return HEAD + ONE + "y = " + "(" * 490_000 + "x" + ")" * 490_000


@program()
def minuses():
    return HEAD + ONE + "y = " + "-" * 980_000 + "x\noutput y"


@program()
def braces():
    return HEAD + "repeat L {" * 90_000


@program()
def nested_calls_within_depth():
    return HEAD + ONE + fill("", lambda i: f"y{i} = " + "relu(" * 190 + "x" + ")" * 190 + "\n", "output y0\n")


@program()
def many_syntax_errors():
    return HEAD + "y = = 1\n" * 100_000


@program()
def many_semantic_errors():
    return fill(HEAD + ONE, lambda i: f"y{i} = q{i}[B, D]\n", "output y0\n")


@program()
def many_declaration_errors():
    return fill(HEAD, lambda i: f"input x{i}: bf16[Q{i}]\n")


@program()
def duplicate_names():
    return fill(HEAD + ONE, lambda i: "weight w: bf16[D, D]\n")


# ---- dims


@program()
def dims():
    return fill(HEAD + ONE, lambda i: f"dim D{i} = {i + 1}\n", "output x\n")


@program()
def dims_in_one_declaration():
    return fill(HEAD + ONE + "dim Z = 1", lambda i: f", D{i} = {i + 1}", "\noutput x\n")


@program()
def dims_in_a_chain():
    return fill(HEAD + ONE + "dim D0 = 1\n", lambda i: f"dim D{i + 1} = D{i} + 1\n", "output x\n")


@program()
def dims_in_a_chain_backwards():
    n = 30_000
    return HEAD + ONE + "".join(f"dim D{i} = D{i + 1} + 1\n" for i in range(n)) + f"dim D{n} = 1\noutput x\n"


@program()
def dims_that_double():
    return HEAD + ONE + "dim D0 = 1\n" + "".join(
        f"dim D{i + 1} = min(D{i}, D{i}) + max(D{i}, D{i})\n" for i in range(2000)) + "output x\n"


@program()
def dims_in_a_cycle():
    n = 30_000
    return HEAD + ONE + "".join(f"dim D{i} = D{(i + 1) % n}\n" for i in range(n)) + "output x\n"


@program()
def dim_expression():
    return HEAD + ONE + "dim Q = 1" + " + 1" * 200_000 + "\noutput x\n"


@program()
def huge_extents():
    return """hardware tpu_v5e[4, 4]
dim A = 9223372036854775807, B = 4611686018427387904
input x: bf16[A, B]
y = relu(x)
output y
"""


@program()
def large_extents():
    return """hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim A = 1073741824, B = 1073741824, C = 1073741824
input x: bf16[A, B]
weight w: bf16[B, C]
y[A, C] = x * w
output y
"""


# ---- tensors and statements


@program()
def inputs():
    return fill(HEAD, lambda i: f"input x{i}: bf16[B, D]\n", "y = relu(x0)\noutput y\n")


@program()
def weights():
    return fill(HEAD + ONE, lambda i: f"weight w{i}: bf16[D, F]\n", "output x\n")


@program()
def tensor_of_many_dims():
    names = [f"D{i}" for i in range(20_000)]
    return (HEAD + "dim " + ", ".join(f"{n} = 1" for n in names) + "\ninput x: bf16[" + ", ".join(names) +
            "]\ny = relu(x)\noutput y\n")


@program()
def tensor_of_64_dims():
    names = [f"D{i}" for i in range(64)]
    return (HEAD + "dim " + ", ".join(f"{n} = 4" for n in names) + "\ninput x: bf16[" + ", ".join(names) +
            "]\ny = relu(x)\noutput y\n")


@program()
def tensor_of_30_dims():
    names = [f"D{i}" for i in range(30)]
    return (HEAD + "dim " + ", ".join(f"{n} = 4" for n in names) + "\ninput x: bf16[" + ", ".join(names) +
            "]\ny = relu(x)\nz = exp(y) + x\noutput z\n")


@program()
def outputs():
    return HEAD + ONE + "output x\n" * 100_000


@program()
def relus():
    return fill(HEAD + ONE + "y = x\n", lambda i: "y = relu(y)\n", "output y\n")


@program()
def matmuls():
    return fill(HEAD + ONE + "y = x\n", lambda i: "y[B, D] = y[B, F] * w[F, D]\n", "output y\n", 990_000)


@program()
def two_thousand_matmuls():
    return HEAD + ONE + "y[B, D] = x\n" + "y[B, D] = y[B, F] * w[F, D]\n" * 2000 + "output y\n"


@program()
def different_matmuls():
    return fill(HEAD + "input x: bf16[B, D]\ny[B, D] = x\n",
                lambda i: f"weight w{i}: bf16[D, F]\ny[B, D] = y[B, F] * w{i}[F, D]\n", "output y\n", 990_000)


@program()
def unused_statements():
    return fill(HEAD + ONE, lambda i: f"y{i} = relu(x)\n", "output y0\n")


@program()
def statements_that_all_use_all():
    n = 300
    return HEAD + ONE + "".join(
        f"y{i} = " + " + ".join(["x"] + [f"y{j}" for j in range(i)]) + "\n" for i in range(n)) + f"output y{n - 1}\n"


# ---- expressions


@program()
def operands_of_a_sum():
    return HEAD + ONE + "y = " + " + ".join(["x"] * 90_000) + "\noutput y\n"


@program()
def inputs_in_a_sum():
    n = 5000
    return (HEAD + "".join(f"input x{i}: bf16[B, D]\n" for i in range(n)) + "y = " +
            " + ".join(f"x{i}" for i in range(n)) + "\noutput y\n")


@program()
def factors_of_a_product():
    return HEAD + ONE + "y = " + " * ".join(["x"] * 90_000) + "\noutput y\n"


@program()
def ninety_factors():
    return HEAD + ONE + "y[B, D] = " + " * ".join(["x[B, D]"] * 90) + "\noutput y\n"


@program()
def ninety_matrices():
    dims = ", ".join(f"D{i} = {64 + i}" for i in range(91))
    return (HEAD + "dim " + dims + "\n" + "".join(f"input a{i}: bf16[D{i}, D{i + 1}]\n" for i in range(90)) +
            "y[D0, D90] = " + " * ".join(f"a{i}" for i in range(90)) + "\noutput y\n")


@program()
def products_of_ninety():
    return fill(HEAD + ONE, lambda i: f"y{i}[B, D] = " + " * ".join(["x[B, D]"] * 90) + "\n", "output y0\n")


@program()
def products_of_sums():
    return HEAD + ONE + "y = " + " * ".join(["(x + x)"] * 60) + "\noutput y\n"


@program()
def sums_of_products_of_sums():
    return HEAD + ONE + "y = " + "(" * 100 + "x" + " + x) * (x + x)" * 100 + "\noutput y\n"


@program()
def products_of_wide_sums():
    wide = "(" + " + ".join(["x"] * 30) + ")"
    return fill(HEAD + ONE, lambda i: f"y{i} = {wide} * {wide}\n", "output y0\n")


@program()
def quotients():
    return HEAD + ONE + "y = x" + " / x" * 60_000 + "\noutput y\n"


@program()
def arguments():
    return HEAD + ONE + "y = relu(" + ", ".join(["x"] * 100_000) + ")\noutput y\n"


@program()
def concat():
    return (HEAD + "dim A = 20000, O = 1\ninput o: bf16[O]\ny[A] = concat[(" + ", ".join(["O"] * 20000) +
            ") -> A](" + ", ".join(["o"] * 20000) + ")\noutput y\n")


@program()
def gathers_in_gathers():
    text = "t[B]"
    for _ in range(150):
        text = f"e[{text}]"
    return HEAD + "input t: int32[B]\ninput e: int32[B]\ny[B] = " + text + "\noutput y\n"


# ---- layers


def layers(n, calls):
    text = HEAD + ONE + "layer g0(a: bf16[B, D]) -> (r) { r = relu(a) }\n"
    for i in range(1, n):
        body = "r = a\n" + f"r = g{i - 1}(r)\n" * calls
        text += f"layer g{i}(a: bf16[B, D]) -> (r) {{ {body} }}\n"
    return text + f"y = g{n - 1}(x)\noutput y\n"


@program()
def layers_that_double():
    return layers(31, 2)


@program()
def layers_below_the_limit_of_calls():
    return layers(16, 2)


@program()
def layers_that_multiply_by_100():
    return layers(5, 100)


@program()
def layers_in_a_chain():
    return layers(10_000, 1)


@program()
def layers_in_a_chain_of_150():
    return layers(150, 1)


@program()
def layers_of_long_bodies():
    body = "r = relu(r)\n" * 1000
    return HEAD + ONE + "layer f(a: bf16[B, D]) -> (r) { r = a " + body + "}\ny = x\n" + "y = f(y)\n" * 10_000 + "output y\n"


@program()
def layers_not_called():
    return fill(HEAD + ONE, lambda i: f"layer g{i}(a: bf16[B, D]) -> (r) {{ r = relu(a) }}\n", "output x\n")


@program()
def layer_parameters():
    n = 20_000
    return (HEAD + ONE + "layer f(" + ", ".join(f"a{i}: bf16[B, D]" for i in range(n)) + ") -> (r) { r = a0 }\n" +
            "y = f(" + ", ".join(["x"] * n) + ")\noutput y\n")


@program()
def layer_results():
    n = 20_000
    names = [f"r{i}" for i in range(n)]
    return (HEAD + ONE + "layer f(a: bf16[B, D]) -> (" + ", ".join(names) + ") {" +
            " ".join(f"{r} = a" for r in names) + "}\n" + ", ".join(names) + " = f(x)\noutput r0\n")


@program()
def layers_that_call_themselves():
    return HEAD + ONE + "layer f(a: bf16[B, D]) -> (r) { r = f(a) }\ny = f(x)\noutput y\n"


@program()
def layer_weights_that_double():
    text = HEAD + ONE + "layer g0(a: bf16[B, D]) -> (r) { weight w: bf16[D, F] r[B, F] = a[B, D] * w[D, F] }\n"
    for i in range(1, 14):
        text += f"layer g{i}(a: bf16[B, D]) -> (r) {{ r = g{i - 1}(a) r = g{i - 1}(r) }}\n"
    return text + "y = g13(x)\noutput y\n"


# ---- repeats


@program()
def repeats_in_repeats():
    n = 100
    return (HEAD + ONE + "dim " + ", ".join(f"L{i} = 1000000" for i in range(n)) + "\n" +
            "".join(f"repeat L{i} {{\n" for i in range(n)) + "x1 = relu(x)\n" + "}" * n + "output x\n")


@program()
def five_repeats_in_repeats():
    n = 5
    return (HEAD + ONE + "dim " + ", ".join(f"L{i} = 1000" for i in range(n)) + "\ny = x\n" +
            "".join(f"repeat L{i} {{\n" for i in range(n)) + "y[B, D] = y[B, F] * w[F, D]\n" + "}" * n + "output y\n")


@program()
def thirty_repeats_in_repeats():
    n = 30
    return (HEAD + ONE + "dim " + ", ".join(f"L{i} = 2" for i in range(n)) + "\ny = x\n" +
            "".join(f"repeat L{i} {{\n" for i in range(n)) + "y[B, D] = y[B, F] * w[F, D]\n" + "}" * n + "output y\n")


@program("--timeline")
def repeat_of_huge_count():
    return HEAD + ONE + "dim L = 4611686018427387904\ny = x\nrepeat L { y[B, D] = y[B, F] * w[F, D] }\noutput y\n"


@program("--timeline")
def repeat_of_a_million():
    return HEAD + ONE + "dim L = 1000000\ny = x\nrepeat L { y[B, D] = y[B, F] * w[F, D] }\noutput y\n"


@program()
def repeats_in_a_row():
    return fill(HEAD + ONE + "dim L = 8\ny = x\n", lambda i: "repeat L { y = relu(y) }\n", "output y\n")


@program()
def carried_values():
    n = 3000
    return (HEAD + ONE + "dim L = 8\n" + "".join(f"y{i} = x\n" for i in range(n)) + "repeat L {\n" +
            "".join(f"y{i} = relu(y{(i + 1) % n})\n" for i in range(n)) + "}\noutput y0\n")


# ---- meshes and machines


@program()
def mesh_of_16_axes():
    return ("hardware tpu_v5p[16, 16, 256]\nmesh [" + ", ".join(f"A{i}=2" for i in range(16)) +
            "]\ndim B = 65536, D = 65536\n" + ONE + "y[B, D] = x[B, D2] * w[D2, D]\ndim D2 = D\noutput y\n")


@program()
def mesh_of_12_axes():
    return ("hardware tpu_v5p[16, 16, 16]\nmesh [" + ", ".join(f"A{i}=2" for i in range(12)) +
            "]\ndim B = 65536, D = 65536, F = D\n" + ONE +
            "h[B, F] = relu(x[B, D] * w[D, F])\ny[B, D] = h[B, F] * w[F, D]\noutput y\n")


@program()
def mesh_of_8_axes():
    return ("hardware tpu_v5p[4, 8, 8]\nmesh [" + ", ".join(f"A{i}=2" for i in range(8)) +
            "]\ndim B = 65536, D = 65536, F = D\n" + ONE +
            "h[B, F] = relu(x[B, D] * w[D, F])\ny[B, D] = h[B, F] * w[F, D]\noutput y\n")


@program("--opt=propagate")
def mesh_of_16_axes_propagated():
    return ("hardware tpu_v5p[16, 16, 256]\nmesh [" + ", ".join(f"A{i}=2" for i in range(16)) +
            "]\ndim B = 65536, D = 65536, F = D\ninput x: bf16[B@(" + ", ".join(f"A{i}" for i in range(16)) +
            "), D]\nweight w: bf16[D@(" + ", ".join(f"A{i}" for i in range(15, -1, -1)) +
            "), F]\nh[B, F] = x[B, D] * w[D, F]\ny[B, D@(" + ", ".join(f"A{i}" for i in range(16)) +
            ")] = h[B, D]\noutput y\n")


@program()
def mesh_of_many_axes():
    return fill("hardware tpu_v5e[4, 4]\nmesh [X=4", lambda i: f", A{i}=1", "]\ndim B = 64, D = 64\n" + ONE + "output x\n")


@program()
def mesh_of_huge_axes():
    return ("hardware h100[1000000000, 8]\nmesh [X=1000000000, Y=8]\ndim B = 8000000000, D = 8000000000\n" + ONE +
            "y[B, D] = x[B, F] * w[F, D]\ndim F = D\noutput y\n")


@program()
def mesh_of_an_overflowing_size():
    return "hardware tpu_v5e[4, 4]\nmesh [X=4611686018427387904, Y=4611686018427387904]\ndim B = 64, D = 64\n" + ONE + "output x\n"


@program()
def shape_of_many_numbers():
    return "hardware tpu_v5e[" + "4, " * 100_000 + "4]\ndim B = 64, D = 64\n" + ONE + "output x\n"


@program()
def hardware_of_many_levels():
    n = 60
    text = "hardware pod[" + ", ".join(["2"] * n) + "] {\n flops.bf16 = 1 TFLOP/s hbm.capacity = 16 GB hbm.bandwidth = 1 TB/s\n"
    text += "".join(f"network n{i} switch[l{i}] {{ bandwidth = 10 GB/s latency = 1 us }}\n" for i in range(n))
    return text + "}\nmesh [" + ", ".join(f"A{i}=2" for i in range(16)) + "]\ndim B = 65536, D = 65536\n" + ONE + "y = relu(x)\noutput y\n"


@program()
def hardware_of_too_many_levels():
    return fill("hardware pod {\n flops.bf16 = 1 TFLOP/s hbm.capacity = 16 GB hbm.bandwidth = 1 TB/s\n",
                lambda i: f"network n{i} switch[l{i}] {{ bandwidth = 10 GB/s latency = 1 us }}\n", "}\n")


@program()
def hardware_fields():
    return fill("hardware pod {\n", lambda i: f"flops.q{i} = 1 TFLOP/s\n", "}\n")


# ---- annotations


@program()
def reshards():
    return fill(HEAD + ONE + "y[B@X, D] = x\n",
                lambda i: "y[B, D@X] = y\n" if i % 2 == 0 else "y[B@X, D] = y\n", "output y\n")


@program("--opt=none")
def reshards_as_annotated():
    return fill(HEAD + ONE + "y[B@X, D] = x\n",
                lambda i: "y[B, D@X] = y\n" if i % 2 == 0 else "y[B@X, D] = y\n", "output y\n")


@program("--opt=none")
def statements_as_annotated():
    return fill(HEAD + ONE + "y[B, D] = x\n", lambda i: "y[B, D] = y[B, F] * w[F, D]\n", "output y\n")


@program("--opt=propagate")
def statements_propagated():
    return fill(HEAD + ONE + "y[B@X, D] = x\n", lambda i: "y = relu(y)\n", "output y\n")


@program("--emit-plan")
def plan_of_many_statements():
    return fill(HEAD + ONE + "y[B@X, D] = x\n", lambda i: "y = relu(y)\n", "output y\n", 20_000)


@program("--emit-json", "--timeline")
def timeline_of_many_statements():
    return fill(HEAD + ONE + "y[B, D] = x\n", lambda i: "y[B, D] = y[B, F] * w[F, D]\n", "output y\n", 50_000)


# ---- imports


def fan_out():
    return {f"f{i}.shd": "dim " + ", ".join(f"D{i}x{j} = 1" for j in range(20)) + "\n" for i in range(3000)}


@program(files=fan_out)
def imports():
    return HEAD + ONE + "".join(f'import "f{i}.shd"\n' for i in range(3000)) + "output x\n"


def diamond():
    files = {"f40.shd": "dim Q = 1\n"}
    for i in range(40):
        files[f"f{i}.shd"] = f'import "f{i + 1}.shd"\nimport "./f{i + 1}.shd"\n'
    return files


@program(files=diamond)
def imports_that_double():
    return HEAD + ONE + 'import "f0.shd"\noutput x\n'


def chain():
    return {f"f{i}.shd": f'import "f{i + 1}.shd"\n' for i in range(5000)}


@program(files=chain)
def imports_in_a_chain():
    return HEAD + ONE + 'import "f0.shd"\noutput x\n'


@program(files=lambda: {"a.shd": 'import "b.shd"\n', "b.shd": 'import "a.shd"\n'})
def imports_in_a_cycle():
    return HEAD + ONE + 'import "a.shd"\noutput x\n'


@program()
def imports_of_itself():
    return HEAD + ONE + 'import "input.shd"\noutput x\n'


@program()
def imports_of_a_device():
    return HEAD + ONE + 'import "/dev/zero"\noutput x\n'


# ---- questions


FFN = "hardware tpu_v5e[4, 4]\nmesh [X=4, Y=4]\ndim B = 512, D = 1024, F = 4096\ninput x: bf16[B@X, D]\nweight w: bf16[D, F]\ny[B, F] = relu(x[B, D] * w[D, F])\noutput y\n"


@program("--sweep", "B in 1..9223372036854775807 + 1")
def sweep_of_a_huge_range():
    return FFN


@program("--sweep", "B in 1..9223372036854775807 * 2")
def sweep_that_doubles():
    return FFN


@program("--sweep", "B in 4..4000 + 4")
def sweep_of_1000():
    return FFN


@program("--sweep", "B in 1..1000000 + 1")
def sweep_of_a_million():
    return FFN


@program("--sweep", "B in 4..4000 + 4", "--sweep", "D in 4..4000 + 4")
def sweep_of_a_grid():
    return FFN


@program("--crossover", "B in 1..9223372036854775807")
def crossover_of_a_huge_range():
    return FFN


@program("--crossover", "B in 1..1048576")
def crossover():
    return FFN


# ---- running the plan


@program("--verify")
def verify_mesh_of_16_axes():
    return mesh_of_16_axes()


@program("--verify", "--opt=propagate")
def verify_mesh_of_16_axes_used():
    return mesh_of_16_axes_propagated()


@program("--verify")
def verify_mesh_of_12_axes():
    return mesh_of_12_axes()


@program("--verify")
def verify_tensor_of_30_dims():
    return tensor_of_30_dims()


@program("--verify")
def verify_huge_constants():
    return """hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim B = 64, D = 100000000, J = 50000000
input x: bf16[B, D]
y[B, J] = slice[D: 50000000..100000000 -> J](x)
output y
"""


@program("--verify")
def verify_many_different_extents():
    n = 200
    return (HEAD + "dim " + ", ".join(f"D{i} = {64 * (i + 1)}" for i in range(n)) + "\ninput x: bf16[B, D0]\n" +
            "".join(f"weight w{i}: bf16[D{i}, D{i + 1}]\n" for i in range(n - 1)) + "y0 = x\n" +
            "".join(f"y{i + 1}[B, D{i + 1}] = y{i} * w{i}\n" for i in range(n - 1)) + f"output y{n - 1}\n")


@program("--verify")
def verify_many_statements():
    return HEAD + ONE + "y[B, D] = x\n" + "y[B, D] = y[B, F] * w[F, D]\n" * 500 + "output y\n"


@program("--verify")
def verify_repeats_in_repeats():
    return thirty_repeats_in_repeats()


@program("--verify")
def verify_wide_product():
    names = [f"D{i}" for i in range(12)]
    return (HEAD + "dim " + ", ".join(f"{n} = {4 * (i + 1)}" for i, n in enumerate(names)) + "\ninput x: bf16[" +
            ", ".join(names[:6]) + "]\ninput z: bf16[" + ", ".join(names[6:]) + "]\ny[" + ", ".join(names) +
            "] = x * z\ns[] = sum[" + ", ".join(names) + "](y)\noutput s\n")


# ---- the reader of modules


def measure(shardc, name, keep):
    function, options, files = programs[name]
    with tempfile.TemporaryDirectory() as folder:
        folder = keep or folder
        for file, text in (files() if files else {}).items():
            with open(os.path.join(folder, file), "w") as out:
                out.write(text)
        path = os.path.join(folder, f"{name}.shd" if keep else "input.shd")
        with open(path, "w") as out:
            out.write(function())
        assert os.path.getsize(path) < 1_000_000, name
        with open(os.devnull, "w") as nothing, tempfile.TemporaryFile() as errors:
            start = time.monotonic()
            process = subprocess.Popen([shardc, path, *options], stdout=nothing, stderr=errors,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30)))
            _, status, usage = os.wait4(process.pid, 0)
            seconds = usage.ru_utime + usage.ru_stime
            errors.seek(0)
            text = errors.read(100_000).decode(errors="replace")
    status = os.waitstatus_to_exitcode(status)
    said = next((line for line in text.splitlines() if "error:" in line or "warning:" in line), "")
    return seconds, usage.ru_maxrss / 1000, status, said.replace(path, "input.shd")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shardc", default="build/bin/shardc")
    parser.add_argument("--keep", help="leave the programs in this folder")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    failures = 0
    for name in arguments.names or programs:
        seconds, megabytes, status, said = measure(arguments.shardc, name, arguments.keep)
        failed = seconds > SECONDS or megabytes > MEGABYTES or status not in (0, 1, 2, 3)
        failures += failed
        print(f"{'FAILED' if failed else 'ok':6} {seconds:6.1f} s {megabytes:6.0f} MB  {status:3}  {name}: {said[:100]}",
              flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
