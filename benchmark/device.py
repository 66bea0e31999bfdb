#!/usr/bin/env python3
"""Measures one GPU: kernels alone, the link to the host, and whole steps of LLaMA.

    benchmark/device.py -o FOLDER [--chip H100-SXM] [--only REGEX] [--seconds 600]
    benchmark/device.py -o FOLDER --small        small sizes, on a CPU, too: a test

It needs PyTorch and nothing else; all data is random. It writes

    FOLDER/rows.json     everything, as rows for utils/measured.py
    FOLDER/matmuls.csv   square matmuls, for utils/calibrate.py --matmul

and prints a table. The sections, which --only picks by name:

    launch     an empty kernel in a stream, and as a node of a CUDA graph
    hbm        copies and sums of two arrays, 64 KiB to 4 GiB moved
    matmul     bf16, squares and the products of LLaMA at 1 to 16,384 tokens
    sustained  squares after seconds of the same work, as the power allows
    attention  causal, forward and backward, and one token over a cache
    link       pinned copies from and to the host, 64 KiB to 1 GiB
    beside     matmuls and sums while other work runs: copies by a few processors,
               as collectives take, and copies from and to the host
    decode, prefill
               LLaMA 8B and 1B with fused projections, compiled layer by layer;
               decoding is one CUDA graph a step
    train      AdamW steps of 1B and of 8 layers of 8B, eager and compiled, with
               and without recomputation

Kernels are timed in a CUDA graph whose nodes work on different buffers, so that
operands come from HBM and no time is that of a launch. Figures are medians.
"""

import argparse
import gc
import itertools
import json
import math
import os
import re
import statistics
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

BF16 = torch.bfloat16

# What rows call the chips, by a part of the name that PyTorch gives them.
CHIPS = {
    "A100-SXM4-80GB": "A100-80GB",
    "A100-SXM4-40GB": "A100-40GB",
    "H100 80GB HBM3": "H100-SXM",
    "H200": "H200-SXM",
    "B200": "B200",
    "B300": "B300",
}


def model(layers, width, hidden, heads, kvHeads, headDim, vocab, tied):
    """The facts of a gated decoder, as rows have them."""
    layer = width * headDim * (2 * heads + 2 * kvHeads) + 3 * width * hidden
    layer += 2 * width
    return {
        "layers": layers,
        "d_model": width,
        "d_ff": hidden,
        "heads": heads,
        "kv_heads": kvHeads,
        "head_dim": headDim,
        "vocab": vocab,
        "gated": True,
        "tied": tied,
        "params": layers * layer + width + vocab * width * (1 if tied else 2),
    }


MODELS = {
    "llama3-8b": model(32, 4096, 14336, 32, 8, 128, 128256, False),
    "llama3-8b-l8": model(8, 4096, 14336, 32, 8, 128, 128256, False),
    "llama3.2-1b": model(16, 2048, 8192, 32, 8, 64, 128256, True),
}
TINY = model(2, 64, 128, 4, 2, 16, 512, True)


