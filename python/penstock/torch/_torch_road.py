"""torch's own iterators, for datasets that only Python reads, which know where they stand.

Batches are counted, and a loader that resumes goes through the sampler again. Iterable datasets, and those with
`state_dict` and `load_state_dict` of their own (or of their iterator), go on from their states, as torchdata's
StatefulDataLoader has it: that of this process without workers, else those that the workers tell (`_worker_states.py`).
An iterable dataset without states is gone through again.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.data as torch_data
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

from penstock.torch._position import Generators, Position, draw_base_seed
from penstock.torch._progress import Progress
from penstock.torch._worker_states import Reported, WorkerState, has_state, reporting, state_of

if TYPE_CHECKING:
    from penstock.torch.loader import DataLoader

__all__ = ["iterator_of"]


def iterator_of(loader: DataLoader[Any], resume: Position | None) -> Any:
    """The iterator of an epoch that begins now, or goes on. `loader` is the iterator's own, to be changed."""
    kind = _WithWorkers if loader.num_workers > 0 else _Alone
    if resume is None:
        return kind(loader, Position.now(loader), None)
    if not resume.begun:
        resume.settle(loader)
        _load_dataset(loader, resume)
        return kind(loader, Position.now(loader, draws_seed=resume.draws_seed), None if resume.draws_seed else resume)
    if isinstance(loader.dataset, torch_data.IterableDataset):
        return _goes_on(loader, resume, kind)
    indices, complete = resume.restore(loader)
    if not complete:
        raise ValueError(
            f"the state stands after batch {resume.batch}, but the epoch has fewer; go on with the same "
            "batch_size, drop_last and sampler"
        )
    _load_dataset(loader, resume)
    vars(loader)["_given_indices"] = _Given(loader._index_sampler, indices)
    return kind(loader, resume, resume)


def _goes_on(loader: DataLoader[Any], resume: Position, kind: Any) -> Any:
    """Of an iterable dataset: from its state, or through its samples under the generators of the epoch's beginning."""
    python = resume.python or {}
    workers = python.get("num_workers", 0)
    if resume.batch > 0 and workers != loader.num_workers:
        raise ValueError(
            f"the state is one of {workers} workers, but this loader has {loader.num_workers}, among which an iterable "
            "dataset is parted otherwise; go on with the same num_workers, or from the beginning of an epoch"
        )
    known = any(python.get(name) is not None for name in ("dataset", "iterator")) or bool(python.get("workers"))
    generators, later = Generators(loader), {"torch": torch.get_rng_state(), **(resume.later or {})}
    if not known:
        own = loader.generator is not None
        generators.put({"torch": resume.torch_random if own else resume.random})
        if resume.draws_seed and not own:
            draw_base_seed(None)
    try:
        _load_dataset(loader, resume)
        iterator = kind(loader, resume if known else resume.before(), resume)
        if not known:
            iterator._go_through(resume.batch)
        elif kind is _Alone:
            iterator._put(python)
    finally:
        generators.put(later)
    return iterator


def _load_dataset(loader: DataLoader[Any], resume: Position) -> None:
    state = (resume.python or {}).get("dataset")
    if state is not None and has_state(loader.dataset):
        loader.dataset.load_state_dict(state)  # type: ignore[attr-defined]


class _Given:
    """An index sampler of which an iterator is under way."""

    def __init__(self, sampler: Any, indices: Iterator[Any]) -> None:
        self.sampler = sampler
        self._indices = indices

    def __iter__(self) -> Iterator[Any]:
        return self._indices

    def __len__(self) -> int:
        return len(self.sampler)


class _Counting:
    """What both of torch's iterators get. Several threads may take from one."""

    _index_sampler: Any
    _num_yielded: int

    def __init__(self, loader: DataLoader[Any], begin: Position, resume: Position | None) -> None:
        self._one_at_a_time = threading.RLock()
        self._kept_seed = None if resume is None else (resume.python or {}).get("base_seed")
        self.progress = Progress(begin)
        if resume is not None:  # what torch's constructor draws was drawn before the state was taken
            vars(loader).update(generator=torch.Generator())
        super().__init__(loader)  # type: ignore[call-arg]
        if isinstance(self._index_sampler, _Given):
            self._index_sampler = self._index_sampler.sampler
        self._num_yielded = begin.batch

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
        return index

    def __next__(self) -> Any:
        with self._one_at_a_time:
            try:
                return super().__next__()  # type: ignore[misc]
            except StopIteration:
                self.progress.finished = True
                raise

    def _go_through(self, batches: int) -> None:
        """Samples that were taken before the state was."""
        while self.progress.given < batches:
            try:
                self._next_data()  # type: ignore[attr-defined]
            except StopIteration:
                raise ValueError(
                    f"the state stands after batch {batches}, but the dataset gives fewer; go on with the one that it "
                    "was taken from"
                ) from None
        self._num_yielded = batches


