#!/usr/bin/env python3
"""Writes a random problem in the format of the auto-sharding contest.

contest-problem.py --shape transformer --layers 24 --seed 1 > problem.json

Nodes are the tensors of a training step of the given shape: a transformer
(blocks of attention and feed-forward layers), a unet (skip edges between the
two halves), or a gnn (messages between nodes and edges of a graph; its index is
a hub that each layer reads). Strategies place each axis of a mesh of devices on
a dimension of the tensor or on none; a dot may also split what it sums over.
Edges cost the bytes that a reshard moves. Tensors that share a buffer, as
updated weights and sums of two tensors do, must agree; with --complete every
pair is allowed. A tensor
is alive until it is read last. The limit is --slack times the least peak that
the nodes alone allow. The same arguments give the same bytes.
"""

import argparse
import itertools
import json
import math
import random

FORBIDDEN = 10**18


class Generator:
    def __init__(self, args):
        self.random = random.Random(args.seed)
        self.complete = args.complete
        self.mesh = args.mesh
        self.shapes, self.layouts, self.intervals = [], [], []
        self.costs, self.usages = [], []
        self.edges, self.tables = [], []
        self.operations = []

    # Tensors

    def node(self, shape, summed=0):
        """A tensor; `summed` is the length of a dimension that is summed over,
        whose split is the last dimension of the layouts."""
        dims = list(shape) + ([summed] if summed else [])
        layouts = []
        for layout in itertools.product([None] + list(range(len(dims))), repeat=len(self.mesh)):
            splits = [math.prod(n for n, d in zip(self.mesh, layout) if d == k) for k in range(len(dims))]
            if all(split <= dim for split, dim in zip(splits, dims)):
                layouts.append(layout)
        size = 4 * math.prod(shape)
        usages, costs = [], []
        for layout in layouts:
            usage, cost = size, self.random.randint(1, 64)
            for n, d in zip(self.mesh, layout):
                if d is not None and d < len(shape):
                    usage //= n
                elif d is not None:
                    cost += 2 * size * (n - 1) // n  # all-reduce of the sums
            usages.append(usage)
            costs.append(cost)
        now = len(self.shapes)
        self.shapes.append(shape)
        self.layouts.append(layouts)
        self.intervals.append([now, now + 1])
        self.usages.append(usages)
        self.costs.append(costs)
        return now

    def edge(self, a, b, dims, alias=False):
        """Node b reads node a's tensor; dims[k] is b's dimension that runs along
        a's dimension k, or None."""
        size = 4 * math.prod(self.shapes[a])
        table = []
        for have in self.layouts[a]:
            for at in self.layouts[b]:
                want = [dims.index(d) if d is not None and d in dims else None for d in at]
                cost, part = 0, size
                for n, x in zip(self.mesh, have):
                    part //= n if x is not None else 1
                for n, x, y in zip(self.mesh, have, want):
                    if x == y or x is None:
                        continue
                    # All-gather, or all-to-all.
                    cost += part * (n - 1) if y is None else part * (n - 1) // n
                if alias and not self.complete and list(have) != want:
                    cost = FORBIDDEN
                table.append(cost)
        self.edges.append([a, b])
        self.tables.append(table)
        self.intervals[a][1] = max(self.intervals[a][1], b + 1)

    # Operations

    def op(self, shape, *inputs, summed=0, follows=False):
        """A tensor made from inputs (node, dims); perhaps where the first is."""
        out = self.node(shape, summed)
        for a, dims in inputs:
            self.edge(a, out, dims, alias=follows and a == inputs[0][0])
        self.operations.append((out, inputs, summed))
        return out

    def unary(self, x):
        return self.op(self.shapes[x], (x, self.same(x)), follows=True)

    def add(self, x, y):
        return self.op(self.shapes[x], (x, self.same(x)), (y, self.same(y)), follows=True)

    def scale(self, x, vector):
        """Times a vector along the last dimension."""
        last = len(self.shapes[x]) - 1
        return self.op(self.shapes[x], (x, self.same(x)), (vector, [last]), follows=True)

    def dot(self, x, weight):
        """Sums over the last dimension of x and the first of the weight."""
        *outer, inner = self.shapes[x]
        shape = tuple(outer) + (self.shapes[weight][1],)
        rank = len(outer)
        along = list(range(rank)) + [rank + 1]
        return self.op(shape, (x, along), (weight, [rank + 1, rank]), summed=inner)

    def same(self, x):
        return list(range(len(self.shapes[x])))

    def backward(self, weights):
        """Gradients of all operations in reverse, and updates of the weights."""
        gradients = {}
        for out, inputs, summed in reversed(self.operations):
            gradient = gradients.get(out)
            if gradient is None:
                gradient = self.node(self.shapes[out])
                self.edge(out, gradient, self.same(out))
            for a, dims in inputs:
                shape = self.shapes[a]
                into = self.node(shape, self.shapes[out][-1] if summed else 0)
                # Where each dimension of the gradient is in that of the input.
                back = [dims.index(k) if k in dims else None for k in range(len(self.shapes[out]))]
                self.edge(gradient, into, back)
                for other, _ in inputs if summed else ():
                    if other != a:
                        self.edge(other, into, [None] * (len(self.shapes[other]) - 1) + [len(shape) - 1])
                if a in gradients:
                    total = self.node(shape)
                    self.edge(into, total, self.same(a))
                    self.edge(gradients[a], total, self.same(a))
                    into = total
                gradients[a] = into
        for weight in weights:
            update = self.node(self.shapes[weight])
            self.edge(gradients[weight], update, self.same(weight))
            self.edge(weight, update, self.same(weight), alias=True)

    # Shapes

    def weight(self, *shape):
        self.weights.append(self.node(shape))
        return self.weights[-1]

    def dense(self, x, width):
        x = self.dot(x, self.weight(self.shapes[x][-1], width))
        return self.unary(self.scale(x, self.weight(width)))

    def power(self, low, high):
        return 2 ** self.random.randint(low, high)

    def transformer(self, layers):
        batch, length, width = self.power(3, 5), self.power(7, 9), self.power(8, 10)
        mask = self.node((batch, length))
        stream = self.node((batch, length, width))
        for _ in range(layers):
            entry = self.scale(stream, self.weight(width))
            parts = [self.dot(entry, self.weight(width, width)) for _ in range(3)]
            scores = self.op((batch, length, length), (parts[0], [0, 1, 3]), (parts[1], [0, 2, 3]), summed=width)
            scores = self.op((batch, length, length), (scores, [0, 1, 2]), (mask, [0, 2]))
            mixed = self.op((batch, length, width), (self.unary(scores), [0, 1, 3]), (parts[2], [0, 3, 2]), summed=length)
            stream = self.add(stream, self.dense(mixed, width))
            stream = self.add(stream, self.dense(self.dense(stream, 4 * width), width))

    def unet(self, layers):
        batch, area, width = self.power(3, 5), self.power(10, 12), self.power(5, 6)
        time = self.node((batch, width))
        stream, stack = self.node((batch, area, width)), []
        for depth in range(2 * layers):
            down = depth < layers
            width = self.shapes[stream][-1]
            for _ in range(self.random.randint(1, 3)):
                inner = self.dense(stream, width)
                shift = self.dot(time, self.weight(self.shapes[time][1], width))
                inner = self.op(self.shapes[inner], (inner, [0, 1, 2]), (shift, [0, 2]))
                stream = self.add(stream, self.dense(inner, width))
            if down:
                stack.append(stream)
                stream = self.dense(stream, width * self.random.choice([1, 1, 2]) if width < 1024 else width)
            else:
                skipped = stack.pop()
                stream = self.add(self.dense(stream, self.shapes[skipped][-1]), skipped)

    def gnn(self, layers):
        nodes, links, width = self.power(10, 12), self.power(12, 14), self.power(5, 8)
        hubs = [self.node((links,)), self.node((links,))]
        state, messages = self.node((nodes, width)), self.node((links, width))
        for _ in range(layers):
            read = [self.op((links, width), (state, [None, 1]), (hub, [0])) for hub in hubs]
            inner = self.add(self.add(messages, read[0]), read[1])
            for _ in range(self.random.randint(1, 3)):
                inner = self.dense(inner, width)
            messages = self.add(messages, inner)
            sums = [self.op((nodes, width), (inner, [2, 1]), (hub, [2]), summed=links) for hub in hubs]
            inner = self.add(self.add(state, sums[0]), sums[1])
            for _ in range(self.random.randint(1, 3)):
                inner = self.dense(inner, width)
            state = self.add(state, inner)

    def run(self, shape, layers):
        self.weights = []
        getattr(self, shape)(layers)
        self.backward(self.weights)

    def least_peak(self):
        change = {}
        for (begin, end), usages in zip(self.intervals, self.usages):
            change[begin] = change.get(begin, 0) + min(usages)
            change[end] = change.get(end, 0) - min(usages)
        peak = usage = 0
        for point in sorted(change):
            usage += change[point]
            peak = max(peak, usage)
        return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=["transformer", "unet", "gnn"], default="transformer")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--mesh", type=int, nargs="+", default=[4, 8], help="lengths of its axes")
    parser.add_argument("--slack", type=float, default=1.1, help="limit over the least peak")
    parser.add_argument("--complete", action="store_true", help="forbid no pairs")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    generator = Generator(args)
    generator.run(args.shape, args.layers)
    nodes = {
        "intervals": generator.intervals,
        "costs": generator.costs,
        "usages": generator.usages,
    }
    edges = {"nodes": generator.edges, "costs": generator.tables}
    limit = int(generator.least_peak() * args.slack)
    name = "{}-{}-{}".format(args.shape, args.layers, args.seed)
    problem = {"name": name, "nodes": nodes, "edges": edges, "usage_limit": limit}
    print(json.dumps({"problem": problem}, separators=(",", ":")))


if __name__ == "__main__":
    main()
