"""One pass of penstock.torch.DataLoader over a Penstock dataset."""

from __future__ import annotations

import operator
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter

import penstock
from penstock.torch._convert import batch_to_torch, sample_to_torch
from penstock.torch._position import Position, draw_base_seed
from penstock.torch._reads import Read, Reads, timed_out
from penstock.torch._samples import named, to_device

if TYPE_CHECKING:
    from penstock.torch.loader import DataLoader

__all__ = ["Iteration"]


class Iteration(_BaseDataLoaderIter):
    """The iterator that `iter(loader)` gives: torch's base class for isinstance and for the names that its users know.

    Indices are drawn from the sampler when torch draws them: `prefetch_factor * num_workers` batches ahead, or when a
    batch is asked for without workers. So endless samplers work, and a generator that is shared with other code has the
    state that torch would leave it in.
    """

    def __init__(self, loader: DataLoader[Any], resume: Position | None) -> None:
        self._loader = loader
        self._pool: ThreadPoolExecutor | None = None
        self._working: deque[Future[Any]] = deque()
        self._start(loader, resume, draws_seed=True)
        if not self._reads.on_device:
            _warn_of_pinning(loader)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False, resume: Position | None = None) -> None:
        """Begins the next epoch, as the iterator of persistent workers does; no new base seed is drawn."""
        self._stop()
        self._start(loader, resume, draws_seed=False)

    def _start(self, loader: DataLoader[Any], resume: Position | None, *, draws_seed: bool) -> None:
        self._dataset = loader.dataset
        self._num_workers = operator.index(loader.num_workers) if loader.num_workers else 0
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._auto_collation = loader._auto_collation
        self._draws_seed = draws_seed
        self._num_yielded = 0
        self._pins = loader.pin_memory and torch.accelerator.is_available()
        self._index_sampler = loader._index_sampler
        self._reads = Reads(loader)
        if resume is None:
            self._begin = Position.now(loader, draws_seed=draws_seed)
            self._sampler_iter = iter(self._index_sampler)
            if draws_seed:
                self._base_seed = draw_base_seed(loader.generator)
        else:
            self._begin = resume
            self._sampler_iter = self._resumed(resume)
        self._reads.begin(self._sampler_iter, 0 if resume is None else resume.batch)
        if self._num_workers == 0 and self._timeout != 0:
            raise AssertionError(f"timeout={self._timeout} needs num_workers > 0; leave it out without")

    def _resumed(self, resume: Position) -> Iterator[Any]:
        for entry in resume.set_aside:
            self._loader._set_aside.add(*entry)
        indices, complete = resume.restore(self._loader)
        if not complete:
            raise ValueError(
                f"the state stands after batch {resume.batch}, but the epoch has fewer; go on with the same "
                "batch_size, drop_last and sampler"
            )
        return indices

    def _stop(self) -> None:
        for work in self._working:
            work.cancel()
        self._working.clear()
        self._reads.close()

    def __iter__(self) -> Iteration:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        if not torch._C._autograd._profiler_enabled():
            return self._next()
        with torch.autograd.profiler.record_function(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
            return self._next()

    def _next(self) -> Any:
        loader = self._loader
        if loader._mapped is None:
            value = self._finish(self._reads.next())
        elif self._num_workers == 0:
            value = self._work(self._reads.next())
        else:
            value = self._next_mapped()
        self._num_yielded += 1
        if self._reads.on_device:
            return value
        if self._pins:
            value = pin_memory(value)
        return value if loader.device is None else to_device(value, loader.device)

    def position(self) -> Position:
        """After the last batch that was given; at the beginning of the next epoch after the last of this one."""
        if self._reads.finished:
            return Position.now(self._loader, draws_seed=not self._loader.persistent_workers)
        return self._begin.after(self._reads.taken - len(self._working), self._loader.set_aside)

    def stats(self) -> dict[str, Any]:
        return self._reads.stats()

    # Making what the user gets.

    def _finish(self, read: Read) -> Any:
        if not read.apart:
            return batch_to_torch(read.value)
        samples = sample_to_torch(read.value)
        return self._collate_fn(samples[0] if self._reads.whole and not self._reads.bulk else samples)

    def _work(self, read: Read) -> Any:
        mapped = self._loader._mapped
        assert mapped is not None
        if mapped.batched:
            return self._call(read.indices, self._finish(read))
        pairs = zip(read.indices, read.value, strict=True)
        samples = [self._call([index], sample_to_torch(sample)) for index, sample in pairs]
        return self._collate_fn(samples[0] if self._reads.whole else samples)

    def _call(self, indices: list[int], argument: Any) -> Any:
        mapped = self._loader._mapped
        assert mapped is not None
        try:
            return mapped.function(argument)
        except Exception as error:
            if not indices:
                raise
            first = f"sample {indices[0]}: {self._reads.describe(indices[0])}"
            where = first if len(indices) == 1 else f"a batch of {len(indices)} samples that begins with {first}"
            other = named(error, where)
            if other is error:
                raise
            raise other from error

    def _next_mapped(self) -> Any:
        """Keeps as many calls under way as there are workers; their results come in order."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._num_workers, "penstock-map")
        while not self._reads.finished and len(self._working) <= self._num_workers:
            try:
                read = self._reads.next()
            except StopIteration:
                break
            except penstock.TimedOutError:
                if not self._working:
                    raise
                break
            except penstock.Error as error:
                failed: Future[Any] = Future()
                failed.set_exception(error)
                self._working.append(failed)
                continue
            self._working.append(self._pool.submit(self._work, read))
        if not self._working:
            self._pool.shutdown(wait=False)
            self._pool = None
            raise StopIteration
        first = self._working[0]
        wait([first], self._timeout or None)
        if not first.done():
            raise timed_out(self._timeout)
        return self._working.popleft().result()

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)  # type: ignore[union-attr]


def _warn_of_pinning(loader: DataLoader[Any]) -> None:
    """As torch does for each new iterator."""
    if not loader.pin_memory:
        return
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=4,
        )
    if not torch.accelerator.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
            "used.",
            stacklevel=4,
        )
