"""What the processes of torch's loader report of their datasets' states, and how they get a state to go on from.

torch has no way back from a worker except its batches. So each batch is sent with the state of the dataset, and of its
iterator, in the worker that made it. Workers that stay for the next epoch also send the state behind the end, with an
empty batch. For this, objects of this module are sent to the workers in the place of dataset, `collate_fn` and
`worker_init_fn`; `get_worker_info()` still has the program's own dataset.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch.utils.data as torch_data
from torch.utils.data import get_worker_info
from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

from penstock.torch._private import pin_memory
from penstock.torch.loader._random_states import process_state, put_process_state


class WorkerState(NamedTuple):
    """The state of a worker's dataset, with None for each part that has none.

    `ended`: the iterator gave its last sample. `over`: the dataset is as it was behind the end of
    an epoch; another epoch begins from there, with `random` in the process's generators.
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
    """A copy of the object's state, because many objects give their own parts and go on changing them."""
    return copy.deepcopy(thing.state_dict()) if has_state(thing) else None


def load_state(thing: Any, state: Any) -> None:
    """Gives the object a copy of the state, because some keep what they are given. Does nothing without a state."""
    if state is not None and has_state(thing):
        thing.load_state_dict(copy.deepcopy(state))


class Reported:
    """A batch, with the state of its worker's dataset behind it. `is_empty`: there is no batch, only the end of an
    epoch.

    The state is pickled at once. The queue pickles later, in a thread of its own, when the dataset may have gone on.
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
    """What the loader's dataset and functions are replaced by so that workers report; None where
    there is nothing to report. `stay`: the workers live on into the next epoch."""
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
    """An empty sample behind the last one of an epoch."""


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
        """The states of the dataset and its iterator. A dataset that is its own iterator is asked once."""
        dataset = None if self.iterator is self.dataset else _uncopied(self.dataset)
        return WorkerState(dataset, _uncopied(self.iterator), self.ended)


class _Following:
    """The iterator of a tracked dataset, which notes when it ends."""

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
    """A `worker_init_fn` that calls the program's own and then loads the dataset's state."""

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
    """A `collate_fn` that calls the program's own and adds the state."""

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