class Device:
    """Runs and times work on the GPU; on a CPU, without graphs, for tests."""

    def __init__(self):
        self.isGpu = torch.cuda.is_available()
        self.name = "cuda" if self.isGpu else "cpu"
        # The stream that runs work before it becomes a graph: one for all, since
        # cuBLAS keeps a workspace for each stream.
        self.side = torch.cuda.Stream() if self.isGpu else None
        # That of work beside kernels, which goes first.
        self.ahead = torch.cuda.Stream(priority=-1) if self.isGpu else None

    def wait(self):
        if self.isGpu:
            torch.cuda.synchronize()

    def seconds(self, work, runs):
        """The median time of a call of work, in a stream."""
        times = []
        for _ in range(runs):
            if self.isGpu:
                begin = torch.cuda.Event(enable_timing=True)
                end = torch.cuda.Event(enable_timing=True)
                begin.record()
                work()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e-3)
            else:
                begin = time.perf_counter()
                work()
                times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def graph(self, work):
        """work as a CUDA graph, which the result replays."""
        if not self.isGpu:
            return work
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            for _ in range(2):
                work()
        torch.cuda.current_stream().wait_stream(self.side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay

    def kernelSeconds(self, launches, expected, runs=7):
        """The time of one of the launches, each on buffers of its own. Expected
        seconds of one say how often a graph repeats them."""
        count = max(len(launches), min(200, math.ceil(1e-3 / expected)))

        def work():
            for launch in itertools.islice(itertools.cycle(launches), count):
                launch()

        replay = self.graph(work)
        replay()
        return self.seconds(replay, runs) / count

    def attention(self, name):
        """Which kernel of attention to use; a CPU has none of these."""
        return getattr(SDPBackend, f"{name}_ATTENTION".upper() if self.isGpu else "MATH")

    def reset(self):
        """Frees what nobody holds, and forgets the peak."""
        gc.collect()
        if self.isGpu:
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peakGib(self):
        return torch.cuda.max_memory_allocated() / 2**30 if self.isGpu else 0.0


class Pool:
    """Parts of one array of random numbers, around which they go, so that
    kernels find none of their operands in the cache."""

    def __init__(self, device, elements):
        self.data = torch.randn(elements, dtype=BF16, device=device.name)
        self.next = 0

    def take(self, *shapes):
        """An array of each shape, none on another one."""
        # Kernels of matmuls expect operands aligned to 16 bytes or more.
        sizes = [-(-math.prod(shape) // 512) * 512 for shape in shapes]
        if self.next + sum(sizes) > len(self.data):
            self.next = 0
        parts = []
        for shape, size in zip(shapes, sizes):
            part = self.data[self.next : self.next + math.prod(shape)]
            parts.append(part.view(*shape))
            self.next += size
        return parts


if triton:

    @triton.jit
    def copyByPrograms(source, target, size, times, BLOCK: tl.constexpr):
        """Copies size elements so many times, in as many programs as run."""
        for _ in range(times):
            for begin in range(tl.program_id(0) * BLOCK, size, tl.num_programs(0) * BLOCK):
                where = begin + tl.arange(0, BLOCK)
                tl.store(target + where, tl.load(source + where))


# More than the caches of the GPUs hold.
BEYOND_CACHE = 256e6


def copies(bytesOfOne, most=200):
    """How many sets of buffers it takes to find none in the cache."""
    return max(1, min(most, math.ceil(BEYOND_CACHE / bytesOfOne)))


class Bench:
    """Measures, and collects rows and lines of the table."""

    def __init__(self, options):
        self.device = Device()
        self.small = options.small
        self.folder = options.output
        self.until = time.monotonic() + options.seconds
        self.only = options.only
        name = torch.cuda.get_device_name() if self.device.isGpu else "CPU"
        known = [chip for part, chip in CHIPS.items() if part in name]
        self.chip = options.chip or (known or [name])[0]
        self.hardware = {"chip": self.chip, "count": 1}
        date = time.strftime("%Y-%m-%d")
        self.source = f"own run, one {name}, PyTorch {torch.__version__}, {date}"
        self.rows = []
        # The least time of FLOPs and bytes, only to say how often to repeat.
        self.flops, self.bandwidth = 1e15, 3e12

    def row(self, kind, name, **facts):
        row = {
            "id": f"own-{name}-{self.chip}",
            "kind": kind,
            "source": self.source,
            "hardware": self.hardware,
            **facts,
        }
        self.rows.append(row)

    def line(self, text):
        print(f"[{time.strftime('%M:%S')}] {text}", flush=True)

    def isAsked(self, name):
        """Whether to measure it: it is asked for, and there is time."""
        if not re.search(self.only, name):
            return False
        if time.monotonic() > self.until:
            self.line(f"{name}: skipped, out of time")
            return False
        return True

    def attempt(self, name, work):
        """Runs a measurement; an error ends only this one."""
        if not self.isAsked(name):
            return
        begin = time.monotonic()
        try:
            work()
        except Exception as error:  # Out of memory, or nothing that compiles.
            text = str(error).strip().split("\n")[0][:300]
            self.line(f"{name}: {type(error).__name__}: {text}")
        self.device.reset()
        self.write()
        self.line(f"{name}: done in {time.monotonic() - begin:.1f} s")

    def write(self):
        with open(os.path.join(self.folder, "rows.json"), "w") as file:
            rows = [json.dumps(row) for row in self.rows]
            file.write("[\n" + ",\n".join(rows) + "\n]\n")

    # ---- kernels

    def launch(self):
        count = 10 if self.small else 1000
        cell = torch.zeros(1, device=self.device.name)

        def work():
            for _ in range(count):
                cell.add_(1)

        work()
        stream = self.device.seconds(work, 5) / count
        graph = self.device.seconds(self.device.graph(work), 5) / count
        times = {"stream_us": stream * 1e6, "graph_us": graph * 1e6}
        self.row("launch", "launch", measured=times)
        self.line(f"launch: stream {stream * 1e6:.2f} us, graph {graph * 1e6:.2f} us")

    def hbm(self):
        most = 2**20 if self.small else 2**32
        # Of bf16, and room for what aligning takes.
        pool = Pool(self.device, most // 2 + 4096)
        curve = []
        for operation, arrays in (("copy", 2), ("add", 3)):
            moved = 2**16
            while moved <= most:
                size = moved // 2 // arrays // 64 * 64
                launches = []
                for _ in range(copies(moved, 4096)):
                    parts = pool.take(*[(size,)] * arrays)
                    if operation == "copy":
                        launch = lambda p=parts: p[1].copy_(p[0])
                    else:
                        launch = lambda p=parts: torch.add(p[0], p[1], out=p[2])
                    launches.append(launch)
                expected = moved / self.bandwidth + 1e-6
                seconds = self.device.kernelSeconds(launches, expected)
                curve.append(
                    {
                        "operation": operation,
                        "elements": size,
                        "bytes": 2 * arrays * size,
                        "time_us": round(seconds * 1e6, 3),
                    }
                )
                rate = 2 * arrays * size / seconds
                self.line(
                    f"{operation} {moved} B: {seconds * 1e6:.2f} us,"
                    f" {rate / 1e9:.0f} GB/s"
                )
                moved *= 4
        self.row("hbm", "hbm", dtype="bf16", curve=curve)

    def matmulShapes(self):
        """(m, n, k, transposed) of what is multiplied."""
        if self.small:
            return [(m, m, m, False) for m in (32, 64)] + [(8, 96, 64, True)]
        squares = [256, 384, 512, 768, 1024, 1536, 2048, 3072]
        squares += [4096, 6144, 8192, 12288, 16384]
        shapes = [(m, m, m, False) for m in squares]
        # Products of LLaMA 8B: qkv, output, gate and up, down.
        for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)):
            for m in (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384):
                shapes.append((m, n, k, False))
        for m in (1, 8, 64, 512, 4096):
            shapes.append((m, 128256, 4096, False))
        # Of 1B.
        for n, k in ((3072, 2048), (2048, 2048), (16384, 2048), (2048, 8192)):
            for m in (1, 8, 64, 512, 4096, 16384):
                shapes.append((m, n, k, False))
        # Gradients of weights sum over tokens.
        for n, k in ((6144, 4096), (28672, 4096), (4096, 14336), (16384, 2048)):
            for tokens in (2048, 8192, 16384):
                shapes.append((k, n, tokens, True))
        return shapes

    def matmul(self):
        pool = Pool(self.device, 2**20 if self.small else 2**31)
        curve = []
        for m, n, k, isTransposed in self.matmulShapes():
            if time.monotonic() > self.until:
                self.line("matmul: out of time")
                break
            moved = 2 * (m * k + k * n + m * n)
            launches = []
            for _ in range(copies(moved)):
                # A weight is stored [n, k], as a linear layer has it; a gradient
                # multiplies [tokens, m] and [tokens, n].
                if isTransposed:
                    a, b = pool.take((k, m), (k, n))
                    a = a.t()
                else:
                    a, b = pool.take((m, k), (n, k))
                    b = b.t()
                out = torch.empty(m, n, dtype=BF16, device=self.device.name)
                launches.append(lambda a=a, b=b, o=out: torch.mm(a, b, out=o))
            flops = 2 * m * n * k
            expected = max(flops / self.flops, moved / self.bandwidth) + 2e-6
            seconds = self.device.kernelSeconds(launches, expected, 5)
            point = {"m": m, "n": n, "k": k, "time_us": round(seconds * 1e6, 3)}
            if isTransposed:
                point["transposed"] = True
            curve.append(point)
            self.line(
                f"matmul {m} x {n} x {k}: {seconds * 1e6:.2f} us,"
                f" {flops / seconds / 1e12:.1f} TFLOP/s, {moved / seconds / 1e9:.0f} GB/s"
            )
        self.row("matmul", "matmul", dtype="bf16", curve=curve)
        with open(os.path.join(self.folder, "matmuls.csv"), "w") as file:
            file.write("m,n,k,time_us\n")
            for point in curve:
                m, n, k = point["m"], point["n"], point["k"]
                if m == n == k and m >= 512:
                    file.write(f"{m},{n},{k},{point['time_us']}\n")

    def sustained(self):
        """Matmuls after seconds of the same work, when the chip is warm and its
        power limits its clock."""
        pool = Pool(self.device, 2**20 if self.small else 2**28)
        curve = []
        for m in (32,) if self.small else (2048, 4096, 8192):
            a, b = pool.take((m, m), (m, m))
            out = torch.empty(m, m, dtype=BF16, device=self.device.name)
            # Some 20 ms a graph.
            count = 1 if self.small else math.ceil(2e-2 * self.flops / (2 * m**3))

            def work():
                for _ in range(count):
                    torch.mm(a, b.t(), out=out)

            replay = self.device.graph(work)
            until = time.monotonic() + (0.1 if self.small else 4)
            while time.monotonic() < until:
                replay()
                self.device.wait()
            seconds = self.device.seconds(replay, 10) / count
            curve.append({"m": m, "n": m, "k": m, "time_us": round(seconds * 1e6, 3)})
            rate = 2 * m**3 / seconds
            self.line(f"sustained {m}: {seconds * 1e6:.2f} us, {rate / 1e12:.1f} TFLOP/s")
        self.row("matmul", "sustained", dtype="bf16", curve=curve)

    def attention(self):
        device = self.device.name
        shapes = [(1, 64, 4, 2, 16)]
        if not self.small:
            shapes = [(1, t, 32, 8, 128) for t in (1024, 2048, 4096, 8192, 16384, 32768)]
            shapes += [(8, 2048, 32, 8, 128), (8, 2048, 32, 8, 64), (2, 8192, 32, 8, 64)]
        curve = []
        kernels = ("flash", "cudnn")
        for (batch, seq, heads, kvHeads, size), name in itertools.product(shapes, kernels):
            backend = self.device.attention(name)
            try:
                q = torch.randn(batch, heads, seq, size, dtype=BF16, device=device)
                k = torch.randn(batch, kvHeads, seq, size, dtype=BF16, device=device)
                v, g = torch.randn_like(k), torch.randn_like(q)
                for each in (q, k, v):
                    each.requires_grad_()

                def forward():
                    with sdpa_kernel(backend):
                        return F.scaled_dot_product_attention(
                            q, k, v, is_causal=True, enable_gqa=True
                        )

                def alone():
                    with torch.no_grad():
                        forward()

                alone()
                flops = 2 * batch * heads * seq * seq * size
                once = self.device.kernelSeconds([alone], flops / self.flops + 1e-5, 5)
                out = forward()
                back = lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True)
                back()
                backward = self.device.seconds(back, 5)
            except Exception as error:
                self.line(f"attention {name} {batch} x {seq}: {str(error)[:200]}")
                continue
            point = {
                "batch": batch,
                "queries": seq,
                "keys": seq,
                "heads": heads,
                "kv_heads": kvHeads,
                "head_dim": size,
                "causal": True,
                "kernel": name,
                "forward_us": round(once * 1e6, 3),
                "backward_us": round(backward * 1e6, 3),
            }
            curve.append(point)
            self.line(
                f"attention {name} {batch} x {seq}, {heads} / {kvHeads} heads of {size}:"
                f" {once * 1e6:.1f} us, {flops / once / 1e12:.0f} TFLOP/s;"
                f" backward {backward * 1e6:.1f} us"
            )
        self.row("attention", "attention", dtype="bf16", curve=curve)

    def cacheAttention(self):
        """One token of each sequence over a cache."""
        device, backend = self.device.name, self.device.attention("flash")
        shapes = [(1, 64, 4, 2, 16)]
        if not self.small:
            shapes = [
                (batch, keys, 32, 8, size)
                for size in (128, 64)
                for batch in (1, 8, 32, 64)
                for keys in (1024, 8192)
            ]
        curve = []
        for batch, keys, heads, kvHeads, size in shapes:
            moved = 4 * batch * keys * kvHeads * size
            launches = []
            for _ in range(min(16, copies(moved))):
                # Queries that share a head of the cache take the place of
                # positions: the same sums, and the cache is read once.
                q = torch.randn(batch, kvHeads, heads // kvHeads, size, dtype=BF16, device=device)
                k = torch.randn(batch, kvHeads, keys, size, dtype=BF16, device=device)
                v = torch.randn_like(k)
                launches.append(
                    lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v)
                )
            with sdpa_kernel(backend), torch.no_grad():
                expected = moved / self.bandwidth + 5e-6
                seconds = self.device.kernelSeconds(launches, expected, 5)
            point = {
                "batch": batch,
                "queries": 1,
                "keys": keys,
                "heads": heads,
                "kv_heads": kvHeads,
                "head_dim": size,
                "causal": False,
                "kernel": "flash",
                "forward_us": round(seconds * 1e6, 3),
            }
            curve.append(point)
            self.line(
                f"attention over a cache, {batch} x {keys}, heads of {size}:"
                f" {seconds * 1e6:.1f} us, {moved / seconds / 1e9:.0f} GB/s"
            )
        self.row("attention", "cache-attention", dtype="bf16", curve=curve)

    def link(self):
        most = 2**20 if self.small else 2**30
        there = torch.empty(most, dtype=torch.uint8, device=self.device.name)
        back = torch.empty_like(there)
        host = torch.empty(most, dtype=torch.uint8, pin_memory=self.device.isGpu)
        other = torch.empty(most, dtype=torch.uint8, pin_memory=self.device.isGpu)
        curve = []
        size = 2**16
        while size <= most:
            toDevice = lambda: there[:size].copy_(host[:size], non_blocking=True)
            toHost = lambda: other[:size].copy_(back[:size], non_blocking=True)
            directions = {"in": toDevice, "out": toHost}
            if self.device.isGpu:
                streams = torch.cuda.Stream(), torch.cuda.Stream()

                def both():
                    for stream, work in zip(streams, (toDevice, toHost)):
                        stream.wait_stream(torch.cuda.current_stream())
                        with torch.cuda.stream(stream):
                            work()
                    for stream in streams:
                        torch.cuda.current_stream().wait_stream(stream)

                directions["both"] = both
            for direction, work in directions.items():
                work()
                self.device.wait()
                seconds = self.device.seconds(work, 7)
                curve.append(
                    {
                        "direction": direction,
                        "bytes": size,
                        "time_us": round(seconds * 1e6, 3),
                    }
                )
                rate = size / seconds / 1e9
                self.line(f"link {direction} {size} B: {seconds * 1e6:.1f} us, {rate:.1f} GB/s")
            size *= 4
        self.row("link", "link", curve=curve)

    def besideWork(self):
        """(name, bytes of one, function that runs so many) of what takes a part of
        the GPU while kernels run."""
        size = 2**27
        source, target = (torch.zeros(size, dtype=BF16, device="cuda") for _ in range(2))
        block = 16384
        for programs in (8, 16, 24, 32):
            yield f"copy by {programs}", 2 * size, lambda times, programs=programs: (
                copyByPrograms[(programs,)](source, target, size, times, block, num_warps=16)
            )
        there = torch.empty(2**28, dtype=torch.uint8, device="cuda")
        host = torch.empty(2**28, dtype=torch.uint8, pin_memory=True)

        def transfer(times, isIn):
            for _ in range(times):
                if isIn:
                    there.copy_(host, non_blocking=True)
                else:
                    host.copy_(there, non_blocking=True)

        yield "from host", 2**28, lambda times: transfer(times, True)
        yield "to host", 2**28, lambda times: transfer(times, False)

    def whileRuns(self, replay, work, times):
        """Seconds of a graph of kernels, and of the work beside them that begins
        before them. Both begin after a pause, when the chip is cool."""
        first, last, begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(4))
        self.device.wait()
        time.sleep(0.1)
        with torch.cuda.stream(self.device.ahead):
            first.record()
            work(times)
            last.record()
        time.sleep(2e-3)
        begin.record()
        replay()
        end.record()
        self.device.wait()
        return begin.elapsed_time(end) * 1e-3, first.elapsed_time(last) * 1e-3

    def besideKernels(self):
        """(name, kernel, its expected seconds)."""
        pool = Pool(self.device, 2**31)
        for m, n, k in ((8192, 28672, 4096), (8192, 4096, 14336), (4096, 4096, 4096)):
            a, b, out = pool.take((m, k), (n, k), (m, n))
            launch = lambda a=a, b=b, out=out: torch.mm(a, b.t(), out=out)
            yield f"matmul {m} x {n} x {k}", launch, 2 * m * n * k / self.flops
        x, y, out = pool.take(*[(2**28,)] * 3)
        yield "add 1.5 GiB", lambda: torch.add(x, y, out=out), 6 * 2**28 / self.bandwidth

    def beside(self):
        """Kernels alone, and while something else runs all the time."""
        if not self.device.isGpu or not triton:
            self.line("beside: needs a GPU and Triton")
            return
        curve = []
        for kernel, launch, expected in self.besideKernels():
            # Some 20 ms, and other work for several times as long.
            count = math.ceil(2e-2 / expected)
            replay = self.device.graph(lambda: [launch() for _ in range(count)])
            replay()
            runs = [self.whileRuns(replay, lambda _: None, 0) for _ in range(5)]
            alone = statistics.median(seconds for seconds, _ in runs)
            for name, size, work in self.besideWork():
                work(1)
                once = self.device.seconds(lambda: work(8), 3) / 8
                times = math.ceil(5 * alone / once)
                runs = [self.whileRuns(replay, work, times) for _ in range(5)]
                both, taken = (statistics.median(column) for column in zip(*runs))
                # What it lost, it lost beside the kernels.
                lost = (taken - once * times) / both
                point = {
                    "kernel": kernel,
                    "beside": name,
                    "alone_us": round(alone / count * 1e6, 3),
                    "time_us": round(both / count * 1e6, 3),
                    "rate_gb_s": round(size / once / 1e9, 1),
                    "rate_beside_gb_s": round(size / once * max(0, 1 - lost) / 1e9, 1),
                }
                curve.append(point)
                self.line(
                    f"{kernel} beside {name}: {both / alone:.3f} times"
                    f" {point['alone_us']} us, {point['rate_beside_gb_s']} of"
                    f" {point['rate_gb_s']} GB/s"
                )
        self.row("beside", "beside", curve=curve)

    # ---- whole steps

    def infer(self, kind, name, batch, length, isCompiled, kernel="flash"):
        """A decoding step over a cache of a length, or a prefill of so many
        tokens of each sequence."""
        facts = TINY if self.small else MODELS[name]
        if self.small:
            batch, length = 2, 16
        torch._dynamo.reset()
        self.device.reset()
        with torch.no_grad(), sdpa_kernel(self.device.attention(kernel)):
            run = Inference(self.device, facts, batch, length, isCompiled)
            step = run.decode if kind == "decode" else run.prefill
            for _ in range(2):
                step()
            self.device.wait()
            if kind == "decode":
                step = self.device.graph(step)
            step()
            seconds = self.device.seconds(step, 10)
        how = "compiled" if isCompiled else "eager"
        peak = self.device.peakGib()
        self.row(
            kind,
            f"{kind}-{name}-b{batch}-s{length}-{how}-{kernel}",
            model={"name": name, **facts},
            dtype="bf16",
            inference={"batch": batch, "length": length},
            framework=f"{how}, {kernel}" + (", CUDA graph" if kind == "decode" else ""),
            measured={"step_time_s": seconds, "mem_gib_per_device": peak},
        )
        self.line(
            f"{kind} {name} {batch} x {length} {how} {kernel}:"
            f" {seconds * 1e3:.3f} ms, {peak:.2f} GiB"
        )

    def train(self, name, batch, length, remat, state, isCompiled, kernel):
        facts = TINY if self.small else MODELS[name]
        if self.small:
            batch, length = 2, 16
        torch._dynamo.reset()
        self.device.reset()
        run = Training(self.device, facts, batch, length, remat, state, isCompiled)
        with sdpa_kernel(self.device.attention(kernel)):
            for _ in range(3):
                run.step()
            self.device.wait()
            seconds = self.device.seconds(run.step, 5)
        how = "compiled" if isCompiled else "eager"
        peak = self.device.peakGib()
        # The compiler runs elementwise operations again in the backward pass.
        kept = remat if remat == "full" else "auto" if isCompiled else "none"
        self.row(
            "train",
            f"train-{name}-b{batch}-s{length}-{state}-{kept}-{how}-{kernel}",
            model={"name": name, **facts},
            seq_len=length,
            global_batch={"sequences": batch, "tokens": batch * length},
            dtype="bf16",
            optimizer=state,
            framework=f"{how}, {kernel}",
            parallelism={"microbatch": batch, "remat": kept},
            measured={"step_time_s": seconds, "mem_gib_per_device": peak},
        )
        self.line(
            f"train {name} {batch} x {length} {state} {kept} {how} {kernel}:"
            f" {seconds * 1e3:.2f} ms, {peak:.2f} GiB"
        )


