"""What several ranks want is read by one of them and sent to the others.

The coordinator sees the plans of all ranks. What several of them want alike (the same part of the same saved chunk)
becomes a parcel: one rank reads it, the others get it. Readers are chosen so that all ranks read about as many bytes.

A parcel goes along a chain, from the rank that reads it to the next and from there on, in pieces: each rank sends what
it has got while it gets the next piece, so a chain of many ranks takes hardly longer than one of two. All ranks go
through the parcels in the same order and never wait for a send before they have begun all earlier ones, so that they
cannot wait for each other in a circle.
"""

from __future__ import annotations

import dataclasses
import itertools
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadPlan, ReadItem

from penstock.errors import CorruptError, InvalidArgumentError
from penstock.torch.dcp._metadata import failed

#: The part of the checkpoint that an item wants: name, the chunk's offset, and the box in it.
Key = tuple[str, tuple[int, ...] | None, tuple[int, ...], tuple[int, ...]]

_SMALL = 1 << 20  # smaller items travel together
_PARCEL = 8 << 20  # up to as much of them
_ALIGNED = 64
_PIECE = 16 << 20
_ROUND = 128 << 20


@dataclasses.dataclass(frozen=True)
class Offer:
    """What a rank tells the coordinator beside its plan."""

    save_id: str | None
    places: dict[Key, int]  # a hash of where each item of the plan lies
    broadcast: str


