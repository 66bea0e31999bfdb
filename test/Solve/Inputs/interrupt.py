"""interrupt.py SIGNAL COMMAND...: sends the signal to the command once it shows
on its terminal (standard error) that it has a plan, and ends with its status."""

import os
import pty
import signal
import subprocess
import sys

screen, terminal = pty.openpty()
process = subprocess.Popen(sys.argv[2:], stderr=terminal)
os.close(terminal)
shown = b""
while True:
    try:
        part = os.read(screen, 4096)
    except OSError:  # Linux' end of file: the command has ended
        break
    if not part:
        break
    before, shown = b"best " in shown, shown + part
    if not before and b"best " in shown:
        process.send_signal(getattr(signal, sys.argv[1]))
status = process.wait()
if b"best " not in shown:
    sys.exit("error: no plan was shown")
sys.exit(status)