class _Alone(_Counting, _SingleProcessDataLoaderIter):  # type: ignore[misc]
    """Without workers."""

    def __init__(self, loader: DataLoader[Any], begin: Position, resume: Position | None) -> None:
        super().__init__(loader, begin, resume)
        self.progress.python = _OfFetcher(self._dataset_fetcher, self._seed)

    def _put(self, python: dict[str, Any]) -> None:
        """The state of the dataset's iterator."""
        fetcher: Any = self._dataset_fetcher
        if python.get("iterator") is not None and has_state(fetcher.dataset_iter):
            fetcher.dataset_iter.load_state_dict(python["iterator"])
        fetcher.ended = bool(python.get("ended"))

    def _next_data(self) -> Any:
        drawn = self.progress.drawn
        try:
            data = super()._next_data()  # type: ignore[no-untyped-call]
        except StopIteration:
            raise
        except Exception:
            self.progress.given += self.progress.drawn - drawn  # an error belongs to its batch
            raise
        self.progress.given += 1
        return data


class _OfFetcher:
    """What is known without workers; it does not lead back to the iterator."""

    def __init__(self, fetcher: Any, seed: int) -> None:
        self._fetcher = fetcher
        self._seed = seed

    def __call__(self, finished: bool) -> dict[str, Any]:
        out: dict[str, Any] = {"base_seed": self._seed}
        dataset, iterator = self._fetcher.dataset, getattr(self._fetcher, "dataset_iter", None)
        if finished or iterator is not dataset:  # which is told once
            out["dataset"] = state_of(dataset)
        if iterator is not None and not finished:
            out["iterator"], out["ended"] = state_of(iterator), self._fetcher.ended
        return out


class _WithWorkers(_Counting, _MultiProcessingDataLoaderIter):  # type: ignore[misc]
    """With processes."""

    def __init__(self, loader: DataLoader[Any], begin: Position, resume: Position | None) -> None:
        loader.check_worker_number_rationality()
        python = {} if resume is None or not resume.begun else resume.python or {}
        states = [WorkerState(*state) for state in python.get("workers", ())]
        if len(states) != loader.num_workers:
            states = [WorkerState()] * loader.num_workers
        self._told = _OfWorkers(states, python.get("last_worker", loader.num_workers - 1))
        self._turns_left = (self._told.last + 1) % loader.num_workers  # until that of the worker whose batch is next
        dataset = loader.dataset
        vars(loader).update(reporting(dataset, loader.collate_fn, loader.worker_init_fn, states) or {})
        super().__init__(loader, begin, resume)
        self._dataset = dataset
        self._told.seed = self._seed
        self.progress.python = self._told

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        if not first_iter:  # which draws no base seed
            self.progress = Progress(Position.now(loader, draws_seed=False))
            self._told = self.progress.python = _OfWorkers([WorkerState()] * self._num_workers, -1, self._seed)
        super()._reset(loader, first_iter)

    def _try_put_index(self) -> None:
        while self._turns_left > 0:
            self._turns_left -= 1
            next(self._worker_queue_idx_cycle)
        super()._try_put_index()

    def _process_data(self, data: Any, *worker: int) -> Any:
        self.progress.given += 1
        if isinstance(data, Reported):
            self._told.states[data.worker], self._told.last = data.state, data.worker
            data = data.batch
        try:
            return super()._process_data(data, *worker)  # type: ignore[no-untyped-call]
        except Exception as error:
            traceback.clear_frames(error.__traceback__)  # torch's: they lead back to the error, and to the workers
            raise


class _OfWorkers:
    """What workers told with the batches that were taken; it does not lead back to the iterator."""

    def __init__(self, states: list[WorkerState], last: int, seed: int = 0) -> None:
        self.states = list(states)
        self.last = last
        self.seed = seed

    def __call__(self, finished: bool) -> dict[str, Any]:
        out: dict[str, Any] = {"base_seed": self.seed, "num_workers": len(self.states)}
        if not finished and any(state.is_known for state in self.states):
            out["workers"], out["last_worker"] = [tuple(state) for state in self.states], self.last
        return out
