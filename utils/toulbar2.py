#!/usr/bin/env python3
"""Compares shardc-solve with toulbar2, an exact solver of cost function networks.

    utils/toulbar2.py --count 200 --seed 1       random small problems
    utils/toulbar2.py problem.json ...           such as shardc --emit-problem writes

Both must find the same least cost, or both that nothing fits; a bound of
shardc-solve must never exceed it. Memory becomes `knapsack` constraints over
variables that say that a node does not use so much. Ends with status 1 at the
first difference, and writes that problem to standard output. Debian has
toulbar2; shardc does not need it.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FORBIDDEN = 10**18


def random_problem(rng):
    """A few nodes with ties, forbidden choices and memory that may not suffice."""
    points = rng.randint(1, 5)
    intervals, costs, usages = [], [], []
    cost = lambda: FORBIDDEN if rng.random() < 0.1 else rng.randint(0, rng.choice([2, 30]))
    for _ in range(rng.randint(1, 9)):
        begin, end = sorted(rng.randint(0, points) for _ in range(2))
        strategies = rng.randint(1, 5)
        intervals.append([begin, end])
        costs.append([cost() for _ in range(strategies)])
        usages.append([rng.randint(0, 8) for _ in range(strategies)])
    edges, tables = [], []
    for a in range(len(costs)):
        for b in range(a + 1, len(costs)):
            if rng.random() < 0.4:
                edges.append(rng.choice([[a, b], [b, a]]))
                tables.append([cost() for _ in costs[a] for _ in costs[b]])
    return {
        "problem": {
            "name": "random",
            "nodes": {"intervals": intervals, "costs": costs, "usages": usages},
            "edges": {"nodes": edges, "costs": tables},
            "usage_limit": rng.randint(0, 5 * len(costs)),
        }
    }


class Wcsp:
    """toulbar2's format, in which costs of `top` are forbidden."""

    def __init__(self, problem):
        nodes, edges = problem["nodes"], problem["edges"]
        self.domains = [len(costs) for costs in nodes["costs"]]
        self.functions = []
        finite = [[c for c in costs if c < FORBIDDEN]
                  for costs in nodes["costs"] + edges["costs"]]
        self.top = 1 + sum(max(costs, default=0) for costs in finite)
        for node, costs in enumerate(nodes["costs"]):
            self.add([node], [([s], c) for s, c in enumerate(costs) if c])
        for (a, b), costs in zip(edges["nodes"], edges["costs"]):
            columns = len(nodes["costs"][b])
            self.add([a, b], [([i // columns, i % columns], c)
                              for i, c in enumerate(costs) if c])
        self.indicators = {}
        self.add_memory(nodes, problem["usage_limit"])

    def add(self, scope, tuples):
        lines = [f"{len(scope)} {' '.join(map(str, scope))} 0 {len(tuples)}"]
        for labels, cost in tuples:
            lines.append(f"{' '.join(map(str, labels))} {min(cost, self.top)}")
        self.functions.append("\n".join(lines))

    def indicator(self, node, strategies):
        """A variable that is 1 if none of the node's `strategies` is chosen."""
        key = (node, strategies)
        if key not in self.indicators:
            self.indicators[key] = len(self.domains)
            self.domains.append(2)
            wrong = [([s, 1 if s in strategies else 0], self.top)
                     for s in range(self.domains[node])]
            self.add([node, self.indicators[key]], wrong)
        return self.indicators[key]

    def add_memory(self, nodes, limit):
        seen = set()
        for begin, _ in nodes["intervals"]:
            live = tuple(v for v, (lo, hi) in enumerate(nodes["intervals"])
                         if lo <= begin < hi and any(nodes["usages"][v]))
            if live and live not in seen:
                seen.add(live)
                self.add_row(live, nodes["usages"], limit)

    def add_row(self, live, usages, limit):
        """At most `limit` in use: enough of what could be used is not."""
        terms, room = [], limit
        for v in live:
            least = min(usages[v])
            room -= least
            for bytes in sorted(set(usages[v]) - {least}):
                strategies = tuple(s for s, u in enumerate(usages[v]) if u == bytes)
                terms.append((self.indicator(v, strategies), bytes - least))
        if room < 0:
            self.functions.append(f"0 {self.top} 0")
            return
        needed = sum(weight for _, weight in terms) - room
        if needed > 0:
            scope = " ".join(str(variable) for variable, _ in terms)
            weights = " ".join(str(weight) for _, weight in terms)
            self.functions.append(
                f"{len(terms)} {scope} -1 knapsack {needed} {weights}")

    def text(self):
        head = [f"p {len(self.domains)} {max(self.domains)} {len(self.functions)} {self.top}",
                " ".join(map(str, self.domains))]
        return "\n".join(head + self.functions) + "\n"


def toulbar2(problem):
    """The least cost, or None if nothing fits."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "problem.wcsp")
        with open(path, "w") as file:
            file.write(Wcsp(problem).text())
        result = subprocess.run(["toulbar2", path], capture_output=True, text=True)
    found = re.search(r"^Optimum: (\d+) ", result.stdout, re.MULTILINE)
    if found:
        return int(found[1])
    if "No solution" in result.stdout:
        return None
    sys.exit(f"toulbar2 says neither optimum nor none:\n{result.stdout}{result.stderr}")


def shardc_solve(command, text):
    result = subprocess.run([command, "-", "--json"], input=text,
                            capture_output=True, text=True)
    if result.returncode not in (0, 3):
        sys.exit(f"{command}: {result.stderr}")
    return json.loads(result.stdout)


def compare(command, text):
    """What differs, or None; and the least cost."""
    best = toulbar2(json.loads(text)["problem"])
    answer = shardc_solve(command, text)
    if answer["status"] == "infeasible" and best is not None:
        return f"toulbar2 found a plan of cost {best}, shardc-solve none", best
    if best is None:
        wrong = answer["status"] != "infeasible"
        return f"toulbar2 found no plan, shardc-solve {answer}" if wrong else None, best
    if answer["status"] == "optimal" and answer["cost"] != best:
        return f"expected the least cost {best}, found {answer['cost']}", best
    if answer["bound"] is not None and answer["bound"] > best:
        return f"the bound {answer['bound']} exceeds the least cost {best}", best
    if answer["status"] != "optimal":
        return f"not proven: cost {answer['cost']}, least {best}", best
    return None, best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shardc-solve",
                        default=os.path.join(ROOT, "build/bin/shardc-solve"))
    options = parser.parse_args()
    if options.files:
        texts = [(name, open(name).read()) for name in options.files]
    else:
        rng = random.Random(options.seed)
        texts = [(f"random {i}", json.dumps(random_problem(rng)))
                 for i in range(options.count)]
    infeasible = 0
    for name, text in texts:
        difference, best = compare(options.shardc_solve, text)
        if difference:
            print(text)
            print(f"{name}: {difference}", file=sys.stderr)
            return 1
        infeasible += best is None
    print(f"{len(texts)} problems agree, {infeasible} of them infeasible")
    return 0


if __name__ == "__main__":
    sys.exit(main())
