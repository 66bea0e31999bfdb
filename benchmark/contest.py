#!/usr/bin/env python3
"""Solves the contest's problems and prints a table of cost, bound, gap and time.

contest.py FOLDER [--share 0.5] [--jobs 2] [--seed N] [--shuffle SEED] [FILE-PART...]

FOLDER holds the contest's .json.gz files. Each may take --share of its official
time limit. Each answer is evaluated here once more, from the file. --shuffle
renumbers nodes and strategies of a copy and multiplies costs and memory by 3:
an answer should not depend on either.
"""

import argparse
import gzip
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

# Official limit in seconds, and the best cost among the contest's 20 teams.
CONTEST = {
    "A": (60, 6548641531),
    "G": (120, 217039),
    "M": (180, 49928460991),
    "S": (240, 1534613444),
}
FACTOR = 3
FORBIDDEN = 10**18


def evaluate(problem, choices):
    """Cost and peak of the choices in exact integers."""
    nodes, edges = problem["nodes"], problem["edges"]
    cost, change = 0, {}
    for v, choice in enumerate(choices):
        cost += nodes["costs"][v][choice]
        begin, end = nodes["intervals"][v]
        if begin < end:
            usage = nodes["usages"][v][choice]
            change[begin] = change.get(begin, 0) + usage
            change[end] = change.get(end, 0) - usage
    for (u, v), table in zip(edges["nodes"], edges["costs"]):
        cost += table[choices[u] * len(nodes["costs"][v]) + choices[v]]
    peak = usage = 0
    for point in sorted(change):
        usage += change[point]
        peak = max(peak, usage)
    return cost, peak


def shuffled(problem, seed):
    """The problem with other numbers for nodes, strategies, and in other units."""
    rng = random.Random(seed)
    nodes, edges = problem["nodes"], problem["edges"]
    count = len(nodes["costs"])
    place = list(range(count))
    rng.shuffle(place)
    orders = [rng.sample(range(len(c)), len(c)) for c in nodes["costs"]]
    scaled = lambda c: c if c >= FORBIDDEN else c * FACTOR
    result = {key: [None] * count for key in ("intervals", "costs", "usages")}
    for v in range(count):
        result["intervals"][place[v]] = nodes["intervals"][v]
        result["costs"][place[v]] = [scaled(nodes["costs"][v][i]) for i in orders[v]]
        result["usages"][place[v]] = [nodes["usages"][v][i] * FACTOR for i in orders[v]]
    pairs = list(zip(edges["nodes"], edges["costs"]))
    rng.shuffle(pairs)
    tables = []
    for (u, v), table in pairs:
        columns = len(nodes["costs"][v])
        tables.append([scaled(table[i * columns + j]) for i in orders[u] for j in orders[v]])
    ends = [[place[u], place[v]] for (u, v), _ in pairs]
    return {
        "nodes": result,
        "edges": {"nodes": ends, "costs": tables},
        "usage_limit": problem["usage_limit"] * FACTOR,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("parts", nargs="*", help="only files whose name has one of these")
    parser.add_argument("--solver", default="build/bin/shardc-solve")
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shuffle", type=int, metavar="SEED")
    parser.add_argument("--seed", type=int, default=1, help="of the solver")
    args = parser.parse_intermixed_args()
    print("| problem | limit s | time s | cost | best team | bound | gap | memory GB |")
    print("|---|---|---|---|---|---|---|---|")
    wrong = 0
    for name in sorted(os.listdir(args.folder)):
        if not name.endswith(".json.gz"):
            continue
        if args.parts and not any(part in name for part in args.parts):
            continue
        path = os.path.join(args.folder, name)
        letter = name.split(".")[0].rsplit("-", 1)[-1]
        official, team = CONTEST.get(letter, (120, None))
        with gzip.open(path) as file:
            problem = json.load(file)["problem"]
        factor = 1
        with tempfile.TemporaryDirectory() as folder:
            if args.shuffle is not None:
                factor = FACTOR
                problem = shuffled(problem, args.shuffle)
                path = os.path.join(folder, "shuffled.json")
                with open(path, "w") as file:
                    json.dump({"problem": problem}, file)
            limit = official * args.share
            command = [args.solver, path, "--json", "--time-limit", str(limit)]
            command += ["--seed", str(args.seed)]
            start = time.monotonic()
            run = subprocess.run(
                command + ["--jobs", str(args.jobs)], capture_output=True, text=True
            )
            seconds = time.monotonic() - start
        if run.returncode:
            print("| {} | {:g} | {:.1f} | status {} |".format(letter, limit, seconds, run.returncode))
            wrong += 1
            continue
        answer = json.loads(run.stdout)
        exact = (answer["cost"], answer["peak"])
        if evaluate(problem, answer["choices"]) != exact or exact[1] > problem["usage_limit"]:
            print("error: {}: the answer is not what the file says".format(name), file=sys.stderr)
            wrong += 1
        gap = "proven" if answer["status"] == "optimal" else "{:.4f} %".format(100 * answer["gap"])
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
        print(
            "| {} | {:g} | {:.1f} | {:,} | {} | {:,} | {} | {:.2f} |".format(
                letter,
                limit,
                seconds,
                answer["cost"] // factor,
                "{:,}".format(team) if team else "",
                answer["bound"] // factor,
                gap,
                memory,
            ),
            flush=True,
        )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
