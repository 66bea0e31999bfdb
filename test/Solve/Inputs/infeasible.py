"""infeasible.py memory|colours: prints a large problem that has no plan.

memory: of each of 2,000 pairs of nodes one must take the label that uses 9
instead of 1, so that each time needs 10 for each pair alive; the limit is 9.9.
colours: 3-colouring of a random graph of 3,000 nodes with 4 edges a node, which
is far above the 2.35 where such graphs stop to be colourable.
"""

import json
import random
import sys

rng = random.Random(1)
nodes = {"intervals": [], "costs": [], "usages": []}
edges = {"nodes": [], "costs": []}
FORBIDDEN = 10**18


def node(interval, usages):
    nodes["intervals"].append(interval)
    nodes["usages"].append(usages)
    nodes["costs"].append([rng.randint(0, 1000) for _ in usages])


def edge(u, v, table):
    edges["nodes"].append([u, v])
    edges["costs"].append(table)


if sys.argv[1] == "memory":
    pairs, alive = 2000, 50
    for pair in range(pairs):
        for _ in range(2):
            node([pair, pair + alive], [1, 9, 9])
        edge(2 * pair, 2 * pair + 1, [FORBIDDEN] + [rng.randint(0, 9) for _ in range(8)])
    for u in range(2 * pairs):
        for _ in range(2):
            v = (u + rng.randint(2, 200)) % (2 * pairs)
            edge(u, v, [rng.randint(0, 99) for _ in range(9)])
    limit = 99 * alive // 10
else:
    count, limit = 3000, 1
    for _ in range(count):
        node([0, 0], [0, 0, 0])
    for _ in range(4 * count):
        u, v = rng.sample(range(count), 2)
        edge(u, v, [FORBIDDEN if x == y else rng.randint(0, 99) for x in range(3) for y in range(3)])
print(json.dumps({"problem": {"name": "none", "nodes": nodes, "edges": edges, "usage_limit": limit}}))
