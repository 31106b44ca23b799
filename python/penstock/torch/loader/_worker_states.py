"""What the processes of torch's loader tell of their datasets' states, and are told of those where they go on.

Each batch comes with the state of the dataset that gave it, in the worker that made it, and of its iterator: torch has
no other way back from there. Workers that stay for the next epoch send the state behind the end as well, with a batch
of nothing. These objects are sent to the workers in the place of dataset, `collate_fn` and `worker_init_fn`, which find
the program's own dataset in `get_worker_info()` as ever.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch.utils.data as torch_data
from torch.utils.data import get_worker_info
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

from penstock.torch.loader._random_states import process_state, put_process_state

__all__ = ["Reported", "WorkerState", "has_state", "load_state", "reporting", "state_of"]


class WorkerState(NamedTuple):
    """None where there is none.

    `ended`: the iterator gave its last sample. `over`: the dataset is as it was behind the end of an epoch, and begins
    another one from there, with `random` in the process's generators.
    """

    dataset: Any = None
    iterator: Any = None
    ended: bool = False
    over: bool = False
    random: dict[str, Any] | None = None

    @property
    def is_known(self) -> bool:
        return self.dataset is not None or self.iterator is not None


def has_state(thing: Any) -> bool:
    return callable(getattr(thing, "state_dict", None)) and callable(getattr(thing, "load_state_dict", None))


def state_of(thing: Any) -> Any:
    """A copy: many give their own parts, which they go on changing."""
    return copy.deepcopy(thing.state_dict()) if has_state(thing) else None


def load_state(thing: Any, state: Any) -> None:
    """A copy of it, for those who keep what they are given; nothing where there is none."""
    if state is not None and has_state(thing):
        thing.load_state_dict(copy.deepcopy(state))


class Reported:
    """A batch, and what its worker's dataset was like behind it; `is_empty`: no batch, but the end of an epoch.

    The state is pickled at once: the queue pickles later, in a thread of its own, when the dataset may have gone on.
    """

    def __init__(self, batch: Any, worker: int, pickled: bytes, *, is_empty: bool = False) -> None:
        self.batch = batch
        self.worker = worker
        self.is_empty = is_empty
        self._pickled = pickled

    def state(self) -> WorkerState:
        return WorkerState(*pickle.loads(self._pickled))  # our own worker's

    def pin_memory(self) -> Reported:
        return Reported(pin_memory(self.batch), self.worker, self._pickled, is_empty=self.is_empty)


def reporting(
    dataset: Any,
    collate: Callable[[Any], Any],
    start: Callable[[int], None] | None,
    states: list[WorkerState],
    *,
    drops_last: bool,
    stay: bool,
) -> dict[str, Any] | None:
    """What a loader's dataset and functions are to be so that workers report; None where there is nothing to tell.
    `stay`: the workers do, for the next epoch."""
    if isinstance(dataset, (IterDataPipe, MapDataPipe)):
        return None
    if not isinstance(dataset, torch_data.IterableDataset):
        if not has_state(dataset):
            return None
        return {"collate_fn": _Reports(collate, None, drops_last), "worker_init_fn": _Starts(dataset, start, states)}
    tracked = _Tracked(dataset, states, stay)
    return {
        "dataset": tracked,
        "collate_fn": _Reports(collate, tracked, drops_last),
        "worker_init_fn": _Starts(dataset, start, states),
    }


def _state_at(states: list[WorkerState], worker: int) -> WorkerState:
    return states[worker] if worker < len(states) else WorkerState()


class _End:
    """A sample of nothing, behind the last one of an epoch."""


class _Tracked(torch_data.IterableDataset[Any]):
    """An iterable dataset that knows its iterator."""

    def __init__(self, dataset: Any, states: list[WorkerState], stays: bool) -> None:
        self.dataset = dataset
        self.iterator: Any = None
        self.ended = False
        self.tells_end = False
        self._stays = stays
        self._states = states

    def __iter__(self) -> Iterator[Any]:
        self.tells_end = self._stays
        info = get_worker_info()
        states, self._states = self._states, []  # of the first epoch
        state = WorkerState() if info is None else _state_at(states, info.id)
        if state.random is not None:
            put_process_state(state.random)
        self.iterator, self.ended = iter(self.dataset), state.ended
        if not state.over:
            load_state(self.iterator, state.iterator)
        elif self.iterator is self.dataset and state.iterator is not None:  # it stood at its end
            load_state(self.dataset, state.iterator)
            self.iterator = iter(self.dataset)
        return _Following(self)

    def state(self) -> WorkerState:
        """A dataset that is its own iterator is told once."""
        dataset = None if self.iterator is self.dataset else _uncopied(self.dataset)
        return WorkerState(dataset, _uncopied(self.iterator), self.ended)


class _Following:
    """The iterator of a tracked dataset, which tells it of the end."""

    def __init__(self, tracked: _Tracked) -> None:
        self._tracked = tracked

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._tracked.ended:
            try:
                return next(self._tracked.iterator)
            except StopIteration:
                self._tracked.ended = True
        if self._tracked.tells_end:  # until a batch with such a sample is reported
            return _End
        raise StopIteration


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
        load_state(self._dataset, _state_at(self._states, worker).dataset)


class _Reports:
    """`collate_fn`: the program's own, and the state."""

    def __init__(self, collate: Callable[[Any], Any], tracked: _Tracked | None, drops_last: bool) -> None:
        self._collate = collate
        self._tracked = tracked
        self._drops_last = drops_last

    def __call__(self, samples: Any) -> Reported:
        info = get_worker_info()
        assert info is not None
        if self._tracked is None:
            return _reported(self._collate(samples), info.id, WorkerState(_uncopied(info.dataset)))
        given = samples if isinstance(samples, list) else [samples]
        if not given or given[-1] is not _End:
            return _reported(self._collate(samples), info.id, self._tracked.state())
        self._tracked.tells_end = False
        left = [sample for sample in given if sample is not _End]
        state = self._tracked.state()._replace(random=process_state())
        if not left or self._drops_last:
            return _reported(None, info.id, state, is_empty=True)
        return _reported(self._collate(left), info.id, state)


def _uncopied(thing: Any) -> Any:
    return thing.state_dict() if has_state(thing) else None


def _reported(batch: Any, worker: int, state: WorkerState, *, is_empty: bool = False) -> Reported:
    return Reported(batch, worker, pickle.dumps(tuple(state)), is_empty=is_empty)
