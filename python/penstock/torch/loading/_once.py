"""A file that several ranks want is read once: each rank reads a share of its bytes, and all get all of them.

All ranks lay the storages out in one block, in the order of the file, and share it out by bytes. Then there are two
ways. For ranks of one machine and a result in host memory the block is one file in memory (memfd) that all of them map:
each byte is moved once, and nobody copies. It stays shared where that was asked for; else each rank maps it privately
in the end, so that its pages are one copy until a rank writes to them. Otherwise each rank has a block of its own, on
the host or on its device, and sends its share to the others by torch.distributed, round by round, while the next round
is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._core import (
    _block_layout,
    _entry_parts,
    _load_rows_into,
    _load_storages_into,
    _load_typed_into,
    _pinned_bytes,
    _storage_count,
)
from penstock._load.shared_memory import mapped, new_file, opened, path_of
from penstock._pool import Pool
from penstock.torch._blocks import private_storage, shared_storage
from penstock.torch.loading._ranks import Ranks

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
    """What is read at once: a storage, rows of the entry that is all of it, or an entry that is converted."""

    begin: int  # in the block
    end: int
    storage: int
    rows: tuple[int, int, int, int] | None = None  # entry, dimension, first, behind the last
    typed: tuple[int, tuple[int, ...]] | None = None  # entry, strides


@dataclass(frozen=True)
class BlockLayout:
    """What lies where in a block, {storage: (offset, bytes)}, of `count` storages. Those of converted entries are
    numbered behind the file's own; `typed` has an entry of each, and its strides there."""

    places: dict[int, tuple[int, int]]
    nbytes: int
    count: int
    typed: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    dtype: penstock.DType | None = None
    strict: bool = False

    def over(self, storage: torch.UntypedStorage) -> Loaded:
        """Each storage as all of the block, because torch.multiprocessing sends whole files in memory."""
        begins = {number: at for number, (at, _) in self.places.items()}
        return Loaded([storage if number in self.places else None for number in range(self.count)], begins)

    def apart(self, storage: torch.UntypedStorage) -> Loaded:
        """Each storage as a part of the block."""
        places = [self.places.get(number, (0, 0)) for number in range(self.count)]
        return Loaded([storage[at : at + size] if size else None for at, size in places], {})


def layout_of(archive: penstock.Archive, left_out: Collection[int]) -> BlockLayout:
    """Of a load that converts nothing."""
    return BlockLayout(*_block_layout(archive, left_out, (), []), _storage_count(archive))


@dataclass(frozen=True)
class Kind:
    """Of a block of host memory: that ranks go on sharing it, and that it is page-locked on each of them."""

    shared: bool = False
    pinned: bool = False


def read_shared(archive: penstock.Archive, layout: BlockLayout, progress: Any, *, pinned: bool) -> Loaded:
    """The storages in one block that other processes map too."""
    descriptor = new_file(layout.nbytes)
    try:
        memory = mapped(descriptor, layout.nbytes)
        _read(archive, layout, _pieces(archive, layout, 0), lambda begin, end: memory[begin:end], progress)
        return layout.over(shared_storage(descriptor, layout.nbytes, pinned=pinned))
    finally:
        os.close(descriptor)


def read_pinned(archive: penstock.Archive, layout: BlockLayout, progress: Any) -> Loaded:
    """The storages in one block of page-locked memory. torch's own blocks are a power of two."""
    block = from_dlpack(_pinned_bytes(max(layout.nbytes, 1)).__dlpack__())
    _read(archive, layout, _pieces(archive, layout, 0), lambda begin, end: block[begin:end], progress)
    return layout.over(block.untyped_storage())


def read_once(
    archive: penstock.Archive,
    ranks: Ranks,
    device: torch.device,
    layout: BlockLayout,
    kind: Kind,
    report: dict[str, Any] | None,
) -> Loaded:
    """The storages on this rank. All ranks call it alike, for an archive that they have agreed on."""
    storage = read_block(archive, ranks, device, layout, partial(_pieces, archive, layout), kind, report)
    return layout.over(storage) if kind.shared else layout.apart(storage)


def read_block(
    archive: penstock.Archive,
    ranks: Ranks,
    device: torch.device,
    layout: BlockLayout,
    pieces_for: Callable[[int], list[Piece]],
    kind: Kind,
    report: dict[str, Any] | None,
) -> torch.UntypedStorage:
    """A block on this rank with all that ranks read of it; `pieces_for` takes it apart for so many of them."""
    nbytes = layout.nbytes
    local = ranks.on_this_host()
    told: dict[str, Any] = {"ranks": ranks.size}
    out = None
    if device.type == "cpu":
        try:
            pieces = _share(pieces_for(len(local)), nbytes, len(local))[local.index(ranks.rank)]
            out = _by_memory(archive, ranks, local, layout, pieces, kind)
            told |= {
                "way": "shared memory",
                "why": f"{len(local)} ranks on this machine, and tensors of the host: each reads its share in place",
                "read_bytes": sum(piece.end - piece.begin for piece in pieces),
            }
        except NoSharedMemoryError as error:
            if kind.shared:
                raise penstock.UnsupportedError(str(error)) from error
            told["why"] = f"{error}; each rank reads its share and sends it to the others"
    if out is None:
        shares = _share(pieces_for(ranks.size), nbytes, ranks.size)
        out = _by_messages(archive, ranks, layout, shares, device)
        told.setdefault("why", f"tensors of {device.type}: each rank reads its share and sends it to the others")
        told |= {"way": "torch.distributed", "read_bytes": sum(p.end - p.begin for p in shares[ranks.rank])}
    if report is not None:
        report.clear()
        report.update(told)
    return out


