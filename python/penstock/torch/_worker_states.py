"""What the processes of torch's loader tell of their datasets' states, and are told of those where they go on.

Each batch comes with the state of the dataset that gave it, in the worker that made it, and of its iterator: torch has
no other way back from there. These objects are sent to the workers in the place of dataset, `collate_fn` and
`worker_init_fn`, which find the program's own dataset in `get_worker_info()` as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch.utils.data as torch_data
from torch.utils.data import get_worker_info
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["Reported", "WorkerState", "has_state", "reporting", "state_of"]


class WorkerState(NamedTuple):
    """None where there is none. `ended`: the iterator gave its last sample."""

    dataset: Any = None
    iterator: Any = None
    ended: bool = False

    @property
    def is_known(self) -> bool:
        return self.dataset is not None or self.iterator is not None


def has_state(thing: Any) -> bool:
    return callable(getattr(thing, "state_dict", None)) and callable(getattr(thing, "load_state_dict", None))


def state_of(thing: Any) -> Any:
    return thing.state_dict() if has_state(thing) else None


class Reported:
    """A batch, and what its worker's dataset was like behind it."""

    def __init__(self, batch: Any, worker: int, state: WorkerState) -> None:
        self.batch = batch
        self.worker = worker
        self.state = state

    def pin_memory(self) -> Reported:
        return Reported(pin_memory(self.batch), self.worker, self.state)


def reporting(
    dataset: Any, collate: Callable[[Any], Any], start: Callable[[int], None] | None, states: list[WorkerState]
) -> dict[str, Any] | None:
    """What a loader's dataset and functions are to be so that workers report; None where there is nothing to tell."""
    if isinstance(dataset, (IterDataPipe, MapDataPipe)):
        return None
    if not isinstance(dataset, torch_data.IterableDataset):
        if not has_state(dataset):
            return None
        return {"collate_fn": _Reports(collate, None), "worker_init_fn": _Starts(dataset, start, states)}
    tracked = _Tracked(dataset, states)
    return {
        "dataset": tracked,
        "collate_fn": _Reports(collate, tracked),
        "worker_init_fn": _Starts(dataset, start, states),
    }


def _state_at(states: list[WorkerState], worker: int) -> WorkerState:
    return states[worker] if worker < len(states) else WorkerState()


class _Tracked(torch_data.IterableDataset[Any]):
    """An iterable dataset that knows its iterator."""

    def __init__(self, dataset: Any, states: list[WorkerState]) -> None:
        self.dataset = dataset
        self.iterator: Any = None
        self.ended = False
        self._states = states

    def __iter__(self) -> Iterator[Any]:
        self.iterator, self.ended = iter(self.dataset), False
        info = get_worker_info()
        states, self._states = self._states, []  # of the first epoch
        state = WorkerState() if info is None else _state_at(states, info.id)
        if state.iterator is not None and has_state(self.iterator):
            self.iterator.load_state_dict(state.iterator)
        self.ended = state.ended
        return _Following(self)

    def state(self) -> WorkerState:
        # A dataset that is its own iterator is told once.
        dataset = None if self.iterator is self.dataset else state_of(self.dataset)
        return WorkerState(dataset, state_of(self.iterator), self.ended)


class _Following:
    """The iterator of a tracked dataset, which tells it of the end."""

    def __init__(self, tracked: _Tracked) -> None:
        self._tracked = tracked

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._tracked.ended:
            raise StopIteration
        try:
            return next(self._tracked.iterator)
        except StopIteration:
            self._tracked.ended = True
            raise


class _Starts:
    """`worker_init_fn`: the program's own, then the dataset's state."""

    def __init__(self, dataset: Any, start: Callable[[int], None] | None, states: list[WorkerState]) -> None:
        self._dataset = dataset
        self._start = start
        self._states = states

    def __call__(self, worker: int) -> None:
        info = get_worker_info()
        assert info is not None
        object.__setattr__(info, "dataset", self._dataset)  # which some releases of torch forbid
        if self._start is not None:
            self._start(worker)
        state = _state_at(self._states, worker)
        if state.dataset is not None and has_state(self._dataset):
            self._dataset.load_state_dict(state.dataset)


class _Reports:
    """`collate_fn`: the program's own, and the state."""

    def __init__(self, collate: Callable[[Any], Any], tracked: _Tracked | None) -> None:
        self._collate = collate
        self._tracked = tracked

    def __call__(self, samples: Any) -> Reported:
        info = get_worker_info()
        assert info is not None
        batch = self._collate(samples)
        state = WorkerState(state_of(info.dataset)) if self._tracked is None else self._tracked.state()
        return Reported(batch, info.id, state)
