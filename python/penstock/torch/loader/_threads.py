"""Threads that call Python functions and do not keep the program from ending.

Those of `concurrent.futures` are joined when the program ends, after everything that is queued.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, TimeoutError
from functools import partial
from typing import Any

from penstock._core import _call_or_stop, _forks, _is_ending, _require_own_process
from penstock.torch.loader._thread_state import ThreadState

_Call = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]
_Queue = queue.SimpleQueue[_Call | None]


class Threads:
    """Up to `most` threads that make calls in the order in which they are asked for.

    The end of the program waits five seconds at most for calls under way, and not for those that
    have not begun. Only one thread may ask for calls.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._forks = _forks()
        self._queue: _Queue = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Starts `function(*args)` in the caller's torch state and context variables; the Future has its result."""
        future: Future[Any] = Future()
        call = (future, ThreadState().call, (function, *args))
        if _is_ending():  # in a function of atexit: threads begin no call any more
            _make(call)
            return future
        self._queue.put(call)
        if len(self._threads) < self._most:
            self._start_another()
        return future

    def require_own_process(self) -> None:
        """InvalidArgumentError in a forked child, because the threads stayed in the parent."""
        _require_own_process(self._forks)

    def close(self) -> None:
        """Ends the threads after the calls under way; those that have not begun are cancelled."""
        if _forks() != self._forks:  # what forked found locked stays so
            return
        _end(self._queue, self._threads)

    def __del__(self) -> None:
        if hasattr(self, "_threads"):  # not where a signal's handler raised while it was made
            self.close()

    def _start_another(self) -> None:
        thread = threading.Thread(
            target=_serve, args=(self._queue,), name=f"{self._name}-{len(self._threads)}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # none to be had, or too late in the program's life
            if not self._threads:
                _make(self._queue.get())
        else:
            self._threads.append(thread)


def are_done(futures: Iterable[Future[Any]], timeout: float | None) -> bool:
    """Whether all of them are done within `timeout` seconds.

    `concurrent.futures.wait` would leave a cycle of references in each of them when a signal's handler raises in it.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    for future in futures:
        try:
            future.exception(None if deadline is None else max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            return False
        except CancelledError:
            continue
    return True


# They know the queue alone, so that the owner can go while they work.


def _serve(calls: _Queue) -> None:
    # Torch's operations end the process by an abort where the interpreter ends below them, and so does the end of a
    # tensor: the interpreter waits for a call and for all that goes with it.
    while (call := calls.get()) is not None:
        only = [call]
        del call
        _call_or_stop(partial(_make_only, only))


def _make_only(calls: list[_Call]) -> None:
    _make(calls.pop())


def _make(call: _Call | None) -> None:
    assert call is not None
    future, function, args = call
    del call
    try:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function(*args)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
    finally:
        del future  # which an error's traceback would lead back to


def _end(calls: _Queue, threads: list[threading.Thread]) -> None:
    for future in _taken_back(calls):
        future.cancel()
    for _ in threads:
        calls.put(None)


def _taken_back(calls: _Queue) -> list[Future[Any]]:
    """Takes the calls that have not begun out of the queue; they are never made."""
    out: list[Future[Any]] = []
    while True:
        try:
            call = calls.get_nowait()
        except queue.Empty:
            return out
        if call is not None:
            out.append(call[0])
