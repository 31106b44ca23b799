"""Loads and saves that run beside the program, each on a thread of its own."""

from __future__ import annotations

import os
from _thread import allocate_lock

from penstock._api.files import load as load_now
from penstock._core import _hold
from penstock._files.paths import absolute
from penstock._wrong_argument import names_arguments

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence
    from typing import Any

    from penstock._load.task import Task


@names_arguments
def load_async(
    path: Any,
    device: object = "cpu",
    mmap: bool | None = None,
    *,
    verify: bool = True,
    direct: bool | None = None,
    gds: bool | None = None,
    threads: int | None = None,
    key: str | int | Sequence[str | int] | None = None,
    prefix: str | None = None,
    dtype: object | None = None,
    strict: bool = False,
    shape: int | Sequence[int] | None = None,
    offset: int | None = None,
    order: str | None = None,
) -> Task:
    """`penstock.load` beside the program.

        task = penstock.load_async("next.pt")
        ...
        state = task.result()        # or: state = await task

    Parameters
    ----------
    path, device, mmap, verify, direct, gds, threads, key, prefix, dtype, strict, shape, offset, order
        What `penstock.load` takes.

    Returns
    -------
    Task
        A `concurrent.futures.Future` that can be awaited too. What the load gives or raises arrives
        by it. It cannot be cancelled; the interpreter's end waits for it.
    """
    path = _absolute(path)
    return _started(
        lambda: load_now(
            path,
            device,
            mmap,
            verify=verify,
            direct=direct,
            gds=gds,
            threads=threads,
            key=key,
            prefix=prefix,
            dtype=dtype,
            strict=strict,
            shape=shape,
            offset=offset,
            order=order,
        )
    )


@names_arguments
def save_async(
    obj: object,
    path: str | bytes | os.PathLike[str],
    *,
    copy: bool = True,
    format: str | None = None,
    compress: bool = False,
    metadata: dict[str, str] | None = None,
    sync: bool = True,
) -> Task:
    """`penstock.save` beside the program.

    Saves to one path follow each other in the order of calls, so that the file of the last one stays.

    Parameters
    ----------
    obj, path, format, compress, metadata, sync
        What `penstock.save` takes.
    copy
        Copy the tensors to host memory before the call returns, so that the program may go on changing
        them. Without it the file holds them as they are when it is written, so they must not change
        until the task is done.

    Returns
    -------
    Task
        A `concurrent.futures.Future` that can be awaited too. What the save raises arrives by it. It
        cannot be cancelled; the interpreter's end waits for it.

    Raises
    ------
    DTypeMismatchError
        For objects that no format holds.
    """
    import threading

    held = _hold(obj, copy)
    path = absolute(path)
    line = path if "://" in path else os.path.realpath(path)
    with _LOCK:
        before = _LINES.get(line)
        over = _LINES[line] = threading.Event()

    def work() -> None:
        try:
            if before is not None:
                before.wait()
            held.save(path, format=format, compress=compress, metadata=metadata, sync=sync)
        finally:
            leave()

    def leave() -> None:
        over.set()
        with _LOCK:
            if _LINES.get(line) is over:
                del _LINES[line]

    try:
        return _started(work)
    except BaseException:
        leave()
        raise


# The last save of each path that is not over.
_LINES: dict[str | bytes, threading.Event] = {}
_LOCK = allocate_lock()


def _forget() -> None:
    """A forked child has none of the threads that its parent's saves wait for."""
    global _LOCK
    _LOCK = allocate_lock()
    _LINES.clear()


os.register_at_fork(after_in_child=_forget)


def _absolute(path: Any) -> Any:
    """As it leads now. What is no path, such as bytes in memory, which have a zero among them, stays."""
    is_path = isinstance(path, (str, os.PathLike)) or (isinstance(path, bytes) and b"\0" not in path)
    return absolute(path) if is_path else path


def _started(work: Callable[[], object]) -> Task:
    import threading

    from penstock._load.task import Task

    task = Task()
    task.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            task.set_exception(error)
        else:
            task.set_result(result)

    threading.Thread(target=run, name="penstock").start()
    return task
