"""Sends SIGINT to shardc: before it has read the program, twice, and once a
line on the terminal says that there is a plan.

interrupt.py SHARDC PROGRAM LARGE-PROGRAM OPTION...
"""

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time

from reading import wait_for_reading

shardc, program, large, *options = sys.argv[1:]
program = open(program, "rb").read()


def start(stdout, stderr, options=[]):
    command = [shardc, "-", "--emit-json"] + options
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr)


process = start(subprocess.PIPE, subprocess.PIPE)
wait_for_reading(process)
process.send_signal(signal.SIGINT)
out, err = process.communicate(program)
print("early:", process.returncode, out, err.decode())

process = start(subprocess.PIPE, subprocess.PIPE)
wait_for_reading(process)
process.send_signal(signal.SIGINT)
time.sleep(0.1)
process.send_signal(signal.SIGINT)
print("twice:", signal.Signals(-process.wait()).name)

# The line on the terminal, until there is a plan or the search is over.
terminal, theirs = pty.openpty()
report = tempfile.TemporaryFile()
process = start(report, theirs, options)
os.close(theirs)
process.stdin.write(open(large, "rb").read())
process.stdin.close()
seen = b""
while b"best" not in seen:
    try:
        seen += os.read(terminal, 4096)
    except OSError:
        break
process.send_signal(signal.SIGINT)
status = process.wait()
report.seek(0)
plan = json.load(report)["plan"]
print("late:", status, plan["status"], plan["bound_s"] <= plan["value_s"])
lines = [line for line in seen.decode().split("\r\x1b[K") if "best" in line]
print("line:", *lines)
