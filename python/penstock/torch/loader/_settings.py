"""What a loader was told, as it is when an iteration begins.

Users may set a loader's attributes between epochs, and an iterator must neither follow that nor keep the loader alive.
So iterators, positions and readers get this copy and do not know the loader.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import torch
import torch.utils.data as torch_data

import penstock
from penstock.torch.datasets._road import Functions
from penstock.torch.loader._dealing import Dealing
from penstock.torch.loader._set_aside import SetAside


class Settings(NamedTuple):
    """The arguments of `DataLoader` by their names there, and what follows from them.

    `native`: what C++ reads, or None where torch's own loader has the dataset. `functions`: what Python does with the
    samples then. `index_sampler`: gives a list of indices for each batch, or an index for each sample where there are
    no batches (`batches` is False). `set_aside` is shared with the loader, which keeps it from epoch to epoch.
    `dealing`: how `ranks` share the order. `warned`: which warnings the loader has given, which it keeps too.
    `processes`: who calls Python's functions where worker processes do (`_processes.py`), or None.
    """

    dataset: Any
    native: penstock.Dataset | None
    functions: Functions | None
    batch_size: int | None
    sampler: Any
    batch_sampler: Any
    index_sampler: Any
    batches: bool
    num_workers: int
    collate_fn: Any
    pin_memory: bool
    pin_memory_device: str
    timeout: float
    generator: torch.Generator | None
    prefetch_factor: int | None
    persistent_workers: bool
    device: torch.device | None
    on_error: str
    memory_budget: int | None
    set_aside: SetAside
    dealing: Dealing | None
    warned: set[str]
    processes: Any


def drawn_from(settings: Settings) -> Iterator[Any]:
    """What the index sampler gives. Where C++ reads, batches in the order of the samples are ranges, which have no
    object for each index; the program's datasets get lists."""
    batches = settings.index_sampler
    in_order = type(batches) is torch_data.BatchSampler and type(batches.sampler) is torch_data.SequentialSampler
    is_ours = settings.native is not None and settings.batches
    return _ranges(batches) if in_order and is_ours else iter(batches)


def _ranges(batches: torch_data.BatchSampler) -> Iterator[range]:
    """No generator, which a signal's handler would end."""
    end, each = len(batches.sampler), batches.batch_size  # type: ignore[arg-type]
    if batches.drop_last:
        end -= end % each
    return map(range, range(0, end, each), chain(range(each, end, each), (end,)))


# What the loader, or torch's class that it derives from, keeps under another name.
_KEPT = {name: f"_{name}" for name in ("functions", "index_sampler", "set_aside", "dealing", "warned")}
_KEPT["batches"] = "_auto_collation"
_of_loader = operator.attrgetter(*(_KEPT.get(name, name) for name in Settings._fields if name != "processes"))


def settings_of(loader: Any, processes: Any = None) -> Settings:
    """The settings of a `penstock.torch.DataLoader` as they are now; `processes`: for an iteration that has some."""
    return Settings._make((*_of_loader(loader), processes))
