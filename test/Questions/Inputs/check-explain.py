#!/usr/bin/env python3
"""Checks what --explain says of a tensor against programs that say it.

Each sharding is written into the program's text as an `@`, each annotation is
taken out of it, and the reports of these programs must have the same times and
memory. Usage: check-explain.py SHARDC FILE.shd NAME [options of shardc]
"""

import json
import os
import re
import subprocess
import sys
import tempfile

shardc, path, name, *options = sys.argv[1:]
text = open(path).read()
tried = 0


def ask(file, *flags):
    run = subprocess.run(
        [shardc, file, "--emit-json", *options, *flags], capture_output=True, text=True
    )
    if run.returncode not in (0, 1, 3):
        sys.exit(f"exit status {run.returncode}: {run.stderr}")
    return run, json.loads(run.stdout) if run.stdout else None


def report(program):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "changed.shd")
        with open(file, "w") as out:
            out.write(program)
        return ask(file)


def offset(loc):
    line, column = map(int, loc.split(":")[-2:])
    return sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1


def with_list(loc, change):
    """The text with the brackets behind the name at `loc` changed."""
    begin = offset(loc)
    match = re.compile(r"[A-Za-z_]\w*(\s*:\s*\w+)?\s*").match(text, begin)
    start = match.end()
    end = start
    if text[start : start + 1] == "[":
        end = text.index("]", start) + 1
        partial = re.compile(r"\{[^}]*\}").match(text, end)
        end = partial.end() if partial else end
    return text[:start] + change(text[start:end]) + text[end:]


def closed(sharding):
    """`[B@(), D@()]` for `[B, D]`, which says nothing in a program."""
    indices, partial = re.fullmatch(r"\[(.*)\](\{.*\})?", sharding).groups()
    if "@" not in indices and indices:
        indices = ", ".join(each + "@()" for each in indices.split(", "))
    return f"[{indices}]{partial or ''}"


def without_pin(brackets):
    return re.sub(r"@(\([^)]*\)|[\w?]+)|\{[^}]*\}", "", brackets)


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: --explain has {found}, the program {wanted}")


def check_plan(what, plan, program):
    global tried
    tried += 1
    run, found = report(program)
    if plan is None:
        expect(what, None, found)
        return
    if found is None:
        sys.exit(f"{what}: {run.stderr}")
    expect(what + ", fits", plan["fits"], run.returncode == 0)
    for key in ("lower_s", "scheduled_s", "upper_s"):
        expect(f"{what}, {key}", plan[key], found["time"][key])
    expect(what + ", peak", plan["memory"]["peak"], found["memory"]["peak"])
    if plan["fits"]:
        expect(what + ", status", plan["status"], found["plan"]["status"])
        expect(what + ", value", plan["value_s"], found["plan"]["value_s"])


def close(what, found, wanted):
    if abs(found - wanted) > 1e-12 * max(1.0, abs(wanted)):
        sys.exit(f"{what}: found {found}, expected {wanted}")


run, answer = ask(path, "--explain", name)
if answer is None:
    sys.exit(run.stderr)
best = answer["plan"]
parts_add_up = answer["objective"] != "lower"
for tensor in answer["tensors"]:
    for each in tensor["alternatives"]:
        what = f"{tensor['name']}{each['sharding']}"
        check_plan(
            what,
            each["plan"],
            with_list(tensor["loc"], lambda _: closed(each["sharding"])),
        )
        if not each["fits"] or not best["fits"]:
            continue
        close(
            what + ", difference",
            each["difference_s"],
            each["plan"]["value_s"] - best["value_s"],
        )
        parts = each["difference"]
        if parts_add_up:
            close(
                what + ", parts",
                parts["compute_s"] + parts["hbm_s"] + parts["collectives_s"],
                each["difference_s"],
            )
        close(
            what + ", collectives",
            sum(part["time_s"] for part in parts["collectives"]),
            parts["collectives_s"],
        )
        close(
            what + ", memory",
            each["memory_s"],
            (each["plan"]["value_s"] - each["unlimited_s"])
            - (best["value_s"] - answer["unlimited"]["value_s"]),
        )
for pin in answer["pins"]:
    check_plan(
        "without " + pin["text"], pin["without"], with_list(pin["loc"], without_pin)
    )
print(f"{tried} plans agree")
