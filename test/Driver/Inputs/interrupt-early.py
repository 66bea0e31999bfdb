"""Sends SIGINT to shardc before it has read the program, and prints its answer
and exit status.

interrupt-early.py SHARDC PROGRAM OPTION...
"""

import signal
import subprocess
import sys

from reading import wait_for_reading

shardc, program, *options = sys.argv[1:]
process = subprocess.Popen([shardc, "-"] + options, stdin=subprocess.PIPE)
wait_for_reading(process)
process.send_signal(signal.SIGINT)
process.communicate(open(program, "rb").read())
print("status:", process.returncode)
