"""Files that are cut, replaced, grown and damaged while a reader has them open, and what every reader may give then: an
error of Penstock's, or the bytes of the file as it was opened, or as a new reader finds it. Never anything else.

A new reader is a row: how it opens a file, and how it reads all it has; each call of `read` gives one part of it.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import penstock

ROWS = 1000
SHAPE = (ROWS, 100)


def numbers(dtype: str, seed: int, rows: int = ROWS) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 100, (rows, *SHAPE[1:])).astype(dtype)


@dataclass(frozen=True)
class Road:
    """`open` gives what reads: callables, each of one part. They are made before the file changes."""

    name: str
    suffix: str
    open: Callable[[pathlib.Path], Sequence[Callable[[], Any]]]

    def __str__(self) -> str:
        return self.name


def flat(value: Any) -> bytes:
    """The type, shape and bytes of all that a reader gives."""
    if isinstance(value, dict):
        return b"".join(str(k).encode() + flat(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return b"".join(flat(v) for v in value)
    if hasattr(value, "detach"):
        value = value.detach().resolve_conj().resolve_neg().numpy()
    array = np.array(value)
    return repr((array.dtype.str, array.shape)).encode() + array.tobytes()


def outcome(read: Callable[[], Any]) -> bytes | penstock.Error:
    try:
        return flat(read())
    except penstock.Error as error:
        return error


def outcomes(road: Road, path: pathlib.Path) -> list[bytes | penstock.Error]:
    try:
        readers = road.open(path)
    except (penstock.Error, ValueError) as error:  # NumPy's names for what is wrong with a file
        return [error if isinstance(error, penstock.Error) else penstock.CorruptError("", "", None, None, None)]
    try:
        return [outcome(read) for read in readers]
    except IndexError:  # a file that became shorter has no such rows
        return []


# What happens to the file. Each is given what writes a file like it, of another type or seed.

Write = Callable[[pathlib.Path, str, int, int], None]


def keep_in_place(path: pathlib.Path, write: Write, dtype: str, rows: int = ROWS) -> None:
    """Another file's bytes, in the same file."""
    other = path.with_name("other-" + path.name)
    write(other, dtype, 7, rows)
    data = other.read_bytes()
    other.unlink()
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate(len(data))


def cut(path: pathlib.Path, _: Write, bytes_left: Callable[[int], int]) -> None:
    os.truncate(path, bytes_left(path.stat().st_size))


def damage(path: pathlib.Path, _: Write) -> None:
    size = path.stat().st_size
    with open(path, "r+b") as file:
        for at in (size // 3, size // 2, size * 2 // 3):
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 0x5A]))


def append(path: pathlib.Path, _: Write) -> None:
    with open(path, "ab") as file:
        file.write(b"\1" * 4000)


def replace(path: pathlib.Path, write: Write) -> None:
    other = path.with_name("other-" + path.name)
    write(other, "i4", 8, ROWS)
    os.replace(other, path)


CHANGES: dict[str, Callable[[pathlib.Path, Write], None]] = {
    "another type": lambda p, w: keep_in_place(p, w, "i4"),
    "other values": lambda p, w: keep_in_place(p, w, "f4"),
    "fewer rows": lambda p, w: keep_in_place(p, w, "f4", ROWS - 300),
    "more rows": lambda p, w: keep_in_place(p, w, "f4", ROWS + 300),
    "cut in its last page": lambda p, w: cut(p, w, lambda size: size - 50),
    "cut within": lambda p, w: cut(p, w, lambda size: size // 3 + 100),
    "cut to a page": lambda p, w: cut(p, w, lambda size: size // 8192 * 4096),
    "emptied": lambda p, w: cut(p, w, lambda _: 0),
    "damaged": damage,
    "grown": append,
    "replaced": replace,
}


def check(road: Road, change: str, folder: pathlib.Path, write: Write) -> None:
    path = folder / ("a" + road.suffix)
    write(path, "f4", 1, ROWS)
    os.utime(path, (10**9, 10**9))  # the clock of a file system may be coarse
    before = outcomes(road, path)
    assert all(isinstance(part, bytes) for part in before), before
    readers = road.open(path)
    CHANGES[change](path, write)
    found = [outcome(read) for read in readers]
    now = outcomes(road, path)
    for i, part in enumerate(found):
        if isinstance(part, penstock.Error):
            assert part.path is None or str(folder) in part.path, part
            continue
        allowed = [before[i]] + ([now[i]] if i < len(now) else [])
        assert part in allowed, f"part {i} is neither of the file that was opened nor of the one there is"


def samples(dataset: Any) -> list[Callable[[], Any]]:
    picked = [*range(0, len(dataset), max(1, len(dataset) // 20)), len(dataset) - 1]
    return [lambda i=i: dataset[i] for i in picked]  # type: ignore[misc]


def batches(loader: Any, count: int) -> list[Callable[[], Any]]:
    """The batches of one epoch; behind an error there is none."""
    iterator: Iterator[Any] = iter(loader)

    def read() -> Any:
        with contextlib.suppress(StopIteration):
            return next(iterator)
        return []

    return [read] * count
