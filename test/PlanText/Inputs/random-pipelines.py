"""Writes random programs with pipeline stages, half of them trained, and compares
each plan with the one that its text is read as.

    random-pipelines.py SHARDC FIRST COUNT

Plans are those of a search, of what the program says, and of what follows from it.
Extents are small, and dimensions are placed at random.
"""

import json
import random
import subprocess
import sys

HARDWARE = """hardware even[{chips}] {{
  flops.bf16 = 100 TFLOP/s
  flops.f32 = 50 TFLOP/s
  hbm.capacity = 80 GB
  hbm.bandwidth = 2 TB/s
  network fabric switch[gpu] {{ bandwidth = 100 GB/s  latency = 2 us }}
}}"""
HOW = ("--objective=upper", "--opt=none", "--opt=propagate")
COMPARED = ("time", "memory", "words", "pipeline", "stages", "flops", "ops")
PLACES = {"file", "loc", "location", "at", "line", "column"}


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.axes = {"X": self.random.choice([2, 4])}
        if self.chance(0.7):
            self.axes["Y"] = 2
        self.stages = self.random.choice([2, 3, 4])
        self.dims = {
            "B": self.random.choice([8, 16, 32]),
            "T": self.random.choice([8, 16]),
            "D": self.random.choice([16, 32, 64]),
            "F": self.random.choice([32, 64]),
            "V": self.random.choice([32, 64]),
        }

    def chance(self, share):
        return self.random.random() < share

    def placed(self, indices):
        """The list with some indices on axes, or on none."""
        left = list(self.axes)
        words = []
        for index in indices:
            axis = self.random.choice(left) if left else None
            if axis and self.chance(0.25):
                left.remove(axis)
                words.append(f"{index}@{axis}")
            else:
                words.append(index + ("@()" if self.chance(0.08) else ""))
        return "[" + ", ".join(words) + "]"

    def add(self, *lines):
        self.lines += lines

    def layer(self):
        skip = self.random.choice(["x[B, T, D] + ", ""])
        function = self.random.choice(["relu", "silu", "gelu"])
        self.add(
            "layer mlp(x: bf16[B, T, D]) -> (z) {",
            f"  weight Win: bf16{self.placed('DF')}",
            f"  weight Wout: bf16{self.placed('FD')}",
            f"  h{self.placed('BTF')} = {function}(x[B, T, D] * Win[D, F])",
            f"  z{self.placed('BTD')} = {skip}h[B, T, F] * Wout[F, D]",
            "}",
        )

    def body(self, has_layer, is_trained):
        read = "x"
        if self.chance(0.6):
            read = "a"
            self.add(f"  weight g: bf16{self.placed('D')}")
            self.add(f"  a{self.placed('BTD')} = rmsnorm[D](x, g)")
        if self.chance(0.5):
            self.add(
                f"  weight Wq: bf16{self.placed('CD')}",
                f"  weight Wk: bf16{self.placed('CD')}",
                f"  q{self.placed('BTD')} = {read}[B, T, C] * Wq[C, D]",
                f"  k{self.placed('BSD')} = {read}[B, S, C] * Wk[C, D]",
                f"  s{self.placed('BTS')} = softmax[S](q[B, T, D] * k[B, S, D])",
                f"  x{self.placed('BTD')} += s[B, T, S] * {read}[B, S, D]",
            )
        else:
            self.add(
                f"  weight W: bf16{self.placed('CD')}",
                f"  x{self.placed('BTD')} = {read}[B, T, C] * W[C, D]",
            )
        for _ in range(self.random.choice([1, 1, 2]) if has_layer else 0):
            self.add(f"  x = mlp({self.random.choice(['x', 'relu(x)'])})")
        if not is_trained and self.chance(0.5):
            self.add(
                f"  state c: bf16{self.placed('BTD')}",
                f"  x{self.placed('BTD')} = x + c",
                f"  c{self.placed('BTD')} = x[B, T, D]",
            )

    def head(self, number, is_trained):
        head = "repeat L@pp"
        if number and not is_trained:
            head += f" microbatches({number})"
        if not is_trained and self.chance(0.3):
            head += " schedule(gpipe)"
        return head + " {"

    def train(self, number):
        fields = ["loss = loss"]
        if number:
            fields.append(f"microbatches = {number}")
        if self.chance(0.4):
            order = self.random.choice(["gpipe", "1f1b", "1f1b(2)", "zero_bubble"])
            fields.append(f"schedule = {order}")
        if self.chance(0.5):
            fields.append(f"remat = {self.random.choice(['none', 'full', 'auto'])}")
        if self.chance(0.2):
            fields.append("clip = 1.0")
        if self.chance(0.2):
            fields.append("optimizer = sgd(momentum=none)")
        if self.chance(0.2):
            fields.append("reduce = bf16")
        return "train { " + "  ".join(fields) + " }"

    def outputs(self, table):
        if self.chance(0.4):
            self.add(f"state seen: f32{self.placed('BT')}")
            self.add("seen[B, T] = seen[B, T] + sum[D](f32(x))")
        self.add(f"y{self.placed('BTV')} = x[B, T, D] * {table}[V, D]", "output y")
        if self.chance(0.5):
            function = self.random.choice(["mean", "sum"])
            self.add(f"most[] = {function}[B, T, V](f32(y))", "output most")
        if self.chance(0.5):
            self.add(f"all{self.placed('D')} = sum[B, T](f32(x))", "output all")

    def program(self):
        is_trained, has_layer, is_tied = (self.chance(0.5) for _ in range(3))
        chips = self.stages
        for size in self.axes.values():
            chips *= size
        axes = ", ".join(f"{name}={size}" for name, size in self.axes.items())
        dims = ", ".join(f"{name} = {size}" for name, size in self.dims.items())
        layers = self.random.randint(self.stages, 3 * self.stages)
        self.add(HARDWARE.format(chips=chips), f"mesh [pp={self.stages}, {axes}]")
        self.add(f"dim {dims}, S = T, C = D, L = {layers}")
        if has_layer:
            self.layer()
        self.add(f"input tokens: int32{self.placed('BT')}")
        if is_trained:
            self.add(f"input labels: int32{self.placed('BT')}")
        self.add(f"weight E: bf16{self.placed('VD')}")
        if not is_tied:
            self.add(f"weight U: bf16{self.placed('VD')}")
        self.add(f"x{self.placed('BTD')} = E[tokens[B, T], D]")
        number = self.random.choice([None, None, 2, 4, 8])
        self.add(self.head(number, is_trained))
        self.body(has_layer, is_trained)
        self.add("}")
        table = "E" if is_tied else "U"
        if is_trained:
            self.add(f"logits{self.placed('BTV')} = x[B, T, D] * {table}[V, D]")
            self.add("loss[] = mean[B, T](cross_entropy[V](logits, labels))")
            self.add(self.train(number))
        else:
            self.outputs(table)
        return "\n".join(self.lines) + "\n"


