"""A model's weights one after another on several ranks, which read each of them once.

All ranks take the same tensors in the same order, in rounds of half a ring. Of a round each rank reads its share into a
block; when all have said that this went well, every rank has the whole block, and copies the tensors out as they are
taken. While it does, the next round is read. On the host of one machine the block is a half of one file in memory that
all ranks map; otherwise shares are sent by torch.distributed. Nobody writes to a half before all ranks have said, with
their next round, that they have taken everything out of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import torch
from torch.utils.dlpack import from_dlpack

import penstock
from penstock._core import _load_into
from penstock._load.shared_memory import aligned, mapped
from penstock._pool import Pool
from penstock.torch.loading._once import NoSharedMemoryError, common_file
from penstock.torch.loading._ranks import Ranks

Pairs = list[tuple[str, torch.Tensor]]


@dataclass(frozen=True)
class Unit:
    """What is read at once, and how many bytes it takes at most. `place`: of one tensor its number in the archive, its
    name for the taker, type and shape; None of a whole file."""

    nbytes: int
    read: Callable[[], Pairs]
    archive: penstock.Archive | None = None
    lend: Callable[[], Pairs | None] | None = None  # what needs no reading, at once
    place: tuple[int, str, torch.dtype, tuple[int, ...]] | None = None

    @property
    def name(self) -> str:
        return "" if self.place is None else self.place[1]


@dataclass
class _Round:
    """Units that are read before they are handed out: where each begins in the block, and which rank reads it."""

    units: list[Unit] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    nbytes: int = 0

    @property
    def is_whole_file(self) -> bool:
        return self.units[0].place is None

    def add(self, unit: Unit) -> None:
        self.units.append(unit)
        self.begins.append(self.nbytes)
        self.nbytes += aligned(unit.nbytes)

    def reader(self, index: int, turn: int, ranks: int) -> int:
        """Another rank begins each round, so that rounds of one large tensor are not all read by the first."""
        middle = self.begins[index] + self.units[index].nbytes // 2
        return (min(middle * ranks // max(self.nbytes, 1), ranks - 1) + turn) % ranks

    def tensor(self, index: int, block: torch.Tensor) -> torch.Tensor:
        place, begin = self.units[index].place, self.begins[index]
        assert place is not None
        _, _, dtype, shape = place
        return block[begin : begin + self.units[index].nbytes].view(dtype).reshape(shape)


def taken_together(
    units: Sequence[Unit], ring_bytes: int, ranks: Ranks, device: torch.device
) -> Iterator[tuple[str, torch.Tensor]]:
    """What the units hold, in their order, on every rank."""
    rounds = _rounds(units, ring_bytes // 2)
    blocks = _blocks(rounds, ranks, device)
    return _taken(rounds, blocks, ranks)


def _rounds(units: Sequence[Unit], most: int) -> list[_Round]:
    out: list[_Round] = []
    for unit in units:
        if not out or unit.place is None or out[-1].is_whole_file or out[-1].nbytes + unit.nbytes > most:
            out.append(_Round())
        out[-1].add(unit)
    return out


def _taken(rounds: list[_Round], blocks: _Blocks, ranks: Ranks) -> Iterator[tuple[str, torch.Tensor]]:
    told = 0  # rounds of which this rank has said how its share went
    with Pool(1, thread_name_prefix="penstock-weights") as ahead:
        try:
            coming = _begun(rounds, 0, blocks, ranks, ahead)
            for turn, each in enumerate(rounds):
                if coming is None:
                    told += 1
                    pairs = each.units[0].read()  # which ranks do together by themselves
                    coming = _begun(rounds, turn + 1, blocks, ranks, ahead)
                    pairs.reverse()
                    while pairs:
                        yield pairs.pop()
                    continue
                block, error = _result(coming)
                told += 1
                ranks.require(error, "read its share")
                blocks.exchange(block, each, turn)
                coming = _begun(rounds, turn + 1, blocks, ranks, ahead)
                for index, unit in enumerate(each.units):
                    try:
                        tensor = blocks.owned(each.tensor(index, block), each)
                    except Exception as error:  # no memory for it
                        if told < len(rounds):
                            _leave(ranks, f"could not take {unit.name!r}: {type(error).__name__}: {error}")
                        raise
                    yield unit.name, tensor
        except GeneratorExit:
            if told < len(rounds):  # the others wait for this rank's share
                _leave(ranks, "has stopped taking tensors")
            raise


def _leave(ranks: Ranks, why: str) -> None:
    """Says why this rank does not read its share of the next round, in the place of how that went."""
    with contextlib.suppress(Exception):
        ranks.gather(why)


def _begun(rounds: list[_Round], turn: int, blocks: _Blocks, ranks: Ranks, ahead: Pool) -> Future[torch.Tensor] | None:
    """This rank's share of a round, being read; None for a whole file."""
    if turn >= len(rounds) or rounds[turn].is_whole_file:
        return None
    return ahead.submit(_read, rounds[turn], turn, blocks, ranks)


