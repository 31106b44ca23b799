"""torch's own iterators, for datasets that only Python reads, with what it takes to know where they stand.

They are subclasses of torch's iterators that count batches. A loader that resumes runs its sampler again. Iterable
datasets, and those with `state_dict` and `load_state_dict` of their own (or of their iterator), go on from these
states, as torchdata's StatefulDataLoader does: without workers from the state in this process, otherwise from those
that the workers report (`_worker_states.py`). An iterable dataset without states is iterated again from its beginning.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.data as torch_data

from penstock._batches.functions import not_an_end
from penstock._text import plural
from penstock.torch._private import MultiProcessingDataLoaderIter, SingleProcessDataLoaderIter, is_profiler_enabled
from penstock.torch._samples import to_device
from penstock.torch.datasets._stream import Stream
from penstock.torch.loader._drawn import Drawn
from penstock.torch.loader._order import Generators
from penstock.torch.loader._position import Position, draw_base_seed
from penstock.torch.loader._progress import Progress
from penstock.torch.loader._settings import settings_of
from penstock.torch.loader._worker_reports import OfWorkers, Places
from penstock.torch.loader._worker_states import Reported, WorkerState, has_state, load_state, reporting, state_of

_NO_BATCH = object()  # what stands for the end of an epoch that a worker tells of


def iterator_of(loader: torch_data.DataLoader[Any], resume: Position | None) -> Any:
    """The iterator of an epoch that begins now, or goes on. `loader` is a copy for the iterator
    alone, which it may change."""
    kind = _WithWorkers if loader.num_workers > 0 else _Alone
    if type(loader.dataset) is Stream and loader.batch_size is not None:
        vars(loader)["dataset"] = loader.dataset._in_batches(loader.batch_size)
    if resume is None:
        return kind(loader, Position.now(settings_of(loader)), None)
    _require_workers(loader, resume)
    if not resume.begun:
        resume.settle(settings_of(loader))
        _load_dataset(loader, resume)
        begin = Position.now(settings_of(loader), draws_seed=resume.draws_seed)
        if resume.draws_seed:
            return kind(loader, begin, None)
        vars(loader)["_given_indices"] = _Given(loader._index_sampler, None)
        return kind(loader, begin, resume)
    if isinstance(loader.dataset, torch_data.IterableDataset):
        return _goes_on(loader, resume, kind)
    indices, sums = resume.restore(settings_of(loader))
    _load_dataset(loader, resume)
    vars(loader)["_given_indices"] = _Given(loader._index_sampler, indices)
    vars(loader)["_sums"] = sums
    return kind(loader, resume, resume)


def before_first(dataset: Any) -> dict[str, Any]:
    """What is known before the first epoch. A dataset that is its own iterator has no state before it is begun."""
    return {} if callable(getattr(dataset, "__next__", None)) else {"dataset": state_of(dataset)}


def _require_workers(loader: torch_data.DataLoader[Any], resume: Position) -> None:
    """ValueError where the state needs the datasets of another number of worker processes than this loader has."""
    python = resume.python or {}
    workers = python.get("num_workers", 0)
    if workers == loader.num_workers:
        return
    iterable = isinstance(loader.dataset, torch_data.IterableDataset)
    if (iterable and resume.begun and resume.batch > 0) or python.get("workers"):
        raise ValueError(
            f"the state is one of {plural(workers, 'worker')}, but this loader has {loader.num_workers}, "
            + ("among which an iterable dataset is parted otherwise" if iterable else "and each has a dataset's state")
            + "; go on with the same num_workers, or from before the first epoch"
        )


def _goes_on(loader: torch_data.DataLoader[Any], resume: Position, kind: Any) -> Any:
    """The iterator of an iterable dataset that goes on: from the dataset's state, or by taking its samples again under
    the generators that the epoch began with."""
    python = resume.python or {}
    states = [WorkerState(*state) for state in python.get("workers", ())]
    known = any(state.is_known for state in [WorkerState(python.get("dataset"), python.get("iterator")), *states])
    generators, later = Generators(settings_of(loader)), {"torch": torch.get_rng_state(), **(resume.later or {})}
    if not known:
        own = loader.generator is not None
        generators.put({"torch": resume.torch_random if own else resume.random})
        if resume.draws_seed and not own:
            draw_base_seed(None)
    try:
        _load_dataset(loader, resume)
        iterator = kind(loader, resume if known else resume.before(), resume)
        if not known:
            iterator._go_through(resume)
        elif kind is _Alone:
            iterator._put(python)
    finally:
        generators.put(later)
    return iterator


def _load_dataset(loader: torch_data.DataLoader[Any], resume: Position) -> None:
    """Gives this process's dataset its state. A dataset that is its own iterator takes it after it was begun."""
    python = resume.python or {}
    load_state(loader.dataset, python.get("dataset"))
    if not resume.begun and python.get("iterator") is not None and has_state(loader.dataset):
        load_state(iter(loader.dataset), python["iterator"])


