"""Worker processes that call a loader's functions: `workers="processes"`.

C++ hands calls over and takes results (`python/src/worker_host.h`); here is what Python does about it. `_launcher`
starts processes and ends them, with the help of a server (`_server`) that has imported everything once; `_worker` is
what a process does first; `_functions` and `_errors` are how functions get there and exceptions come back.
"""

from __future__ import annotations

import sys
from typing import Any

from penstock.errors import InvalidArgumentError

__all__ = ["processes_for", "threads_share_a_lock", "workers_argument", "workers_for"]


def workers_for(workers: Any, num_workers: Any, method: str = "forkserver", init: Any = None) -> Any:
    """The processes of a loader with these arguments; None where its functions are called in threads.

    That is so, too, without workers, where the caller's thread calls them, and in an interpreter without a lock, whose
    threads share none.
    """
    if workers_argument(workers) == "threads" or num_workers == 0 or not threads_share_a_lock():
        return None
    return processes_for(_count(num_workers), method, init)


def workers_argument(given: Any) -> str:
    """InvalidArgumentError where it names no kind of workers."""
    if given not in ("threads", "processes"):
        message = f"found workers={given!r}, expected 'threads' or 'processes'"
        raise InvalidArgumentError(message, message)
    return str(given)


def threads_share_a_lock() -> bool:
    """Whether threads of this interpreter take turns, so that processes are worth their while."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def processes_for(count: int, method: str = "forkserver", init: Any = None) -> Any:
    """Up to `count` processes, which are started when something is to be called."""
    from penstock._core import _Workers
    from penstock._processes._launcher import Launcher

    launcher = Launcher(count, method, init)
    launcher.prepare()
    return _Workers(launcher, count)


def _count(num_workers: Any) -> int:
    import operator
    import os

    if num_workers != "auto":
        return operator.index(num_workers)
    return max(1, min(16, len(os.sched_getaffinity(0))))
