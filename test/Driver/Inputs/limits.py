"""Prints a program that is as large as its limit allows, and a little more."""

import sys


def calls():
    """g15 makes 2^18 operations, in 2^16 calls."""
    lines = ["hardware tpu_v5e", "dim B = 4", "input x: f32[B]", "layer g0(a: f32[B]) -> (r) { r = relu(exp(relu(exp(relu(exp(relu(exp(a)))))))) }"]
    lines += [f"layer g{i}(a: f32[B]) -> (r) {{ r = g{i - 1}(a) r = g{i - 1}(r) }}" for i in range(1, 16)]
    return lines + ["y = g15(x)", "output y"]


def statements():
    """One declaration and as many statements as there may be operations."""
    return ["dim B = 4", "input x: f32[B]"] + ["y = relu(x)"] * 200001 + ["output y"]


def errors():
    return ["dim B = 4", "input x: f32[B]"] + [f"y{i} = nope{i}[B]" for i in range(110)]


def search():
    return ["hardware tpu_v5e[2, 2]", "mesh [X=2, Y=2]", "dim B = 4", "input x: f32[B]"] + ["x1 = relu(x)"] + ["x1 = relu(x1)"] * 4000 + ["output x1"]


def chain():
    """One kernel of 320 operations, half of which read a weight."""
    head = ["hardware tpu_v5p[4, 4, 4]", "mesh [X=4, Y=4, Z=4]", "dim B = 64, D = 1024", "input x0: bf16[B, D]", "weight w: bf16[D]"]
    return head + ["x = relu(x0)"] + ["x[B, D] = relu(x[B, D] * w[D])"] * 160 + ["output x"]


def repeats():
    """Three of 100 iterations, and 5,000 operations."""
    head = ["hardware tpu_v5e", "dim B = 4, I = 100, J = 100, K = 100", "input x: f32[B]", "y = x"]
    return head + ["repeat I { repeat J { repeat K {"] + ["y = relu(y)"] * 5000 + ["} } }", "output y"]


def dimensions():
    names = ", ".join(f"D{i}" for i in range(65))
    return ["dim " + names.replace(",", " = 1,") + " = 1", f"input x: f32[{names}]", "output x"]


def cycle():
    return ["dim " + ", ".join(f"D{i} = D{(i + 1) % 100}" for i in range(100))]


print("\n".join(globals()[sys.argv[1]]()))