class _Given:
    """An index sampler whose iterator is already under way.

    With None the iterator is made when it is asked for the second time: torch's constructor asks twice where there are
    workers, and once for each further epoch of persistent ones.
    """

    def __init__(self, sampler: Any, indices: Iterator[Any] | None) -> None:
        self.sampler = sampler
        self._indices = indices
        self._asked = False

    def __iter__(self) -> Iterator[Any]:
        if self._indices is not None:
            return self._indices
        asked, self._asked = self._asked, True
        return iter(self.sampler) if asked else iter(())

    def __len__(self) -> int:
        return len(self.sampler)


class _Counting:
    """What both of torch's iterators get: a count of batches, a lock, because several threads may take from one, and
    what becomes of a batch, which no generator behind them does, because the first error would end that."""

    _index_sampler: Any
    _num_yielded: int
    _IterableDataset_len_called: int | None

    def __init__(self, loader: torch_data.DataLoader[Any], begin: Position, resume: Position | None) -> None:
        self._one_at_a_time = threading.RLock()
        self._kept_seed = None if resume is None else (resume.python or {}).get("base_seed")
        self.progress = Progress(begin, vars(loader).get("_sums") or Drawn.of(settings_of(loader)))
        self._place_by(loader)
        if resume is not None:  # what torch's constructor draws was drawn before the state was taken
            vars(loader).update(generator=torch.Generator())
        super().__init__(loader)  # type: ignore[call-arg]
        if isinstance(self._index_sampler, _Given):
            self._index_sampler = self._index_sampler.sampler
        self._num_yielded = begin.batch

    def _place_by(self, loader: Any) -> None:
        """Takes over what becomes of batches, which may be set between epochs."""
        self._device = loader.device
        self._dealing = loader._dealing if loader._dealing is not None and loader._dealing.masks else None

    @property
    def _base_seed(self) -> int:
        return self._seed

    @_base_seed.setter
    def _base_seed(self, drawn: int) -> None:
        self._seed = drawn if self._kept_seed is None else self._kept_seed

    def _next_index(self) -> Any:
        try:
            index = super()._next_index()  # type: ignore[misc]
        except StopIteration:
            self.progress.ended = True
            raise
        self.progress.drawn += 1
        self.progress.sums.add(index)
        return index

    def __next__(self) -> Any:
        with self._one_at_a_time:
            try:
                # torch's own step labels the batch for a profiler, a fifth of a small batch's time, and holds an
                # iterable dataset against its length, where that was asked for. With neither, take the batch.
                if self._IterableDataset_len_called is None and not is_profiler_enabled():
                    data = self._next_data()  # type: ignore[attr-defined]
                    self._num_yielded += 1
                else:
                    data = super().__next__()  # type: ignore[misc]
            except StopIteration:
                self.progress.finished = True
                raise
            if self._dealing is not None:
                data = data, self._dealing.mask(self.progress.given - 1)
            return data if self._device is None else to_device(data, self._device)

    def _go_through(self, resume: Position) -> None:
        """Takes the samples again that were taken before the state was."""
        while self.progress.given < resume.batch:
            given = self.progress.given
            try:
                self._skip(resume)
            except StopIteration:
                raise ValueError(
                    f"the state stands after batch {resume.batch}, but the dataset gives fewer; go on with the one "
                    "that it was taken from"
                ) from None
            except Exception:
                if self.progress.given == given:  # else it is that of a batch, which was raised before
                    raise
        self._num_yielded = resume.batch

    def _skip(self, resume: Position) -> None:
        self._next_data()  # type: ignore[attr-defined]


class _Alone(_Counting, SingleProcessDataLoaderIter):  # type: ignore[misc]
    """torch's iterator without workers."""

    def __init__(self, loader: torch_data.DataLoader[Any], begin: Position, resume: Position | None) -> None:
        super().__init__(loader, begin, resume)
        self.progress.python = _OfFetcher(self._dataset_fetcher, self._seed)

    def _put(self, python: dict[str, Any]) -> None:
        """Gives the dataset's iterator its state."""
        fetcher: Any = self._dataset_fetcher
        load_state(fetcher.dataset_iter, python.get("iterator"))
        fetcher.ended = bool(python.get("ended"))

    def _next_data(self) -> Any:
        drawn = self.progress.drawn
        try:
            data = super()._next_data()  # type: ignore[no-untyped-call]
        except Exception as error:
            is_end = isinstance(error, StopIteration) and (
                drawn == self.progress.drawn or isinstance(self._dataset, torch_data.IterableDataset)
            )
            if is_end:
                raise
            self.progress.given += self.progress.drawn - drawn  # an error belongs to its batch
            if isinstance(error, StopIteration):
                raise not_an_end(error, f"batch {drawn}") from error
            raise
        self.progress.given += 1
        return data


