"""Worker processes that call a loader's functions: `workers="processes"`.

C++ hands calls over and takes results (`python/src/worker/runner.h`); here is what Python does about it. `_launcher`
starts processes and ends them, with the help of a server (`_server`) that has imported everything once; `_worker` is
what a process does first; `_functions` and `_errors` are how functions get there and exceptions come back.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from typing import Any

from penstock._processes import _worker
from penstock._text import plural
from penstock.errors import InvalidArgumentError


def workers_for(workers: Any, num_workers: Any, context: Any) -> Any:
    """The processes of a loader with these arguments; None where its functions are called in threads (`why_threads`).

    For "auto" a trial says whether they are asked at all (`src/data/sample/runner_trial.h`).
    """
    method = method_of(context)
    if lost := without_workers(workers, num_workers):
        warnings.warn(lost, stacklevel=3)
    if why_threads(workers, num_workers):
        if context is not None and workers == "threads":
            raise InvalidArgumentError(
                "found multiprocessing_context beside workers='threads', which starts no processes; set workers too"
            )
        return None
    return processes_for(_count(num_workers), method, trial="batches" if workers == "auto" else None)


def method_of(context: Any) -> str:
    """How processes start, by `multiprocessing_context`; InvalidArgumentError for no way to start them."""
    name = context.get_start_method() if hasattr(context, "get_start_method") else context
    if name in (None, "forkserver"):
        return "forkserver"
    if name in ("spawn", "fork"):
        return str(name)
    raise InvalidArgumentError(f"found multiprocessing_context={name!r}, expected 'forkserver', 'spawn' or 'fork'")


def why_threads(workers: Any, num_workers: Any) -> str:
    """Why functions are called in threads, whatever they are; empty where processes may call them."""
    if workers_argument(workers) == "threads":
        return "workers='threads'"
    if num_workers == 0:
        return "there are no workers, so that the caller's thread does everything"
    if not threads_share_a_lock():
        return "threads of this interpreter share no lock"
    if workers == "auto" and _worker.here.number is not None:
        return "this is a worker process itself"
    return ""


def without_workers(workers: Any, num_workers: Any) -> str:
    """What a warning says where processes are asked for and there will be none; empty elsewhere."""
    if workers != "processes" or num_workers != 0:
        return ""
    return (
        "workers='processes' starts none with num_workers=0, and the caller's thread calls the functions; give "
        "num_workers, or leave workers out"
    )


def explained(workers: Any, processes: Any, threads: int) -> str:
    """A sentence for people about who calls the functions of a loader that has so many threads."""
    reads = f"{plural(threads, 'thread')} read{'s' if threads == 1 else ''} the samples"
    if processes is None:
        calls = "these threads call" if threads else "the caller's thread calls"
        reads = reads if threads else "the caller's thread reads the samples"
        return f"{reads}; {calls} the functions: {why_threads(workers, threads)}"
    return f"{reads}; {processes.because or f'worker processes call the functions: workers={workers!r}'}"


def workers_argument(given: Any) -> str:
    """InvalidArgumentError where it names no kind of workers."""
    if given not in ("threads", "processes", "auto"):
        many = "; num_workers says how many" if isinstance(given, int) else ""
        raise InvalidArgumentError(f"found workers={given!r}, expected 'threads', 'processes' or 'auto'{many}")
    return str(given)


def threads_share_a_lock() -> bool:
    """Whether threads of this interpreter take turns, so that processes are worth their while."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def processes_for(count: int, method: str = "forkserver", trial: str | None = None) -> Any:
    """Up to `count` processes, which are started when something is to be called.

    `trial`: "batches" or "callers", where it is to be found out whether they are worth it; who knows how long a batch
    took.
    """
    from penstock._core import _Workers
    from penstock._processes._launcher import Launcher

    launcher = Launcher(count, method)
    # A trial asks again, and is told then why nothing starts.
    with contextlib.suppress(*([OSError] if trial else [])):
        launcher.prepare()
    return _Workers(launcher, count, trial)


def _count(num_workers: Any) -> int:
    import operator
    import os

    if num_workers != "auto":
        return operator.index(num_workers)
    return max(1, min(16, len(os.sched_getaffinity(0))))
