"""A dataset's files cut into pieces, each of which becomes one block, and pieces dealt out to tasks.

A piece is a run of whole small files, or some rows of one. It stays within the size that Ray wants blocks to have,
where rows are not larger than that, so that the memory of a task is bounded whatever the files are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.ray._layout import FileLayout

_MOST_FILES = 4096


@dataclass
class Piece:
    """Rows `begin` to `end` of one file, or all rows of several files that are alike."""

    files: list[FileLayout]
    begin: int
    end: int
    nbytes: int
    # Rows of a block; smaller than the piece where a file can be read as a whole only.
    step: int

    @property
    def rows(self) -> int:
        return self.end - self.begin


def pieces_of(layouts: list[FileLayout], most_bytes: int) -> Iterator[Piece]:
    """All pieces, in the order of the files. Files without rows give none."""
    run: list[FileLayout] = []
    for file in layouts:
        if run and not _goes_with(run, file, most_bytes):
            yield _whole(run, most_bytes)
            run = []
        if file.rows and (file.nbytes > most_bytes or file.packed) and file.each != "file":
            yield from _cut(file, most_bytes)
        elif file.rows:
            run.append(file)
    if run:
        yield _whole(run, most_bytes)


def _goes_with(run: list[FileLayout], file: FileLayout, most_bytes: int) -> bool:
    nbytes = sum(one.nbytes for one in run) if len(run) < 2 else run[0].nbytes * len(run)
    fits = nbytes + file.nbytes <= most_bytes and len(run) < _MOST_FILES
    # Files of one form are read by one call into one block of memory.
    return fits and file.rows > 0 and not file.packed and file.columns == run[0].columns


def _whole(run: list[FileLayout], most_bytes: int) -> Piece:
    rows, nbytes = sum(file.rows for file in run), sum(file.nbytes for file in run)
    return Piece(run, 0, rows, nbytes, _step(rows, nbytes, most_bytes))


def _step(rows: int, nbytes: int, most_bytes: int) -> int:
    """Rows of a block, so that all have about as many: a small one at the end would be a copy where Ray adds it to the
    block before."""
    blocks = min(rows, max(1, -(-nbytes // most_bytes)))
    return max(1, -(-rows // max(1, blocks)))


def _cut(file: FileLayout, most_bytes: int) -> Iterator[Piece]:
    step = _step(file.rows, file.nbytes, most_bytes)
    size = step if file.sliceable else file.rows
    for begin in range(0, file.rows, size):
        end = min(begin + size, file.rows)
        yield Piece([file], begin, end, file.nbytes * (end - begin) // file.rows, step)


def tasks_of(pieces: list[Piece], count: int) -> list[list[Piece]]:
    """Pieces as up to `count` runs of about as many bytes, in order."""
    total = sum(piece.nbytes for piece in pieces) or 1
    tasks: list[list[Piece]] = [[] for _ in range(max(1, count))]
    before = 0
    for piece in pieces:
        middle = before + piece.nbytes // 2
        tasks[min(len(tasks) - 1, middle * len(tasks) // total)].append(piece)
        before += piece.nbytes
    return [task for task in tasks if task]
