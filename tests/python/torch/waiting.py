"""What tests of threads wait for."""

from __future__ import annotations

import time


def threads_here():
    """How many this process has, Python's and others."""
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("Threads:")).split()[1])


def comes_true(condition):
    """Whether it does within 20 seconds, for what other threads do."""
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()