def _read(each: _Round, turn: int, blocks: _Blocks, ranks: Ranks) -> torch.Tensor:
    block = blocks.of(each, turn)
    mine: dict[int, tuple[penstock.Archive, list[int], list[torch.Tensor]]] = {}
    for index, unit in enumerate(each.units):
        if unit.place and unit.archive and unit.nbytes and each.reader(index, turn, ranks.size) == ranks.rank:
            _, numbers, places = mine.setdefault(id(unit.archive), (unit.archive, [], []))
            numbers.append(unit.place[0])
            places.append(each.tensor(index, block))
    for archive, numbers, places in mine.values():
        _load_into(archive, numbers, places)
    return block


def _result(coming: Future[torch.Tensor]) -> tuple[torch.Tensor, BaseException | None]:
    try:
        return coming.result(), None
    except BaseException as error:  # Ctrl-C too: the others would wait
        return torch.empty(0), error


# Where rounds lie.


class _Blocks:
    """Memory of this rank, for rounds whose shares are sent."""

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        self._ranks = ranks
        self._device = device

    def of(self, each: _Round, turn: int) -> torch.Tensor:
        """The block that a round is read into."""
        return torch.empty(each.nbytes, dtype=torch.uint8, device=self._device)

    def exchange(self, block: torch.Tensor, each: _Round, turn: int) -> None:
        """Fills the block with what the other ranks have read."""
        self._ranks.send(block, self._shares(each, turn))

    def _shares(self, each: _Round, turn: int) -> list[tuple[int, int, int]]:
        out: list[tuple[int, int, int]] = []
        for index, unit in enumerate(each.units):
            rank, begin = each.reader(index, turn, self._ranks.size), each.begins[index]
            if out and out[-1][2] == rank:
                begin = out.pop()[0]
            out.append((begin, each.begins[index] + unit.nbytes, rank))
        return [share for share in out if share[0] < share[1]]

    def owned(self, tensor: torch.Tensor, each: _Round) -> torch.Tensor:
        """The tensor with memory of its own."""
        return tensor if len(each.units) == 1 else tensor.clone()


class _SharedBlocks(_Blocks):
    """Two halves of one file in memory, which rounds take in turn."""

    def __init__(self, ranks: Ranks, descriptor: int, half: int) -> None:
        super().__init__(ranks, torch.device("cpu"))
        self._half = half
        self._memory: torch.Tensor = from_dlpack(mapped(descriptor, 2 * half).__dlpack__())

    def of(self, each: _Round, turn: int) -> torch.Tensor:
        begin = turn % 2 * self._half
        return self._memory[begin : begin + each.nbytes]

    def exchange(self, block: torch.Tensor, each: _Round, turn: int) -> None:
        pass

    def owned(self, tensor: torch.Tensor, each: _Round) -> torch.Tensor:
        return tensor.clone()


def _blocks(rounds: list[_Round], ranks: Ranks, device: torch.device) -> _Blocks:
    half = max((each.nbytes for each in rounds if not each.is_whole_file), default=0)
    blocks = _Blocks(ranks, device)
    if half == 0:  # whole files alone
        return blocks
    if device.type != "cpu" or len(ranks.on_this_host()) < ranks.size:
        ranks.require_backend(device)
        return blocks
    half = (half + 4095) // 4096 * 4096
    try:
        descriptor = common_file(ranks, 0, 2 * half)
    except NoSharedMemoryError:
        ranks.require_backend(device)
        return blocks
    error: Exception | None = None
    try:
        blocks = _SharedBlocks(ranks, descriptor, half)
    except penstock.Error as failure:
        error = failure
    finally:
        os.close(descriptor)
    ranks.require(error, "map the memory of all ranks")
    return blocks