def rotated(x, cos, sin):
    """Rotary positions: element i turns with i + size / 2."""
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def angles(positions, size):
    """cos and sin [positions, size / 2]."""
    rates = 5e5 ** -(torch.arange(0, size, 2, device=positions.device) / size)
    turned = positions[:, None].float() * rates
    return turned.cos(), turned.sin()


def randomWeights(facts, device, dtype):
    """(of all layers a list of their weights, table, gain, output table)."""
    width, hidden, size = facts["d_model"], facts["d_ff"], facts["head_dim"]
    heads, groups = facts["heads"], facts["kv_heads"]

    def weight(*shape):
        return torch.randn(*shape, dtype=dtype, device=device.name).mul_(0.02)

    def gain():
        return torch.ones(width, dtype=dtype, device=device.name)

    layers = [
        [
            gain(),
            weight((heads + 2 * groups) * size, width),
            weight(width, heads * size),
            gain(),
            weight(2 * hidden, width),
            weight(width, hidden),
        ]
        for _ in range(facts["layers"])
    ]
    table = weight(facts["vocab"], width)
    out = table if facts["tied"] else weight(facts["vocab"], width)
    return layers, table, gain(), out


def projections(x, weights, facts, cos, sin):
    """Queries [B, heads, T, size], keys and values of x [B, T, D], rotated."""
    gain, qkv = weights[0], weights[1]
    size, heads, groups = facts["head_dim"], facts["heads"], facts["kv_heads"]
    normed = F.rms_norm(x, (x.shape[-1],), gain, 1e-5)
    rows = F.linear(normed, qkv).unflatten(-1, (-1, size)).transpose(1, 2)
    q, k, v = rows.split((heads, groups, groups), 1)
    return rotated(q, cos, sin), rotated(k, cos, sin), v