@dataclasses.dataclass(frozen=True)
class Parcel:
    """Items that one rank reads for several: the first of `ranks` does."""

    ranks: tuple[int, ...]
    keys: tuple[Key, ...]
    sizes: tuple[int, ...]  # in bytes, of each key

    @property
    def starts(self) -> tuple[int, ...]:
        """Where the bytes of each key begin in the parcel."""
        return tuple(itertools.accumulate((-(-size // _ALIGNED) * _ALIGNED for size in self.sizes[:-1]), initial=0))

    @property
    def nbytes(self) -> int:
        return self.starts[-1] + self.sizes[-1]


@dataclasses.dataclass(frozen=True)
class Assignment:
    """What the coordinator tells a rank beside its plan."""

    rank: int
    parcels: tuple[Parcel, ...] = ()


def key_of(item: ReadItem) -> Key:
    index = item.storage_index
    offset = None if index.offset is None else tuple(index.offset)
    return index.fqn, offset, tuple(item.storage_offsets), tuple(item.lengths)


def _place(metadata: Metadata, index: MetadataIndex) -> int:
    return zlib.crc32(repr(metadata.storage_data.get(index)).encode("utf-8", "surrogatepass"))


def offer(plan: LoadPlan, metadata: Metadata, broadcast: str) -> Offer:
    places = {key_of(item): _place(metadata, item.storage_index) for item in plan.items}
    return Offer(getattr(metadata.storage_meta, "save_id", None), places, broadcast)


def assign(plans: list[LoadPlan], metadata: Metadata, path: str, share: bool) -> list[LoadPlan]:
    """The plans with an Assignment each. CorruptError where ranks read different checkpoints. Plans are left as they
    are where the planner has made them anew, without what the reader has put in."""
    if not all(isinstance(plan.storage_data, Offer) for plan in plans):
        return plans
    _require_agreement(plans, metadata, path)
    parcels = tuple(_parcels(plans, metadata)) if share else ()
    return [dataclasses.replace(plan, storage_data=Assignment(rank, parcels)) for rank, plan in enumerate(plans)]


def _require_agreement(plans: list[LoadPlan], metadata: Metadata, path: str) -> None:
    save_id = getattr(metadata.storage_meta, "save_id", None)
    first = plans[0].storage_data
    for rank, plan in enumerate(plans):
        told = plan.storage_data
        if told.broadcast != first.broadcast:
            message = f"rank {rank} reads with other options than rank 0; give all ranks the same StorageReader"
            raise failed(InvalidArgumentError, message, path)
        for item in plan.items:
            place = _place(metadata, item.storage_index)
            if told.places.get(key_of(item), place) != place:
                found = metadata.storage_data.get(item.storage_index)
                where = "nowhere" if found is None else f"in {found.relative_path!r} at byte {found.offset}"
                raise failed(
                    CorruptError,
                    f"rank {rank} finds it elsewhere than rank 0, which finds it {where}: the ranks read different "
                    "checkpoints; give all of them the same folder",
                    path,
                    item.storage_index.fqn,
                )
        if told.save_id != save_id:
            message = (
                f"rank {rank} reads save {told.save_id} and rank 0 reads save {save_id} of the checkpoint; copy the "
                "folder again to the machine that has the old one"
            )
            raise failed(CorruptError, message, path)


def size_of(item: ReadItem, metadata: Metadata) -> int:
    described = metadata.state_dict_metadata.get(item.storage_index.fqn)
    if isinstance(described, TensorStorageMetadata):
        return torch.Size(item.lengths).numel() * described.properties.dtype.itemsize
    return int(metadata.storage_data[item.storage_index].length)


def _parcels(plans: list[LoadPlan], metadata: Metadata) -> list[Parcel]:
    sizes: dict[Key, int] = {}
    wanted: dict[Key, set[int]] = defaultdict(set)
    for rank, plan in enumerate(plans):
        for item in plan.items:
            key = key_of(item)
            wanted[key].add(rank)
            sizes[key] = size_of(item, metadata)
    load = [0] * len(plans)  # bytes that each rank reads
    by_ranks: dict[tuple[int, ...], list[Key]] = defaultdict(list)
    for key, ranks in wanted.items():
        if len(ranks) == 1:
            load[next(iter(ranks))] += sizes[key]
        elif sizes[key] > 0:
            by_ranks[tuple(sorted(ranks))].append(key)
    bundles = [(ranks, keys) for ranks, all_keys in by_ranks.items() for keys in _bundled(all_keys, sizes)]
    parcels = [Parcel(ranks, tuple(keys), tuple(sizes[key] for key in keys)) for ranks, keys in bundles]
    out: list[tuple[int, Parcel]] = []
    turns = [0] * len(plans)
    for parcel in sorted(parcels, key=lambda each: -each.nbytes):
        reader = min(parcel.ranks, key=lambda rank: load[rank])
        load[reader] += parcel.nbytes
        at = parcel.ranks.index(reader)
        chain = parcel.ranks[at:] + parcel.ranks[:at]
        out.append((turns[reader], dataclasses.replace(parcel, ranks=chain)))
        turns[reader] += 1
    out.sort(key=lambda each: (each[0], each[1].ranks[0]))  # readers take turns, so that all of them send at once
    return [parcel for _, parcel in out]


def _bundled(keys: Iterable[Key], sizes: dict[Key, int]) -> list[list[Key]]:
    """Small items together, large ones alone."""
    out: list[list[Key]] = []
    small: list[Key] = []
    held = 0
    for key in keys:
        if sizes[key] >= _SMALL:
            out.append([key])
            continue
        if held + sizes[key] > _PARCEL:
            out.append(small)
            small, held = [], 0
        small.append(key)
        held += sizes[key]
    return [*out, small] if small else out


def rounds(parcels: Sequence[Parcel]) -> list[list[Parcel]]:
    """Parcels that are read before any of them is sent. Two rounds may have to be held in memory."""
    out: list[list[Parcel]] = []
    held = _ROUND
    for parcel in parcels:
        if held + parcel.nbytes > _ROUND:
            out.append([])
            held = 0
        out[-1].append(parcel)
        held += parcel.nbytes
    return out


def transfer(parcels: Sequence[tuple[Parcel, torch.Tensor]], rank: int, group: dist.ProcessGroup | None) -> None:
    """Sends and receives the bytes of parcels, which are all those that this rank has a part in, in the order of all
    ranks. The tensors are contiguous bytes of the host: full where this rank is the reader, filled where not."""
    sends: list[Any] = []
    for parcel, memory in parcels:
        at = parcel.ranks.index(rank)
        before = _peer(parcel, at - 1, group) if at > 0 else None
        behind = _peer(parcel, at + 1, group) if at + 1 < len(parcel.ranks) else None
        earlier, sends = sends, []
        for piece in memory.split(_PIECE):
            if before is not None:
                dist.recv(piece, src=before, group=group)
            if behind is not None:
                sends.append(dist.isend(piece, dst=behind, group=group))
        for send in earlier:
            send.wait()
    for send in sends:
        send.wait()


def _peer(parcel: Parcel, at: int, group: dist.ProcessGroup | None) -> int:
    rank = parcel.ranks[at]
    return rank if group is None else dist.get_global_rank(group, rank)