# Who reads what.


def most_of_a_piece(nbytes: int, readers: int) -> int:
    """Larger tensors are taken apart, so that shares are about equal; for no readers none is."""
    if readers == 0:
        return max(nbytes, 1)
    return min(max(nbytes // (16 * readers), _LEAST), _ROUND)


def _pieces(archive: penstock.Archive, layout: BlockLayout, readers: int) -> list[Piece]:
    """All that is read, in the order of the block."""
    most = most_of_a_piece(layout.nbytes, readers)
    whole = _whole_entries(archive) if archive.format in _BY_ROWS else {}
    out = []
    for number, (at, size) in layout.places.items():
        if size <= most or number not in whole:
            out.append(Piece(at, at + size, number, typed=layout.typed.get(number)))
            continue
        index, shape = whole[number]
        dim = first_long(shape)
        out += parted(at, size // shape[dim], number, (index, dim, 0, shape[dim]), most)
    return out


def first_long(shape: tuple[int, ...]) -> int:
    """The dimension whose parts lie one behind the other."""
    return next((dim for dim, length in enumerate(shape) if length > 1), 0)


def parted(begin: int, row_bytes: int, storage: int, rows: tuple[int, int, int, int], most: int) -> list[Piece]:
    """Rows of an entry (entry, dimension, first, behind the last) in pieces of at most so many bytes."""
    entry, dim, first, last = rows
    step = max(most // max(row_bytes, 1), 1)
    out = []
    for at in range(first, last, step):
        to = min(at + step, last)
        place, end = (begin + (row - first) * row_bytes for row in (at, to))
        out.append(Piece(place, end, storage, (entry, dim, at, to)))
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


def _read(
    archive: penstock.Archive,
    layout: BlockLayout,
    pieces: Sequence[Piece],
    part: Callable[[int, int], Any],
    progress: Any = None,
) -> None:
    """Reads pieces to their places; `part(begin, end)` gives the memory of a part of the block."""
    typed = {piece.typed[0]: (part(piece.begin, piece.end), piece.typed[1]) for piece in pieces if piece.typed}
    wholes = {p.storage: part(p.begin, p.end) for p in pieces if p.rows is None and p.typed is None}
    if typed:
        assert layout.dtype is not None
        _load_typed_into(archive, typed, wholes, layout.dtype, layout.strict, progress)
    else:
        _load_storages_into(archive, wholes, progress)
    _load_rows_into(archive, [(*piece.rows, part(piece.begin, piece.end)) for piece in pieces if piece.rows])


# By one block that all ranks map.


class NoSharedMemoryError(Exception):
    """Why ranks cannot share memory; raised on all of them, before anything is read."""


def _by_memory(
    archive: penstock.Archive, ranks: Ranks, local: list[int], layout: BlockLayout, pieces: list[Piece], kind: Kind
) -> torch.UntypedStorage:
    nbytes = layout.nbytes
    descriptor = common_file(ranks, local[0], nbytes)
    error: BaseException | None = None
    storage = torch.UntypedStorage(0)
    try:
        _fill(archive, layout, descriptor, pieces)
        if kind.shared:
            storage = shared_storage(descriptor, nbytes, pinned=kind.pinned)
        else:  # nobody looks at it before all have read
            storage = private_storage(descriptor, nbytes)
    except BaseException as failure:  # Ctrl-C too: the others would wait
        error = failure
    finally:
        os.close(descriptor)
    ranks.require(error, "read its share")
    return storage


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


def _fill(archive: penstock.Archive, layout: BlockLayout, descriptor: int, pieces: list[Piece]) -> None:
    """Reads this rank's share. When this returns, this rank writes no more."""
    memory = mapped(descriptor, layout.nbytes)
    _read(archive, layout, pieces, lambda begin, end: memory[begin:end])


# By torch.distributed.


def _by_messages(
    archive: penstock.Archive, ranks: Ranks, layout: BlockLayout, shares: list[list[Piece]], device: torch.device
) -> torch.UntypedStorage:
    ranks.require_backend(device)
    nbytes = layout.nbytes
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
            _read(archive, layout, mine[turn], lambda begin, end: block[begin:end])

    with Pool(1, thread_name_prefix="penstock-ranks") as ahead:
        coming: Future[None] = ahead.submit(read, 0)
        for turn in range(max(map(len, turns))):
            try:
                coming.result()
            except BaseException as failure:
                error = failure
            ranks.require(error, "read its share")
            coming = ahead.submit(read, turn + 1)
            sent = [(own[turn], rank) for rank, own in enumerate(turns) if turn < len(own)]
            ranks.send(block, [(pieces[0].begin, pieces[-1].end, rank) for pieces, rank in sent])
    return block.untyped_storage()


def _rounds(pieces: list[Piece]) -> list[list[Piece]]:
    out: list[list[Piece]] = []
    for piece in pieces:
        if not out or piece.end - out[-1][0].begin > _ROUND:
            out.append([])
        out[-1].append(piece)
    return out
