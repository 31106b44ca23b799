"""Workers that are forks of the program itself: `multiprocessing_context="fork"`.

The program is forked once for a loader, and that fork forks the workers, also those that take the place of one that
ended. So all of them have the program as it was when the loader was made.

A fork has one thread, and all locks as they are. One that another thread holds at that moment is never given back
there. So the program is forked before the loader has threads, and not at all while threads of Python or of Penstock are
at work. Threads of other libraries (BLAS, OpenMP) wait between calls, and hold nothing then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from penstock._processes import _server, _worker
from penstock._processes._ending import is_over
from penstock._processes._functions import Held
from penstock.errors import InvalidArgumentError


def require_safe() -> None:
    """InvalidArgumentError where another thread may hold a lock that a fork would wait for."""
    others = sorted({*_threads_of_python(), *_threads_of_penstock()})
    if others:
        raise InvalidArgumentError(
            f"found multiprocessing_context='fork' while other threads run ({', '.join(others)}): a fork may wait for "
            "ever for a lock that one of them holds; make the loader before they start, or use 'forkserver'"
        )


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


class Fork:
    """This process, forked, as the server of workers (`_server.main`) at the other end of `control`.

    It has what a Popen has for whoever ends it. `held`: what workers find by its number; `others`: sockets to servers,
    which are the program's alone.
    """

    def __init__(self, control: socket.socket, held: Held, others: Iterable[socket.socket]) -> None:
        self._status: int | None = None
        _worker.flush()  # else both would print what is not printed yet
        with warnings.catch_warnings():  # of other threads, which were looked at
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            _serve(control, held, others)

    def poll(self) -> int | None:
        if self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # the program waits for all of its children
                pid, status = self.pid, 0
            self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status

    def wait(self, timeout: float = 60) -> int | None:
        if not is_over(self.pid, time.monotonic() + timeout):
            raise subprocess.TimeoutExpired("a fork of the program", timeout)
        return self.poll()

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _serve(control: socket.socket, held: Held, others: Iterable[socket.socket]) -> NoReturn:
    try:
        _worker.here.held = held
        # The program's handlers, and what wakes it up, are not the fork's.
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for other in others:
            other.close()
        _close_links(control.fileno())
        _server.main(control.detach(), ())
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
