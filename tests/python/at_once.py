"""Works of several threads that begin at one moment, for tests of what threads may share.

With an interpreter without its lock (CPython 3.14t) they truly run at once; with one that has it they prove that values
are right however threads take turns. PENSTOCK_STRESS=20 repeats each twenty times as often (script/tsan_python).
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import contextmanager

import penstock

ROUNDS = int(os.environ.get("PENSTOCK_STRESS", "1"))
THREADS = 4
N = 24


def at_once(*works, rounds=ROUNDS, collect=True):
    """Calls each work in a thread of its own, all from one moment on, `rounds` times; gives what they returned.

    The garbage collector runs meanwhile. What a work raises is raised here.
    """
    begin = threading.Barrier(len(works))
    given, raised = [[] for _ in works], []
    over = threading.Event()

    def run(place):
        try:
            for _ in range(rounds):
                begin.wait(timeout=60)
                given[place].append(works[place]())
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            raised.append(error)
            begin.abort()

    def collects():
        while not over.wait(0.01):
            gc.collect()

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(works))]
    collector = threading.Thread(target=collects, daemon=True)
    if collect:
        collector.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    over.set()
    if collect:
        collector.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if raised:
        raise raised[0]
    return [results for results in given if results]


@contextmanager
def may_hear(*texts):
    """For code that either works, or hears of what another thread did, in one of these words."""
    try:
        yield
    except penstock.Error as error:
        if not any(text in str(error) for text in texts):
            raise


def rows():
    return penstock.arange(N * 8).reshape(N, 8)
