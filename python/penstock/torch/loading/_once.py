"""A file that several ranks want is read once: each rank reads a share of its bytes, and all get all of them.

All ranks lay the storages out in one block, in the order of the file, and share it out by bytes. Then there are two
ways. For ranks of one machine and a result in host memory the block is one file in memory (memfd) that all of them map:
each byte is moved once, and nobody copies. It stays shared where that was asked for; else each rank maps it privately
in the end, so that its pages are one copy until a rank writes to them. Otherwise each rank has a block of its own, on
the host or on its device, and sends its share to the others by torch.distributed, round by round, while the next round
is read.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._core import _entry_parts, _load_rows_into, _load_storages_into, _pinned_bytes
from penstock._load.shared_memory import lay_out, mapped, new_file, opened, path_of
from penstock.torch._blocks import private_storage, shared_storage
from penstock.torch.loading._ranks import Ranks

__all__ = ["Loaded", "NoSharedMemoryError", "common_file", "read_once", "read_pinned", "read_shared"]

_ROUND = 64 << 20  # bytes that each rank reads before it sends them
_LEAST = 8 << 20  # smaller parts of a tensor are not worth a read of their own
_BY_ROWS = {"safetensors", "shard-index", "npy"}  # formats whose tensors have no checksum, which is of a whole record


@dataclass(frozen=True)
class Loaded:
    """Storages and, of each, where it begins in the one that stands for it."""

    storages: list[torch.UntypedStorage | None]
    begins: dict[int, int]


@dataclass(frozen=True)
class Piece:
    """What is read at once: a storage, or rows of the entry that is all of it."""

    begin: int  # in the block
    end: int
    storage: int
    rows: tuple[int, int, int, int] | None = None  # entry, dimension, first, behind the last


def read_shared(archive: penstock.Archive, left_out: Collection[int], count: int, progress: Any) -> Loaded:
    """The storages in one block that other processes map too."""
    places, nbytes = lay_out(archive, left_out)
    descriptor = new_file(nbytes)
    try:
        memory = memoryview(mapped(descriptor, nbytes))
        _load_storages_into(archive, {n: memory[at : at + size] for n, (at, size) in places.items()}, progress)
        return _in_shared(descriptor, nbytes, places, count)
    finally:
        os.close(descriptor)


def read_pinned(archive: penstock.Archive, left_out: Collection[int], count: int, progress: Any) -> Loaded:
    """The storages in one block of page-locked memory. torch's own blocks are a power of two."""
    places, nbytes = lay_out(archive, left_out)
    block = from_dlpack(_pinned_bytes(max(nbytes, 1)).__dlpack__())
    _load_storages_into(archive, {n: block[at : at + size] for n, (at, size) in places.items()}, progress)
    storage = block.untyped_storage()
    begins = {number: at for number, (at, _) in places.items()}
    return Loaded([storage if number in places else None for number in range(count)], begins)


def read_once(
    archive: penstock.Archive,
    ranks: Ranks,
    device: torch.device,
    left_out: Collection[int],
    count: int,
    *,
    shared: bool,
    report: dict[str, Any] | None,
) -> Loaded:
    """The storages on this rank. All ranks call it alike, for an archive that they have agreed on."""
    places, nbytes = lay_out(archive, left_out)
    local = ranks.on_this_host()
    told: dict[str, Any] = {"ranks": ranks.size}
    out = None
    if device.type == "cpu":
        try:
            pieces = _share(_pieces(archive, places, nbytes, len(local)), nbytes, len(local))[local.index(ranks.rank)]
            out = _by_memory(archive, ranks, local, places, nbytes, pieces, count, shared)
            told |= {
                "way": "shared memory",
                "why": f"{len(local)} ranks on this machine, and tensors of the host: each reads its share in place",
                "read_bytes": sum(piece.end - piece.begin for piece in pieces),
            }
        except NoSharedMemoryError as error:
            if shared:
                raise penstock.UnsupportedError(str(error)) from error
            told["why"] = f"{error}; each rank reads its share and sends it to the others"
    if out is None:
        shares = _share(_pieces(archive, places, nbytes, ranks.size), nbytes, ranks.size)
        out = _by_messages(archive, ranks, places, nbytes, shares, device, count)
        told.setdefault("why", f"tensors of {device.type}: each rank reads its share and sends it to the others")
        told |= {"way": "torch.distributed", "read_bytes": sum(p.end - p.begin for p in shares[ranks.rank])}
    if report is not None:
        report.clear()
        report.update(told)
    return out


