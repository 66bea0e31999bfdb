"""Sends SIGINT to shardc before it has read the program, and prints its answer
and exit status.

interrupt-early.py SHARDC PROGRAM OPTION...
"""

import signal
import subprocess
import sys
import time

shardc, program, *options = sys.argv[1:]
process = subprocess.Popen([shardc, "-"] + options, stdin=subprocess.PIPE)
# Until it has slept for a while: it waits for its standard input.
asleep = 0
while asleep < 5:
    with open(f"/proc/{process.pid}/stat") as stat:
        state = stat.read().rpartition(")")[2].split()[0]
    asleep = asleep + 1 if state == "S" else 0
    time.sleep(0.02)
process.send_signal(signal.SIGINT)
process.communicate(open(program, "rb").read())
print("status:", process.returncode)