class _OfFetcher:
    """What is known without workers. It holds no reference to the iterator, so that the loader may keep it."""

    def __init__(self, fetcher: Any, seed: int) -> None:
        self._fetcher = fetcher
        self._seed = seed

    def __call__(self, finished: bool) -> dict[str, Any]:
        out: dict[str, Any] = {"base_seed": self._seed}
        dataset, iterator = self._fetcher.dataset, getattr(self._fetcher, "dataset_iter", None)
        if iterator is not dataset:  # which is told once
            out["dataset"] = state_of(dataset)
        if iterator is dataset or not finished:
            out["iterator"] = state_of(iterator)
            out["ended"] = not finished and getattr(self._fetcher, "ended", False)
        return out


class _WithWorkers(_Counting, MultiProcessingDataLoaderIter):  # type: ignore[misc]
    """torch's iterator with worker processes."""

    def __init__(self, loader: torch_data.DataLoader[Any], begin: Position, resume: Position | None) -> None:
        loader.check_worker_number_rationality()
        python = {} if resume is None else resume.python or {}
        states = [WorkerState(*state) for state in python.get("workers", ())] or [WorkerState()] * loader.num_workers
        self._told = OfWorkers(states, python.get("last_worker", loader.num_workers - 1), loader)
        self._turns_left = (self._told.last + 1) % loader.num_workers  # until that of the worker whose batch is next
        self._places = Places(begin) if not (loader.in_order or self._told.iterable) else None
        self._ahead: deque[tuple[int, Any]] = deque()
        dataset = loader.dataset
        replaced = reporting(
            dataset,
            loader.collate_fn,
            loader.worker_init_fn,
            states,
            drops_last=loader.drop_last,
            stay=loader.persistent_workers,
        )
        vars(loader).update(replaced or {})
        super().__init__(loader, begin, resume)
        self._dataset = dataset
        self._told.seed = self._seed
        self.progress.python = self._told
        self._note_pending()

    def _reset(self, loader: torch_data.DataLoader[Any], first_iter: bool = False) -> None:
        if not first_iter:  # which draws no base seed
            self._place_by(loader)
            told = self._told
            states = told.behind() if self.progress.finished else [WorkerState()] * self._num_workers
            self._told = OfWorkers(states, self._num_workers - 1, loader, told.seed)
            settings = settings_of(loader)
            self.progress = Progress(Position.now(settings, draws_seed=False), Drawn.of(settings))
            self.progress.python = self._told
            self._ahead.clear()
            self._places = self._places and Places()
        super()._reset(loader, first_iter)
        if not first_iter:
            self._note_pending()

    def __next__(self) -> Any:
        try:
            return super().__next__()
        finally:
            self._note_pending()

    def _note_pending(self) -> None:
        if self._places is not None:
            self.progress.pending = self._places.of(self._task_info)

    def _try_put_index(self) -> None:
        while self._turns_left > 0:
            self._turns_left -= 1
            next(self._worker_queue_idx_cycle)
        super()._try_put_index()

    def _next_data(self) -> Any:
        worker, data = self._ahead.popleft() if self._ahead else self._received()
        self._count(worker)
        return data

    def _count(self, worker: int) -> None:
        self.progress.given += 1
        self._told.given[worker] += 1
        self._told.last = worker

    def _received(self) -> tuple[int, Any]:
        """The next batch, and the number of the worker that made it."""
        data = _NO_BATCH
        while data is _NO_BATCH:
            data = super()._next_data()  # type: ignore[no-untyped-call]
        return self._came_from, data

    def _process_data(self, data: Any, worker: int) -> Any:
        self._came_from = worker
        if isinstance(data, Reported):
            self._told.hear(data)
            data = _NO_BATCH if data.is_empty else data.batch
        try:
            return super()._process_data(data, worker)  # type: ignore[no-untyped-call]
        except Exception as error:
            self._count(worker)  # an error belongs to its batch
            traceback.clear_frames(error.__traceback__)  # torch's: they lead back to the error, and to the workers
            if isinstance(error, StopIteration):
                raise not_an_end(error) from error
            raise

    def _skip(self, resume: Position) -> None:
        """Drops a batch that was taken before the state was. Where batches came in the order in which they were ready,
        as many of each worker's batches are dropped as it had given, in whatever order they come now."""
        given = (resume.python or {}).get("given")
        worker, data = self._received()
        if given is None or self._told.given[worker] < given[worker]:
            self._count(worker)
        else:
            self._ahead.append((worker, data))
