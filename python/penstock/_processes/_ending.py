"""How a process ends, seen by another one that need not be its parent."""

from __future__ import annotations

import os
import select
import time


def is_over(pid: int, deadline: float) -> bool:
    """Waits until the process has ended; false where that takes longer than until `deadline` (time.monotonic)."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except (OSError, AttributeError):  # before Linux 5.3
        return _is_over_by_proc(pid, deadline)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
    finally:
        os.close(descriptor)


def _is_over_by_proc(pid: int, deadline: float) -> bool:
    while True:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] == b"Z":
                    return True
        except OSError:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
