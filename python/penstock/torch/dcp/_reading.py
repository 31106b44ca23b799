"""One call of `StorageReader.read_data`: the items of a plan, from the files or from other ranks to their targets.

Items that only this rank wants come first. Then come those that ranks share (_sharing.py), in rounds: each rank reads
its parcels of a round, all of them say whether that went well, and only then anything is sent. Otherwise a rank that
fails would leave the others waiting for bytes that never come. While a round is sent, the next one is read.
"""

from __future__ import annotations

import io
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.metadata import Metadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem

from penstock._core import _ObjectStreams
from penstock._pool import Pool
from penstock.errors import InvalidArgumentError, ShapeMismatchError
from penstock.torch._memory import with_memory_of_their_own
from penstock.torch.dcp._boxes import Boxes, as_bytes, is_direct, place_of, saved_dtype
from penstock.torch.dcp._metadata import failed
from penstock.torch.dcp._objects import safe_stream
from penstock.torch.dcp._sharing import Assignment, Key, Parcel, key_of, rounds, transfer
from penstock.torch.loading._ranks import Ranks

_AT_ONCE = 1 << 30  # bytes that are read straight into their tensors by one pass
_STAGED = 64 << 20  # bytes that are held in between, where a target cannot be read into


class Reading:
    """`safe`: objects are refused that torch.load(weights_only=True) would refuse."""

    def __init__(
        self, plan: LoadPlan, planner: LoadPlanner, metadata: Metadata, path: str, *, verify: bool, safe: bool
    ) -> None:
        self._items = plan.items
        self._planner = planner
        self._objects = _ObjectStreams(path, verify)
        self._metadata = metadata
        self._path = path
        self._verify = verify
        self._safe = safe

    def run(self) -> None:
        """Reads everything from the files."""
        self._read(self._items)

    def run_shared(self, told: Assignment, group: dist.ProcessGroup | None) -> None:
        """Reads what the coordinator has told this rank to read, and gets the rest from other ranks."""
        mine = [[parcel for parcel in some if told.rank in parcel.ranks] for some in rounds(told.parcels)]
        shared = {key for some in mine for parcel in some for key in parcel.keys}
        wanted: dict[Key, list[ReadItem]] = {key: [] for key in shared}
        for item in self._items:
            wanted.get(key_of(item), []).append(item)
        error: Exception | None = None
        ranks = Ranks(group)

        def attempt(work: Callable[..., Any], *arguments: Any) -> Any:
            nonlocal error
            try:
                return work(*arguments)
            except Exception as failure:  # which is told to all ranks before it is raised
                error = error or failure

        attempt(self._read, [item for item in self._items if key_of(item) not in shared])
        packets: list[_Packet] = []
        with Pool(1, thread_name_prefix="penstock-dcp") as ahead:
            for some in mine:
                ready, packets = packets, []
                if error is None:
                    packets = attempt(lambda some=some: [_Packet(self, parcel, wanted) for parcel in some]) or []
                sent = [each for each in packets if each.parcel.ranks[0] == told.rank]
                filled = ahead.submit(self._fill, sent)
                attempt(self._exchange, ready, told.rank, group)  # what all ranks have agreed on
                attempt(filled.result)
                ranks.require(error, "read what other ranks were to get from it")
        attempt(self._exchange, packets, told.rank, group)
        if error is not None:
            raise error

    @staticmethod
    def _exchange(packets: Sequence[_Packet], rank: int, group: dist.ProcessGroup | None) -> None:
        transfer([(each.parcel, each.memory) for each in packets], rank, group)
        for each in packets:
            each.deliver()

    def target(self, item: ReadItem) -> torch.Tensor:
        """The planner's tensor for an item."""
        target = self._planner.resolve_tensor(item).detach()
        if target.size() != torch.Size(item.lengths):
            message = (
                f"a part of shape {tuple(item.lengths)} was planned for a target of shape {tuple(target.size())}: the "
                "planner contradicts itself"
            )
            raise failed(ShapeMismatchError, message, self._path, item.storage_index.fqn)
        return target

    def commit(self, item: ReadItem, target: torch.Tensor, values: torch.Tensor) -> None:
        """Puts values, of the saved dtype, into the target if they are not there yet."""
        if values.data_ptr() != target.data_ptr() or values.numel() == 0:
            target.copy_(values)
        self._planner.commit_tensor(item, target)

    def give_object(self, item: ReadItem, data: bytes) -> None:
        """Hands an object's stream to the planner, which unpickles it."""
        name = item.storage_index.fqn
        self._planner.load_bytes(item, safe_stream(data, self._path, name) if self._safe else io.BytesIO(data))

    def dtype(self, item: ReadItem) -> torch.dtype:
        return saved_dtype(item, self._metadata, self._path)

    def _sorted(self, items: Sequence[ReadItem]) -> list[ReadItem]:
        def place(item: ReadItem) -> tuple[str, int, tuple[int, ...]]:
            found = place_of(item, self._metadata, self._path)
            return found.relative_path, found.offset, tuple(item.storage_offsets)

        return sorted(items, key=place)

    def _object(self, item: ReadItem) -> bytes:
        place = place_of(item, self._metadata, self._path)
        return self._objects.read(place.relative_path, place.offset, place.length, item.storage_index.fqn)

    def _read(self, items: Sequence[ReadItem]) -> None:
        ordered = self._sorted(items)
        tensors = [item for item in ordered if item.type != LoadItemType.BYTE_IO]
        boxes = Boxes(tensors, self._metadata, self._path, self._verify)
        for item in ordered:
            if item.type == LoadItemType.BYTE_IO:
                self.give_object(item, self._object(item))
        batch: list[tuple[ReadItem, torch.Tensor, torch.Tensor]] = []
        straight = staged = 0
        for item in tensors:
            target = self.target(item)
            dtype = self.dtype(item)
            if is_direct(target, dtype):
                batch.append((item, target, target))
                straight += target.nbytes
            else:
                batch.append((item, target, torch.empty(tuple(item.lengths), dtype=dtype)))
                staged += batch[-1][2].nbytes
            if straight >= _AT_ONCE or staged >= _STAGED:
                self._read_batch(boxes, batch)
                batch, straight, staged = [], 0, 0
        self._read_batch(boxes, batch)

    def _read_batch(self, boxes: Boxes, batch: list[tuple[ReadItem, torch.Tensor, torch.Tensor]]) -> None:
        self._read_into(boxes, [(item, memory) for item, _, memory in batch])
        for item, target, memory in batch:
            self.commit(item, target, memory)

    def _read_into(self, boxes: Boxes, wanted: Sequence[tuple[ReadItem, torch.Tensor]]) -> None:
        """Fills memory. What is the memory of several items (tied weights) is read for one after the other, so that the
        last one of the plan counts."""
        own = with_memory_of_their_own([memory for _, memory in wanted])
        boxes.read([part for part, is_own in zip(wanted, own, strict=True) if is_own])
        for part in sorted(itertools.compress(wanted, map(operator.not_, own)), key=self._place_in_plan):
            boxes.read([part])

    def _place_in_plan(self, part: tuple[ReadItem, torch.Tensor]) -> int:
        return next(number for number, item in enumerate(self._items) if item is part[0])

    def _fill(self, packets: Sequence[_Packet]) -> None:
        """Reads the packets that this rank is to send."""
        parts = [(item, memory) for packet in packets for item, memory in packet.parts()]
        tensors = [(item, memory) for item, memory in parts if item.type != LoadItemType.BYTE_IO]
        boxes = Boxes([item for item, _ in tensors], self._metadata, self._path, self._verify)
        self._read_into(boxes, tensors)
        for item, memory in parts:
            if item.type == LoadItemType.BYTE_IO:
                memory.copy_(torch.frombuffer(bytearray(self._object(item)), dtype=torch.uint8))


