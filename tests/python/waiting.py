"""What tests of threads wait for."""

from __future__ import annotations

import gc
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


def are_collected(references):
    """Whether the garbage collector finds all that weak references lead to. What a worker holds while it calls a
    function is garbage when the call has ended."""
    return comes_true(lambda: gc.collect() >= 0 and all(reference() is None for reference in references))


def patient(iterator, until=lambda: False):
    """Its items, however long they take beyond its own timeout; None as soon as `until` is so."""
    while True:
        try:
            yield next(iterator)
        except StopIteration:
            return
        except TimeoutError:
            if until():
                yield None
