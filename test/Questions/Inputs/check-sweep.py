"""Checks that the points of a sweep are the reports of single runs.

    check-sweep.py SHARDC FILE 'NAME in VALUES'... [options of shardc]
"""

import json
import re
import subprocess
import sys


def run(arguments):
    return subprocess.run(arguments, capture_output=True, text=True)


def numbers(values):
    """The values of `64, 128`, `64..4096 * 2` or `64..4096 + 64`."""
    found = re.fullmatch(r"(\d+)\.\.(\d+) ([*+]) (\d+)", values)
    if not found:
        return [int(value) for value in values.split(",")]
    value, last, step = int(found[1]), int(found[2]), int(found[4])
    result = []
    while value <= last:
        result.append(value)
        value = value * step if found[3] == "*" else value + step
    return result


def main():
    shardc, file = sys.argv[1:3]
    sweeps = [each.split(" in ") for each in sys.argv[3:] if " in " in each]
    rest = [each for each in sys.argv[3:] if " in " not in each]

    expected = [{}]
    for name, values in sweeps:
        listed = (re.findall(r"\w+\[.*?\]", values) if name == "hardware"
                  else numbers(values))
        expected = [{**point, name: value} for point in expected
                    for value in listed]

    flags = [flag for name, values in sweeps
             for flag in ("--sweep", f"{name} in {values}")]
    result = run([shardc, file, *flags, "--emit-json", *rest])
    assert result.returncode == 0 and not result.stderr, result.stderr
    points = json.loads(result.stdout)["points"]
    assert [point["set"] for point in points] == expected

    with open(file, encoding="utf-8") as source:
        axes = dict(re.findall(r"([XY])=(\d+)", source.read()))
    for point in points:
        arguments = [shardc, file, "--emit-json", *rest]
        sizes = dict(axes)
        for name, value in point["set"].items():
            if name in sizes:
                sizes[name] = value
            elif name == "hardware":
                arguments += ["--hardware", value]
            else:
                arguments += ["--dim", f"{name}={value}"]
        if sizes:
            mesh = ", ".join(f"{name}={size}" for name, size in sizes.items())
            arguments += ["--mesh", f"[{mesh}]"]
        single = run(arguments)
        if single.returncode == 1:
            assert point["report"] is None, point
            assert f"error: {point['error']}\n" in single.stderr, point["error"]
            continue
        report = json.loads(single.stdout)
        # Other bindings are looked at for a single plan only.
        report["mesh"]["faster"] = None
        assert point["report"] == report, point["set"]
        assert ("error" in point) == (single.returncode == 3)
    print(f"{len(points)} points hold")


main()
