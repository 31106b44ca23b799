"""Starts worker processes and sees to it that they end.

A server process forks them (`_server.py`): it has imported what they need, and has no threads that could hold a lock.
All loaders of a program share it, because importing torch takes seconds. With "spawn" each worker is a new interpreter.
With "fork" each loader has a server of its own, a fork of the program from before the loader has threads (`_fork.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from penstock._processes import _worker
from penstock._processes._ending import is_over
from penstock._processes._fork import Fork, require_safe
from penstock._processes._functions import Held, pickled
from penstock._processes._server import GREETING, received
from penstock.errors import CancelledError

_PATIENCE = 1.5  # seconds that a process may take to end by itself
# Seconds in which a server answers, which starts and waits for processes and does nothing else.
_ANSWERED = 10.0
# What a server imports before it forks, where the program has it.
_PRELOADED = ("numpy", "torch", "penstock.torch.loader._processes")


class Launcher:
    """Starts the workers of one loader, and ends them.

    `method` is "forkserver", "spawn" or "fork".
    """

    def __init__(self, count: int, method: str) -> None:
        self._count = count
        self._method = method
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._numbers: set[int] = set()
        self._servers: dict[int, _Server] = {}  # by the worker's pid
        self._number_of: dict[int, int] = {}
        self._fork: _Server | None = None
        self._held: Held | None = None  # what that fork has of the program's functions

    def prepare(self) -> None:
        """Begins what takes long, and does not wait for it; forks, where that is the way, or raises why it cannot."""
        if self._method == "fork":
            require_safe()
            held = self._held = Held()
            self._fork = _Server(lambda control: Fork(control, held, list(_controls)))
            held.let_go()
        elif self._method == "forkserver" and not _worker.here.is_preparing:
            _server()

    def is_ready(self, _: None = None) -> bool:
        """Whether `start` would not wait for imports."""
        if _worker.here.is_preparing:
            return False
        return self._method == "spawn" or (self._fork or _server()).is_ready()

    def start(self, _: None = None) -> list[int]:
        """[socket, pid] of a new worker."""
        _worker.require_prepared()
        with self._lock:
            number = next(free for free in range(len(self._numbers) + 1) if free not in self._numbers)
            self._numbers.add(number)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                setup = self._setup(number)
                if self._method == "spawn":
                    server = _Server(_Interpreter(()))
                    pid = server.become_worker(theirs, setup)
                else:
                    server = self._fork or _server()
                    pid = server.fork_worker(theirs, setup)
        except BaseException:
            ours.close()
            with self._lock:
                self._numbers.discard(number)
            if _NONE_ANY_MORE in _servers and threading.current_thread() is not threading.main_thread():
                raise SystemExit from None  # a daemon thread that the program's end left behind, and that nobody asks
            raise
        with self._lock:
            self._servers[pid], self._number_of[pid] = server, number
        return [ours.detach(), pid]

    def pickled(self, function: Any, runs_main: bool) -> bytes:
        """The function for a worker: what a fork has travels as a number."""
        if self._held is not None:
            with contextlib.suppress(Exception):  # what nobody pickles is said below
                return self._held.pickled(function)
        return pickled(function, runs_main)

    def reap(self, pid: int) -> str:
        """How the worker ended, in words; it is killed where it has not."""
        status = self._ended(pid, time.monotonic() + _PATIENCE)
        return f"the worker process {pid} {_told(status)}"

    def close(self) -> None:
        """Waits until all workers have ended; those that take too long are killed."""
        if os.getpid() != self._process:  # a fork has the parent's
            return
        deadline = time.monotonic() + _PATIENCE
        for pid in list(self._servers):
            self._ended(pid, deadline)
        if self._fork is not None:
            self._fork.end()

    def _setup(self, number: int) -> bytes:
        setup = {
            "number": number,
            "count": self._count,
            "environ": dict(os.environ),
            "folder": os.getcwd(),
            "path": list(sys.path),
            "argv": list(sys.argv),
        }
        return pickle.dumps(setup)

    def _ended(self, pid: int, deadline: float) -> int | None:
        """The status that a worker ended with; None where nobody knows any more."""
        with self._lock:
            server = self._servers.pop(pid, None)
        if server is None:
            return None
        if not is_over(pid, deadline):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            is_over(pid, time.monotonic() + _PATIENCE)
        with self._lock:
            self._numbers.discard(self._number_of.pop(pid, -1))
        return server.status(pid)


def _told(status: int | None) -> str:
    if status is None:
        return "has ended"
    if status >= 0:
        why = "os._exit, all descriptors closed, or a crash of a library"
        return f"ended with exit code {status}, before the function's result was sent ({why})"
    name = signal.Signals(-status).name if -status in {*signal.Signals} else f"signal {-status}"
    why = "; the system kills the process that takes most where memory is used up" if name == "SIGKILL" else ""
    return f"was killed by {name}{why}"


class _Interpreter:
    """Begins a server as a new interpreter, which imports these modules."""

    def __init__(self, preloaded: tuple[str, ...]) -> None:
        self._preloaded = preloaded

    def __call__(self, control: socket.socket) -> Any:
        number = control.fileno()
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from penstock._processes._server import main; "
            f"main({number}, {self._preloaded!r})"
        )
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        return subprocess.Popen([sys.executable, *flags, "-c", code], pass_fds=[number], stdin=subprocess.DEVNULL)


class _Server:
    """A process that starts workers when it is told to. Threads take turns.

    `begin` starts it, with its end of a socket.
    """

    def __init__(self, begin: Callable[[socket.socket], Any]) -> None:
        self._lock = threading.Lock()
        self._is_greeted = False
        self.process = os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        _controls.add(self._control)
        with theirs:
            self._popen = begin(theirs)

    def fork_worker(self, link: socket.socket, setup: bytes) -> int:
        """Its pid."""
        return self._asked(b"F", setup, link)

    def become_worker(self, link: socket.socket, setup: bytes) -> int:
        """Its own pid, which is a worker's from now on."""
        self._asked(b"B", setup, link)
        self._control.close()
        return int(self._popen.pid)

    def status(self, pid: int) -> int | None:
        """That of a worker that has ended."""
        if pid == self._popen.pid:
            try:
                return int(self._popen.wait(_PATIENCE))
            except subprocess.TimeoutExpired:
                return None
        try:
            return self._asked(b"W", struct.pack("<q", pid))
        except OSError:
            return None

    def end(self) -> None:
        """Has it end, and its workers, and waits for that."""
        if self.process != os.getpid():
            return
        self._control.close()
        if not self._is_greeted:  # it has no workers yet, and need not import what nobody uses
            self._popen.kill()
        try:
            self._popen.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def is_ready(self) -> bool:
        """Whether it has imported everything, or can tell by now that it will not."""
        if not self._is_greeted and self._lock.acquire(blocking=False):
            try:
                self._greet(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            except OSError:
                return True
            finally:
                self._lock.release()
        return self._is_greeted

    def _greet(self, flags: int = 0) -> None:
        """Takes its first word; OSError where it has none. Under the lock."""
        if self._is_greeted:
            return
        if self._control.recv(len(GREETING), flags) != GREETING:
            raise OSError
        self._control.settimeout(_ANSWERED)  # imports take as long as they like, answers do not
        self._is_greeted = True

    def is_alive(self) -> bool:
        return self.process == os.getpid() and self._popen.poll() is None

    def _asked(self, command: bytes, content: bytes, link: socket.socket | None = None) -> int:
        with self._lock:
            head = command + struct.pack("<q", len(content))
            try:
                self._greet()
                if link is None:
                    self._control.sendall(head)
                else:
                    socket.send_fds(self._control, [head], [link.fileno()])
                self._control.sendall(content)
                answer = received(self._control, 8)
            except TimeoutError:  # it is stopped (SIGSTOP); what it says later would answer another question
                self._popen.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._popen.wait(_PATIENCE)
                answer = b""
            except OSError:
                answer = b""
        if len(answer) < 8:
            raise OSError(
                f"the process that starts workers has ended (exit code {self._popen.poll()}); its last words are on "
                "standard error"
            )
        return int(struct.unpack("<q", answer)[0])


# The program's ends of sockets to servers: a server does not see the program's end while a fork of it has one.
_controls: weakref.WeakSet[socket.socket] = weakref.WeakSet()

# One for each set of modules that it has imported, for the life of the program: it ends when this process does.
# With the key _NONE_ANY_MORE, the program is ending.
_servers: dict[tuple[str, ...], _Server | None] = {}
_NONE_ANY_MORE = ("",)
_servers_lock = threading.Lock()


@atexit.register
def _end_servers() -> None:
    with _servers_lock:
        ended = list(_servers.values())
        _servers.clear()
        _servers[_NONE_ANY_MORE] = None
    for server in ended:
        if server is not None:
            server.end()


def _server() -> _Server:
    preloaded = tuple(name for name in _PRELOADED if name in sys.modules)
    with _servers_lock:
        if _NONE_ANY_MORE in _servers:
            raise CancelledError("the program is ending")
        server = _servers.get(preloaded)
        if server is None or not server.is_alive():
            server = _servers[preloaded] = _Server(_Interpreter(preloaded))
    return server
