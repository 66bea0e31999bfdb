"""When a process waits for its standard input."""

import time


def wait_for_reading(process):
    """Until it has slept for a while: it waits for its standard input."""
    asleep = 0
    while asleep < 5:
        with open(f"/proc/{process.pid}/stat") as stat:
            state = stat.read().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        time.sleep(0.02)