# Who reads what.


def _pieces(archive: penstock.Archive, places: dict[int, tuple[int, int]], nbytes: int, readers: int) -> list[Piece]:
    """All that is read, in the order of the block. Large tensors are taken apart, so that shares are about equal."""
    most = min(max(nbytes // (16 * readers), _LEAST), _ROUND)
    whole = _whole_entries(archive) if archive.format in _BY_ROWS else {}
    out = []
    for number, (at, size) in places.items():
        if size <= most or number not in whole:
            out.append(Piece(at, at + size, number))
            continue
        index, shape = whole[number]
        dim = next(dim for dim, length in enumerate(shape) if length > 1)
        step = max(most * shape[dim] // size, 1)
        for first in range(0, shape[dim], step):
            last = min(first + step, shape[dim])
            begin, end = (at + size * row // shape[dim] for row in (first, last))
            out.append(Piece(begin, end, number, (index, dim, first, last)))
    return out


def _whole_entries(archive: penstock.Archive) -> dict[int, tuple[int, tuple[int, ...]]]:
    """The entry of each storage that is all of it, in C order."""
    out: dict[int, tuple[int, tuple[int, ...]]] = {}
    twice = set()
    for index in range(len(archive)):
        number, _, shape, strides, offset, _, conj, neg = _entry_parts(archive, index)
        if number in out:
            twice.add(number)
        if offset == 0 and not conj and not neg and _is_c_order(shape, strides):
            out[number] = (index, shape)
    return {number: entry for number, entry in out.items() if number not in twice}


def _is_c_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return False
        step *= length
    return True


def _share(pieces: list[Piece], nbytes: int, readers: int) -> list[list[Piece]]:
    """Each reader's pieces: neighbours, and about as many bytes for each."""
    out: list[list[Piece]] = [[] for _ in range(readers)]
    for piece in pieces:
        out[min((piece.begin + piece.end) // 2 * readers // max(nbytes, 1), readers - 1)].append(piece)
    return out


def _read(archive: penstock.Archive, pieces: Sequence[Piece], part: Callable[[int, int], Any]) -> None:
    """Reads pieces to their places; `part(begin, end)` gives the memory of a part of the block."""
    wholes = {piece.storage: part(piece.begin, piece.end) for piece in pieces if piece.rows is None}
    _load_storages_into(archive, wholes)
    _load_rows_into(archive, [(*piece.rows, part(piece.begin, piece.end)) for piece in pieces if piece.rows])


# By one block that all ranks map.


class NoSharedMemoryError(Exception):
    """Why ranks cannot share memory; raised on all of them, before anything is read."""


def _by_memory(
    archive: penstock.Archive,
    ranks: Ranks,
    local: list[int],
    places: dict[int, tuple[int, int]],
    nbytes: int,
    pieces: list[Piece],
    count: int,
    shared: bool,
) -> Loaded:
    descriptor = common_file(ranks, local[0], nbytes)
    try:
        _fill(archive, ranks, descriptor, nbytes, pieces)
        if shared:
            return _in_shared(descriptor, nbytes, places, count)
        storage = private_storage(descriptor, nbytes)
        return Loaded([storage[at : at + size] if size else None for at, size in _all_places(places, count)], {})
    finally:
        os.close(descriptor)


def common_file(ranks: Ranks, leader: int, nbytes: int) -> int:
    """A descriptor of the block, which the first rank of each machine makes."""
    descriptor, told = -1, ("", "")
    if ranks.rank == leader:
        try:
            descriptor = new_file(nbytes)
            told = (path_of(descriptor), "")
        except penstock.Error as error:
            told = ("", str(error))
    try:
        path, reason = ranks.gather(told)[leader]
        if not reason and ranks.rank != leader:
            try:
                descriptor = opened(path)
            except (OSError, penstock.Error) as error:
                reason = f"rank {ranks.rank} cannot open the memory of rank {leader} ({error})"
        reasons = [each for each in ranks.gather(reason) if each]
    except BaseException:
        _close(descriptor)
        raise
    if reasons:
        _close(descriptor)
        raise NoSharedMemoryError(reasons[0])
    return descriptor


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _fill(archive: penstock.Archive, ranks: Ranks, descriptor: int, nbytes: int, pieces: list[Piece]) -> None:
    """Reads this rank's share. When this returns all shares are there, and this rank writes no more."""
    error: BaseException | None = None
    try:
        block: mmap.mmap = mapped(descriptor, nbytes)
        memory = memoryview(block)
        _read(archive, pieces, lambda begin, end: memory[begin:end])
    except BaseException as failure:  # Ctrl-C too: the others would wait
        error = failure
    ranks.require(error, "read its share")


def _in_shared(descriptor: int, nbytes: int, places: dict[int, tuple[int, int]], count: int) -> Loaded:
    storage = shared_storage(descriptor, nbytes)
    begins = {number: at for number, (at, _) in places.items()}
    return Loaded([storage if number in places else None for number in range(count)], begins)


def _all_places(places: dict[int, tuple[int, int]], count: int) -> list[tuple[int, int]]:
    return [places.get(number, (0, 0)) for number in range(count)]


# By torch.distributed.


def _by_messages(
    archive: penstock.Archive,
    ranks: Ranks,
    places: dict[int, tuple[int, int]],
    nbytes: int,
    shares: list[list[Piece]],
    device: torch.device,
    count: int,
) -> Loaded:
    ranks.require_backend(device)
    error: BaseException | None = None
    block = torch.empty(0, dtype=torch.uint8)
    try:
        block = torch.empty(nbytes, dtype=torch.uint8, device=device)
    except RuntimeError as failure:
        error = penstock.OutOfMemoryError(f"{nbytes} bytes on {device}: {str(failure).partition(chr(10))[0]}")
    ranks.require(error, "get memory for the result")
    turns = [_rounds(pieces) for pieces in shares]
    mine = turns[ranks.rank]

    def read(turn: int) -> None:
        if turn < len(mine):
            _read(archive, mine[turn], lambda begin, end: block[begin:end])

    with ThreadPoolExecutor(1, thread_name_prefix="penstock-ranks") as ahead:
        coming: Future[None] = ahead.submit(read, 0)
        for turn in range(max(map(len, turns))):
            try:
                coming.result()
            except BaseException as failure:
                error = failure
            ranks.require(error, "read its share")
            coming = ahead.submit(read, turn + 1)
            _send(block, [(rank, own[turn]) for rank, own in enumerate(turns) if turn < len(own)], ranks)
    storage = block.untyped_storage()
    return Loaded([storage[at : at + size] if size else None for at, size in _all_places(places, count)], {})


def _rounds(pieces: list[Piece]) -> list[list[Piece]]:
    out: list[list[Piece]] = []
    for piece in pieces:
        if not out or piece.end - out[-1][0].begin > _ROUND:
            out.append([])
        out[-1].append(piece)
    return out


def _send(block: torch.Tensor, parts: list[tuple[int, list[Piece]]], ranks: Ranks) -> None:
    """The bytes of this round from the rank that has read them to all others."""
    with ranks.answering():
        works = [
            dist.broadcast(
                block[pieces[0].begin : pieces[-1].end], ranks.source(rank), group=ranks.group, async_op=True
            )
            for rank, pieces in parts
        ]
        for work in works:
            work.wait()
