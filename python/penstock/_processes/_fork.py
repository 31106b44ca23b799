"""Workers that are forks of the program itself: `multiprocessing_context="fork"`.

A fork has one thread, and all locks as they are. One that another thread holds at that moment is never given back
there. So workers are forked before their loader has threads, and not at all while threads of Python or of Penstock are
at work. Threads of other libraries (BLAS, OpenMP) wait between calls, and hold nothing then.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import stat
import sys
import threading
import warnings
from pathlib import Path
from typing import NoReturn

from penstock._processes import _worker
from penstock.errors import InvalidArgumentError

__all__ = ["Forked", "require_safe"]


def require_safe() -> None:
    """InvalidArgumentError where another thread may hold a lock that a fork would wait for."""
    others = sorted({*_threads_of_python(), *_threads_of_penstock()})
    if others:
        message = (
            f"found multiprocessing_context='fork' while other threads run ({', '.join(others)}): a fork may wait for "
            "ever for a lock that one of them holds; make the loader before they start, or use 'forkserver'"
        )
        raise InvalidArgumentError(message, message)


def _threads_of_python() -> list[str]:
    own = threading.get_ident()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return [names.get(ident, "a thread of C") for ident in sys._current_frames() if ident != own]


def _threads_of_penstock() -> list[str]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            found.append((task / "comm").read_text().strip())
    return [name for name in found if name.startswith("penstock")]


class Forked:
    """Forks this process, and knows how the forks ended."""

    def fork_worker(self, link: socket.socket, setup: bytes) -> int:
        """The pid of a new worker, which has the program's memory as it is now."""
        _worker.flush()  # else both would print what is not printed yet
        with warnings.catch_warnings():  # of other threads, which were looked at
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _become_worker(link, setup)
        return pid

    def status(self, pid: int) -> int | None:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:  # the program waits for all of its children
            return None


def _become_worker(link: socket.socket, setup: bytes) -> NoReturn:
    try:
        gc.freeze()  # what the program has is not the worker's to finalize
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(-1)
        _close_links(link.fileno())
        _worker.run(link.detach(), setup)
    finally:
        os._exit(1)


def _close_links(own: int) -> None:
    """Closes the program's sockets to other workers, which would not see the program's end while a fork has them."""
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        with contextlib.suppress(OSError):
            if number != own and stat.S_ISSOCK(os.fstat(number).st_mode) and _is_link(number):
                os.close(number)


def _is_link(number: int) -> bool:
    with socket.socket(fileno=os.dup(number)) as one:
        return one.family == socket.AF_UNIX and one.type == socket.SOCK_SEQPACKET and not one.getsockname()