def afterAttention(x, o, weights):
    """The rest of a layer; o [B, T, heads * size]."""
    _, _, wo, gain, gateUp, down = weights
    x = x + F.linear(o, wo)
    normed = F.rms_norm(x, (x.shape[-1],), gain, 1e-5)
    gate, up = F.linear(normed, gateUp).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, down)


class Inference:
    """A decoder with a cache of its own; tokens and positions are given."""

    def __init__(self, device, facts, batch, length, isCompiled):
        self.facts = facts
        self.layers, self.table, self.gain, self.out = randomWeights(facts, device, BF16)
        shape = (batch, facts["kv_heads"], length, facts["head_dim"])
        self.caches = [
            [torch.randn(*shape, dtype=BF16, device=device.name) for _ in range(2)]
            for _ in self.layers
        ]
        vocab = facts["vocab"]
        self.token = torch.randint(vocab, (batch, 1), device=device.name)
        self.prompt = torch.randint(vocab, (batch, length), device=device.name)
        self.at = torch.tensor([length - 1], device=device.name)
        every = torch.arange(length, device=device.name)
        self.last = angles(self.at, facts["head_dim"])
        self.every = angles(every, facts["head_dim"])

        def decodeLayer(x, weights, keys, values, at, cos, sin):
            q, k, v = projections(x, weights, facts, cos, sin)
            keys.index_copy_(2, at, k)
            values.index_copy_(2, at, v)
            batch, _, _, size = q.shape
            # Queries that share a head of the cache are its positions.
            q = q.view(batch, keys.shape[1], -1, size)
            o = F.scaled_dot_product_attention(q, keys, values)
            return afterAttention(x, o.reshape(batch, 1, -1), weights)

        def prefillLayer(x, weights, keys, values, cos, sin):
            q, k, v = projections(x, weights, facts, cos, sin)
            keys.copy_(k)
            values.copy_(v)
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            o = o.transpose(1, 2).flatten(2)
            return afterAttention(x, o, weights)

        def head(x, gain, out):
            x = F.rms_norm(x, (x.shape[-1],), gain, 1e-5)
            return F.linear(x, out).argmax(-1)

        wrap = torch.compile if isCompiled else lambda function: function
        self.decodeLayer, self.prefillLayer = wrap(decodeLayer), wrap(prefillLayer)
        self.head = wrap(head)

    def decode(self):
        x = F.embedding(self.token, self.table)
        for weights, (keys, values) in zip(self.layers, self.caches):
            x = self.decodeLayer(x, weights, keys, values, self.at, *self.last)
        return self.head(x[:, -1], self.gain, self.out)

    def prefill(self):
        x = F.embedding(self.prompt, self.table)
        for weights, (keys, values) in zip(self.layers, self.caches):
            x = self.prefillLayer(x, weights, keys, values, *self.every)
        return self.head(x[:, -1], self.gain, self.out)


