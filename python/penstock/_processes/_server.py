"""The process that forks workers. It has one thread and imports everything before it forks."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import struct
import sys

from penstock._processes import _worker

GREETING = b"R"  # it has imported everything, and forks at once


def main(descriptor: int, preloaded: tuple[str, ...]) -> None:
    """Does what comes by that socket, until its other end is closed."""
    # The parent decides what Ctrl-C means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=descriptor)
    for name in preloaded:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # so that a collection in a worker does not write to pages that all of them share
    children: set[int] = set()
    try:
        control.sendall(GREETING)
    except OSError:  # the program has ended meanwhile
        sys.exit(0)
    while len(head := received(control, 9)) == 9:
        (size,) = struct.unpack("<q", head[1:])
        command = head[:1]
        link = _links.pop() if command in (b"F", b"B") else -1
        content = received(control, size)
        if command == b"W":
            (pid,) = struct.unpack("<q", content)
            control.sendall(struct.pack("<q", _status(pid)))
            children.discard(pid)
            continue
        if command == b"B":
            control.sendall(struct.pack("<q", os.getpid()))
            control.close()
            _worker.run(link, content)
        pid = os.fork()
        if pid == 0:
            control.close()
            _worker.run(link, content)
        os.close(link)
        children.add(pid)
        control.sendall(struct.pack("<q", pid))
    for pid in children:  # nobody is there for them
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    sys.exit(0)


_links: list[int] = []  # descriptors that came and were not used yet


def received(control: socket.socket, count: int) -> bytes:
    """So many bytes; none where the other end is closed. Descriptors that come along go to `_links`."""
    out = b""
    while len(out) < count:
        try:
            part, descriptors, _, _ = socket.recv_fds(control, count - len(out), 1)
        except ConnectionError:
            return b""
        _links.extend(descriptors)
        if not part:
            return b""
        out += part
    return out


def _status(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0