def without_places(value):
    if isinstance(value, dict):
        return {k: without_places(v) for k, v in value.items() if k not in PLACES}
    if isinstance(value, list):
        return [without_places(each) for each in value]
    return value


def run(shardc, text, *options):
    return subprocess.run([shardc, "-", *options], input=text, capture_output=True, text=True)


def figures(shardc, text, how):
    """Of the report; nothing of a program that has no such plan."""
    ran = run(shardc, text, how, "--emit-json")
    if ran.returncode != 0:
        return None
    report = json.loads(ran.stdout)
    return {key: without_places(report[key]) for key in COMPARED}


def main():
    shardc, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    plans = 0
    for seed in range(first, first + count):
        program = Generator(seed).program()
        for how in HOW:
            plan = figures(shardc, program, how)
            if plan is None:
                continue
            ran = run(shardc, program, how, "--emit-plan")
            if ran.returncode != 0:
                sys.exit(f"seed {seed}, {how}: no text\n{ran.stderr}{program}")
            read = figures(shardc, ran.stdout, "--opt=none")
            if read != plan:
                differ = [k for k in plan if not read or plan[k] != read[k]]
                sys.exit(f"seed {seed}, {how}: {differ} differ\n{ran.stdout}")
            plans += 1
    print(f"{plans} plans are read back as they are")


main()