class _Packet:
    """A parcel on this rank: the memory that is sent or filled, which is the target's own where it can be."""

    def __init__(self, reading: Reading, parcel: Parcel, wanted: dict[Key, list[ReadItem]]) -> None:
        self.parcel = parcel
        self._reading = reading
        self._items = [(key, wanted[key]) for key in parcel.keys]
        self._targets: dict[int, torch.Tensor] = {}
        for _, items in self._items:
            for item in items:
                if item.type != LoadItemType.BYTE_IO:
                    self._targets[id(item)] = reading.target(item)
        self.memory = self._place()

    def _place(self) -> torch.Tensor:
        if len(self._items) == 1 and len(self._items[0][1]) == 1:
            item = self._items[0][1][0]
            target = self._targets.get(id(item))
            if target is not None and is_direct(target, self._reading.dtype(item)):
                return as_bytes(target)
        return torch.empty(self.parcel.nbytes, dtype=torch.uint8)

    def _spans(self) -> list[tuple[Key, list[ReadItem], torch.Tensor]]:
        parts = zip(self._items, self.parcel.starts, self.parcel.sizes, strict=True)
        return [(key, items, self.memory[start : start + size]) for (key, items), start, size in parts]

    def parts(self) -> list[tuple[ReadItem, torch.Tensor]]:
        """What is read to where, on the rank that reads."""
        out = []
        for key, items, memory in self._spans():
            if not items:
                message = "the planner's finish_plan left out what this rank was to read for others"
                raise failed(InvalidArgumentError, message, tensor=key[0])
            out.append((items[0], memory))
        return out

    def deliver(self) -> None:
        """Hands what has come to the planner."""
        for _, items, memory in self._spans():
            for item in items:
                target = self._targets.get(id(item))
                if target is None:
                    self._reading.give_object(item, memory.numpy().tobytes())
                else:
                    values = memory.view(self._reading.dtype(item)).reshape(tuple(item.lengths))
                    self._reading.commit(item, target, values)