class Training:
    """A training step. state: `mixed` has weights, gradients and moments in f32
    and computes in bf16, `bf16` has all in bf16."""

    def __init__(self, device, facts, batch, length, remat, state, isCompiled):
        self.remat = remat
        dtype = torch.float32 if state == "mixed" else BF16
        self.layers, self.table, self.gain, self.out = randomWeights(facts, device, dtype)
        weights = [self.table, self.gain, *sum(self.layers, [])]
        if self.out is not self.table:
            weights.append(self.out)
        for weight in weights:
            weight.requires_grad_()
        isFused = device.isGpu or None
        self.optimizer = torch.optim.AdamW(weights, lr=1e-4, fused=isFused)
        vocab = facts["vocab"]
        self.tokens = torch.randint(vocab, (batch, length), device=device.name)
        self.labels = torch.randint(vocab, (batch * length,), device=device.name)
        every = torch.arange(length, device=device.name)
        self.turns = angles(every, facts["head_dim"])

        def layer(x, cos, sin, *weights):
            weights = [weight.to(BF16) for weight in weights]
            q, k, v = projections(x, weights, facts, cos, sin)
            o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            return afterAttention(x, o.transpose(1, 2).flatten(2), weights)

        def loss(x, labels, gain, out):
            x = F.rms_norm(x, (x.shape[-1],), gain.to(BF16), 1e-5)
            logits = F.linear(x, out.to(BF16)).flatten(0, 1)
            return F.cross_entropy(logits.float(), labels)

        wrap = torch.compile if isCompiled else lambda function: function
        self.layer, self.loss = wrap(layer), wrap(loss)

    def step(self):
        x = F.embedding(self.tokens, self.table).to(BF16)
        for weights in self.layers:
            if self.remat == "full":
                x = checkpoint(self.layer, x, *self.turns, *weights, use_reentrant=False)
            else:
                x = self.layer(x, *self.turns, *weights)
        loss = self.loss(x, self.labels, self.gain, self.out)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def measure(bench):
    for name, work in (
        ("launch", bench.launch),
        ("hbm", bench.hbm),
        ("matmul", bench.matmul),
        ("sustained", bench.sustained),
        ("attention", bench.attention),
        ("attention-cache", bench.cacheAttention),
        ("link", bench.link),
        ("beside", bench.beside),
    ):
        bench.attempt(name, work)
    big, wide, little = "llama3-8b", "llama3-8b-l8", "llama3.2-1b"
    for kind, name, batch, length, isCompiled, kernel in (
        ("decode", big, 1, 1024, True, "flash"),
        ("decode", big, 8, 1024, True, "flash"),
        ("decode", big, 64, 1024, True, "flash"),
        ("decode", big, 32, 8192, True, "flash"),
        ("decode", little, 1, 1024, True, "flash"),
        ("decode", little, 64, 1024, True, "flash"),
        ("prefill", big, 1, 1024, True, "flash"),
        ("prefill", big, 1, 8192, True, "flash"),
        ("prefill", big, 8, 1024, True, "flash"),
        ("prefill", little, 8, 2048, True, "flash"),
        ("decode", big, 8, 1024, False, "flash"),
        ("prefill", big, 1, 8192, True, "cudnn"),
        ("prefill", little, 8, 2048, True, "cudnn"),
        ("decode", little, 8, 8192, True, "flash"),
        ("decode", big, 8, 8192, True, "flash"),
        ("decode", big, 1, 8192, True, "flash"),
        ("decode", little, 64, 8192, True, "flash"),
        ("decode", big, 32, 1024, True, "flash"),
        ("prefill", big, 1, 8192, False, "flash"),
    ):
        how = "compiled" if isCompiled else "eager"
        bench.attempt(
            f"{kind}-{name}-{batch}-{length}-{how}-{kernel}",
            lambda: bench.infer(kind, name, batch, length, isCompiled, kernel),
        )
    for name, batch, length, remat, state, isCompiled, kernel in (
        (little, 4, 2048, "none", "mixed", True, "flash"),
        (little, 8, 2048, "full", "mixed", True, "flash"),
        (wide, 2, 4096, "none", "bf16", True, "flash"),
        (little, 4, 2048, "none", "mixed", False, "flash"),
        (little, 2, 8192, "full", "bf16", True, "flash"),
        (wide, 2, 4096, "full", "bf16", True, "flash"),
        (little, 2, 8192, "full", "bf16", True, "cudnn"),
        (little, 8, 2048, "none", "mixed", True, "flash"),
        (little, 8, 2048, "none", "bf16", True, "flash"),
        (little, 8, 2048, "none", "bf16", True, "cudnn"),
        (wide, 2, 4096, "none", "bf16", True, "cudnn"),
        (little, 4, 2048, "full", "mixed", False, "flash"),
    ):
        how = "compiled" if isCompiled else "eager"
        bench.attempt(
            f"train-{name}-{batch}-{length}-{remat}-{state}-{how}-{kernel}",
            lambda: bench.train(name, batch, length, remat, state, isCompiled, kernel),
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("-o", "--output", default=".", help="a folder for the results")
    parser.add_argument("--chip", help="what rows call the chip")
    parser.add_argument("--only", default="", metavar="REGEX", help="what to measure")
    parser.add_argument("--small", action="store_true", help="small sizes, to test this")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="begin nothing after so long"
    )
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    torch._dynamo.config.recompile_limit = 64
    # A cached program may have another attention kernel than is asked for.
    torch.compiler.config.force_disable_caches = True
    bench = Bench(options)
    bench.line(bench.source)
    measure(bench)


if __name__ == "__main__":
    main()
