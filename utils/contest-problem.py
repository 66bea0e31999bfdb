#!/usr/bin/env python3
"""Writes a random problem in the format of the auto-sharding contest.

contest-problem.py --shape transformer --layers 24 --seed 1 > problem.json

Nodes are the tensors and operations of a network of the given shape: a
transformer (a long chain of blocks with weights and residual edges), a unet
(skip edges between the two halves), or a gnn (small nodes around hubs). Each
has strategies that split it over the axes of a mesh; edges cost a reshard where
two strategies disagree. With --complete every pair of strategies is allowed,
otherwise nodes that must agree have forbidden pairs, as XLA's aliases do. The
limit is --slack times the least peak that the nodes alone allow. The same
arguments give the same bytes.
"""

import argparse
import json
import random

FORBIDDEN = 10**18


class Generator:
    def __init__(self, args):
        self.random = random.Random(args.seed)
        self.complete = args.complete
        self.strategies = args.strategies
        self.intervals, self.costs, self.usages = [], [], []
        self.layouts, self.edges, self.tables = [], [], []
        self.time = 0

    def node(self, size, work, life, like=None):
        """A tensor of so many bytes, made by so much work, alive for `life`;
        with the layouts of the node `like`, if there is one."""
        count = self.random.randint(2, self.strategies)
        layouts = [0] + sorted(self.random.sample(range(1, 64), count - 1))
        if like is not None:
            layouts = self.layouts[like]
        # Bits of a layout are the axes that split the tensor.
        parts = [1 << min(6, layout.bit_count()) for layout in layouts]
        self.intervals.append([self.time, self.time + life])
        self.usages.append([size // p for p in parts])
        self.costs.append(
            [work // p + self.random.randint(0, work // 50 + 1) for p in parts]
        )
        self.layouts.append(layouts)
        self.time += 1
        return len(self.costs) - 1

    def edge(self, a, b, size, alias=False):
        """Reading node a's tensor in node b; aliases must agree."""
        table = []
        for x in self.layouts[a]:
            for y in self.layouts[b]:
                differing = (x ^ y).bit_count()
                if alias and not self.complete and differing > 1:
                    table.append(FORBIDDEN)
                else:
                    table.append(size * differing // 8 + (size // 64 if differing else 0))
        self.edges.append([a, b])
        self.tables.append(table)

    def size(self, low, high):
        return int(2 ** self.random.uniform(low, high))

    def transformer(self, layers):
        stream = self.node(self.size(18, 22), self.size(16, 20), 20)
        for _ in range(layers):
            entry = stream
            for _ in range(self.random.randint(2, 4)):
                weight = self.node(self.size(20, 26), 0, 400 + 40 * layers)
                inner = self.node(self.size(18, 24), self.size(20, 26), 30 + 4 * layers)
                self.edge(stream, inner, self.size(14, 20))
                self.edge(weight, inner, self.size(12, 22))
                update = self.node(self.size(20, 26), 100, 60, like=weight)
                self.edge(weight, update, self.size(14, 22), alias=True)
                stream = inner
            out = self.node(self.size(18, 22), self.size(14, 18), 40, like=entry)
            self.edge(stream, out, self.size(14, 20))
            self.edge(entry, out, self.size(14, 20), alias=True)
            stream = out

    def unet(self, layers):
        stack, stream = [], self.node(self.size(20, 24), self.size(18, 22), 12)
        for depth in range(2 * layers):
            down = depth < layers
            like = None if down else stack[-1]
            for _ in range(self.random.randint(1, 3)):
                weight = self.node(self.size(16, 24), 0, 30)
                inner = self.node(self.size(18, 24), self.size(18, 26), 100, like)
                self.edge(stream, inner, self.size(14, 22))
                self.edge(weight, inner, self.size(12, 20))
                stream = inner
            if down:
                self.intervals[stream][1] += 16 * (layers - depth)
                stack.append(stream)
            else:
                self.edge(stack.pop(), stream, self.size(14, 22), alias=True)

    def gnn(self, layers):
        hubs = [self.node(self.size(20, 24), 1000, 60 * layers) for _ in range(3)]
        for _ in range(layers):
            members = []
            for _ in range(self.random.randint(8, 24)):
                like = None
                if members and self.random.random() < 0.4:
                    like = self.random.choice(members)
                node = self.node(self.size(16, 22), self.size(10, 22), 200, like)
                self.edge(self.random.choice(hubs), node, self.size(10, 18))
                if like is not None:
                    self.edge(like, node, self.size(10, 16), alias=True)
                members.append(node)

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
    parser.add_argument("--strategies", type=int, default=9, help="at most, of a node")
    parser.add_argument("--slack", type=float, default=1.1, help="limit over the least peak")
    parser.add_argument("--complete", action="store_true", help="forbid no pairs")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    generator = Generator(args)
    getattr(generator, args.shape)(args.layers)
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
