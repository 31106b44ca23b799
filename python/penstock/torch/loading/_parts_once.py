"""Parts of tensors that differ from rank to rank, read once: what tensor parallelism wants of a file.

Ranks tell each other which rows they want. What any of them wants, each byte once, is the block that they read
together; each takes its own rows out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

import penstock
from penstock._core import _entry_parts, _storage_parts
from penstock._load.shared_memory import aligned
from penstock.torch._arrays import Arrays
from penstock.torch.loading._once import BlockLayout, Kind, Piece, first_long, most_of_a_piece, parted, read_block
from penstock.torch.loading._ranks import Ranks, agreed, plan_of


@dataclass(frozen=True)
class _Run:
    """Neighbouring rows of an entry, [first, last), and where they lie in the block; of a scalar one row."""

    entry: int
    first: int
    last: int
    begin: int
    row_bytes: int

    @property
    def end(self) -> int:
        return self.begin + (self.last - self.first) * self.row_bytes


def read_parts(
    ranks: Ranks,
    make: Callable[[], tuple[penstock.Archive, torch.device, Mapping[str, slice | None]]],
    report: dict[str, Any] | None,
) -> dict[str, torch.Tensor]:
    """The rows that this rank's plan names, None for all of a tensor. All ranks call it alike, and `make` gives each
    the same file, its device and a plan of its own; errors of it are told to all."""
    archive, device, plan = agreed(ranks, make, lambda made: plan_of([made[0]], f"parts {made[1].type}"))
    numbers = {name: number for number, name in enumerate(archive.keys())}
    own = {numbers[name]: _rows(archive, numbers[name], part) for name, part in plan.items()}
    runs = _runs(archive, [each for told in ranks.gather(own) for each in told.items()])
    nbytes = max((run.end for run in runs), default=0)

    def pieces(readers: int) -> list[Piece]:
        most = most_of_a_piece(nbytes, readers)
        return [piece for run in runs for piece in _pieces(archive, run, most)]

    storage = read_block(archive, ranks, device, BlockLayout({}, nbytes, 0), pieces, Kind(), report)
    arrays = Arrays(device)
    return {name: _tensor(archive, arrays, name, numbers[name], own, runs, storage) for name in plan}


def _rows(archive: penstock.Archive, number: int, part: slice | None) -> tuple[int, int]:
    shape = _entry_parts(archive, number)[2]
    return (part.start, part.stop) if part is not None else (0, shape[0] if shape else 1)


def _runs(archive: penstock.Archive, wanted: list[tuple[int, tuple[int, int]]]) -> list[_Run]:
    """What anyone wants, joined where it touches, in the order of the files."""
    by_entry: dict[int, list[tuple[int, int]]] = {}
    for number, rows in wanted:
        by_entry.setdefault(number, []).append(rows)
    placed = []
    for number in by_entry:
        storage, _, shape, *_ = _entry_parts(archive, number)
        nbytes, _, source, begin = _storage_parts(archive, storage)
        if 0 not in shape:
            placed.append((source, begin or 0, number, nbytes // (shape[0] if shape else 1)))
    out: list[_Run] = []
    for _, _, number, row_bytes in sorted(placed):
        for first, last in _joined(by_entry[number]):
            begin = aligned(out[-1].end) if out else 0
            out.append(_Run(number, first, last, begin, row_bytes))
    return out


def _joined(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for first, last in sorted(each for each in rows if each[0] < each[1]):
        if out and first <= out[-1][1]:
            out[-1] = out[-1][0], max(last, out[-1][1])
        else:
            out.append((first, last))
    return out


def _pieces(archive: penstock.Archive, run: _Run, most: int) -> list[Piece]:
    storage, _, shape, *_ = _entry_parts(archive, run.entry)
    if not shape:
        return [Piece(run.begin, run.end, storage)]
    dim = first_long(shape) if shape[0] == 1 else 0
    last = shape[dim] if shape[0] == 1 else run.last
    row_bytes = run.row_bytes // (last if dim else 1)
    return parted(run.begin, row_bytes, storage, (run.entry, dim, run.first, last), most)


def _tensor(
    archive: penstock.Archive,
    arrays: Arrays,
    name: str,
    number: int,
    own: dict[int, tuple[int, int]],
    runs: list[_Run],
    storage: torch.UntypedStorage,
) -> torch.Tensor:
    _, dtype, shape, *_ = _entry_parts(archive, number)
    first, last = own[number]
    shape = (last - first, *shape[1:]) if shape else ()
    kind = arrays.dtype(dtype, name)
    if 0 in shape:
        return torch.empty(shape, dtype=kind, device=storage.device)
    run = next(each for each in runs if each.entry == number and each.first <= first and last <= each.last)
    begin = run.begin + (first - run.first) * run.row_bytes
    part: Any = storage[begin : begin + (last - first) * run.row_bytes]
    out = torch.empty(0, dtype=kind, device=storage.device)
    out.set_(part, 0, shape)  # type: ignore[call-overload]
    return out
