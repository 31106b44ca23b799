"""One pass of penstock.torch.DataLoader over a Penstock dataset."""

from __future__ import annotations

import operator
import warnings
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.utils.data as torch_data
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter

import penstock
from penstock._core import _Feed
from penstock.torch._convert import batch_to_torch, sample_to_torch
from penstock.torch._errors import as_torchs
from penstock.torch._position import Position, draw_base_seed
from penstock.torch._sample_feed import SampleFeed
from penstock.torch._samples import Samples, named, to_device
from penstock.torch.collate import Rule
from penstock.torch.datasets import counted

if TYPE_CHECKING:
    from penstock.torch.loader import DataLoader

__all__ = ["Iteration"]

_STACKED = (torch_data.default_collate,)
# What native collation says of samples that torch may still find a way to stack.
_UNLIKE = (penstock.DTypeMismatchError, penstock.ShapeMismatchError, penstock.UnsupportedError)


class _Read(NamedTuple):
    """A batch as the workers left it: whole, or the list of its samples."""

    indices: list[int]
    value: Any
    apart: bool


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
        if not self._on_device:
            _warn_of_pinning(loader)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False, resume: Position | None = None) -> None:
        """Begins the next epoch, as the iterator of persistent workers does; no new base seed is drawn."""
        self._stop()
        self._start(loader, resume, draws_seed=False)

    def _start(self, loader: DataLoader[Any], resume: Position | None, *, draws_seed: bool) -> None:
        assert loader.native is not None
        self._dataset = loader.dataset
        self._native_dataset = loader.native
        self._num_workers = operator.index(loader.num_workers) if loader.num_workers else 0
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._auto_collation = loader._auto_collation
        self._draws_seed = draws_seed
        self._num_yielded = 0
        self._samples = Samples(loader.dataset if loader._mapped is None else loader._mapped.dataset, loader.native)
        self._one_by_one = False
        self._refusal: Exception | None = None
        self._whole = not loader._auto_collation
        self._collate = self._native_collate()
        self._on_device: bool = self._native and loader._mapped is None and arrives_on_device(loader.device)
        self._pin = not self._on_device and _pins(loader)
        self._bulk = False
        self._index_sampler = loader._index_sampler
        self._feed: _Feed | SampleFeed = self._new_feed(self._num_workers)
        # None: a batch of which nothing is left.
        self._pending: deque[list[int] | None] = deque()
        self._taken = 0
        self._finished = False
        if resume is None:
            self._begin = Position.now(loader, draws_seed=draws_seed)
            self._sampler_iter = iter(self._index_sampler)
            if draws_seed:
                self._base_seed = draw_base_seed(loader.generator)
        else:
            self._begin, self._taken = resume, resume.batch
            self._sampler_iter = self._resumed(resume)
        if self._num_workers > 0:
            self._draw()
        elif self._timeout != 0:
            raise AssertionError(f"timeout={self._timeout} needs num_workers > 0; leave it out without")

    def _stop(self) -> None:
        for work in self._working:
            work.cancel()
        self._working.clear()
        self._feed.close()

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
            value = self._finish(self._next_read())
        elif self._num_workers == 0:
            value = self._work(self._next_read())
        else:
            value = self._next_mapped()
        self._num_yielded += 1
        if self._pin:
            value = pin_memory(value)
        return value if loader.device is None or self._on_device else to_device(value, loader.device)

    def position(self) -> Position:
        """After the last batch that was given; at the beginning of the next epoch after the last of this one."""
        if self._finished:
            return Position.now(self._loader, draws_seed=not self._loader.persistent_workers)
        return self._begin.after(self._taken - len(self._working), self._loader.set_aside)

    def stats(self) -> dict[str, Any]:
        return self._feed.stats()

    # Reading.

    def _new_feed(self, workers: int, collate: penstock.Collate | None = None) -> _Feed | SampleFeed:
        loader = self._loader
        factor = operator.index(loader.prefetch_factor) if workers > 0 and loader.prefetch_factor else 1
        if self._one_by_one:
            return SampleFeed(self._samples, workers, factor, float(self._timeout))
        device = _full_name(loader.device) if self._on_device and collate is None else "cpu"
        budget = loader.memory_budget
        collate, timeout = collate or self._collate, float(self._timeout)
        return _Feed(self._native_dataset, collate, workers, factor, budget, timeout, device)

    def _native_collate(self) -> penstock.Collate:
        """What the workers do: the whole collation where that is ours, else the samples as they are."""
        collate = self._collate_fn
        per_sample = self._loader._mapped is not None and not self._loader._mapped.batched
        self._native = not self._whole and not per_sample
        if self._native and isinstance(collate, (Rule, penstock.Collate)):
            return collate.native if isinstance(collate, Rule) else collate
        self._native = self._native and collate in _STACKED
        return penstock.stack() if self._native else penstock.samples()

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

    def _draw(self) -> None:
        """Asks for batches until as many are under way as torch would have."""
        while len(self._pending) < self._feed.window:
            try:
                drawn = next(self._sampler_iter)
            except StopIteration:
                return
            if self._whole and isinstance(drawn, (list, slice)) != self._bulk:
                self._read_lists(not self._bulk)
            asked = self._checked(drawn)
            indices = self._chosen(asked)
            self._pending.append(indices if indices or not asked else None)
            if indices:
                self._feed.push(indices)

    def _read_lists(self, bulk: bool) -> None:
        """Without batches, a sampler may give lists of indices: each is one sample, that of its stacked rows."""
        if self._pending or self._loader._mapped is not None:
            raise TypeError("found a list where the sampler gives indices; expected one or the other of all samples")
        self._bulk = bulk
        self._collate = penstock.stack() if bulk else penstock.samples()
        self._feed.close()
        self._feed = self._new_feed(self._num_workers)

    def _checked(self, drawn: Any) -> list[int]:
        if self._whole and not self._bulk:
            return [operator.index(drawn)]
        if isinstance(drawn, slice):
            return list(range(len(self._native_dataset))[drawn])
        return [operator.index(one) for one in drawn]

    def _chosen(self, indices: list[int]) -> list[int]:
        """Counted from the front, and without what is known not to be readable."""
        if indices and min(indices) < 0:
            indices = counted(indices, len(self._native_dataset))
        if self._loader._set_aside.any_of(indices):
            return self._repaired(indices)
        return indices

    def _repaired(self, indices: list[int]) -> list[int]:
        set_aside = self._loader._set_aside
        if self._loader.on_error == "skip":
            return set_aside.without(indices)
        return set_aside.replaced(self._samples, indices)

    def _next_read(self) -> _Read:
        while True:
            if self._num_workers == 0:
                self._draw()
            if not self._pending:
                self._finished = True
                raise StopIteration
            indices = self._pending.popleft()
            self._taken += 1
            try:
                value = self._take(indices)
            finally:
                if self._num_workers > 0:
                    self._draw()
            if value is not None:
                return value

    def _take(self, indices: list[int] | None) -> _Read | None:
        """The batch that was asked for first; None when nothing of it is left."""
        if indices is None:
            return None
        if not indices:
            return self._empty()
        try:
            return _Read(indices, self._feed.next(), not self._native)
        except penstock.TimedOutError as error:
            self._pending.appendleft(indices)
            self._taken -= 1
            raise self._timed_out() from error
        except penstock.Error as error:
            other = self._otherwise(indices, error)
            if other is not None:
                return other
            if self._loader.on_error == "raise" or not self._loader._set_aside.try_each(self._samples, indices):
                raise as_torchs(error, self._refusal) from error.__cause__
        return self._again(self._repaired(indices))

    def _empty(self) -> _Read:
        """What the sampler itself gave no samples for."""
        if self._bulk:
            return _Read([], self._samples[[]], True)
        if self._native:
            raise IndexError(
                "the batch sampler gave a batch of no samples, of which nothing can be stacked; leave empty ones out, "
                "or give a collate_fn that takes them"
            )
        return _Read([], [], True)

    def _again(self, indices: list[int]) -> _Read | None:
        if not indices:
            return None
        feed = self._new_feed(0)
        feed.push(indices)
        try:
            return _Read(indices, feed.next(), not self._native)
        except penstock.Error as error:
            other = self._otherwise(indices, error)
            if other is None:
                raise as_torchs(error, self._refusal) from error.__cause__
            return other

    def _otherwise(self, indices: list[int], error: penstock.Error) -> _Read | None:
        """A batch that only torch's own collation stacks, or whose samples only the dataset makes; from here on all
        batches are made so. None where that fails too: the native error names the files.
        """
        stacked = self._native and self._collate_fn in _STACKED
        samples = self._refusal = None
        if stacked and isinstance(error, _UNLIKE):
            samples = self._tried(self._new_feed(0, penstock.samples()), indices)
        if samples is None and not self._one_by_one and isinstance(error, penstock.UnsupportedError):
            if (self._native and not stacked) or self._bulk:
                return None
            samples = self._tried(SampleFeed(self._samples, 0, 1, 0), indices)
            self._one_by_one = samples is not None
        if samples is None:
            return None
        self._go_on_apart()
        return _Read(indices, samples, True)

    def _tried(self, feed: _Feed | SampleFeed, indices: list[int]) -> Any:
        """The samples, where torch stacks those that are to be stacked; else None, and `_refusal` is what it said."""
        try:
            feed.push(indices)
            samples = feed.next()
            if self._native:
                self._collate_fn(sample_to_torch(samples))
        except Exception as refusal:
            self._refusal = refusal.with_traceback(None)
            return None
        return samples

    def _go_on_apart(self) -> None:
        self._collate, self._native, self._on_device = penstock.samples(), False, False
        self._pin = _pins(self._loader)
        self._feed.close()
        self._feed = self._new_feed(self._num_workers)
        for pending in self._pending:
            if pending:
                self._feed.push(pending)

    # Making what the user gets.

    def _finish(self, read: _Read) -> Any:
        if not read.apart:
            return batch_to_torch(read.value)
        samples = sample_to_torch(read.value)
        return self._collate_fn(samples[0] if self._whole and not self._bulk else samples)

    def _work(self, read: _Read) -> Any:
        mapped = self._loader._mapped
        assert mapped is not None
        if mapped.batched:
            return self._call(read.indices, self._finish(read))
        pairs = zip(read.indices, read.value, strict=True)
        samples = [self._call([index], sample_to_torch(sample)) for index, sample in pairs]
        return self._collate_fn(samples[0] if self._whole else samples)

    def _call(self, indices: list[int], argument: Any) -> Any:
        mapped = self._loader._mapped
        assert mapped is not None
        try:
            return mapped.function(argument)
        except Exception as error:
            if not indices:
                raise
            first = f"sample {indices[0]}: {self._native_dataset.describe(indices[0])}"
            where = first if len(indices) == 1 else f"a batch of {len(indices)} samples that begins with {first}"
            other = named(error, where)
            if other is error:
                raise
            raise other from error

    def _next_mapped(self) -> Any:
        """Keeps as many calls under way as there are workers; their results come in order."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._num_workers, "penstock-map")
        while not self._finished and len(self._working) <= self._num_workers:
            try:
                read = self._next_read()
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
            raise self._timed_out()
        return self._working.popleft().result()

    def _timed_out(self) -> Exception:
        from penstock.torch.loader import LoaderTimeoutError

        return LoaderTimeoutError(f"DataLoader timed out after {self._timeout} seconds")

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)  # type: ignore[union-attr]


def arrives_on_device(device: torch.device | None) -> bool:
    """Whether batches are copied there while the next are read, rather than by torch when they are taken."""
    return device is not None and device.type == "cuda" and torch.cuda.is_available() and penstock.is_available()


def _full_name(device: torch.device | None) -> str:
    """With its number: "cuda" alone is torch's current device."""
    assert device is not None
    return f"cuda:{torch.cuda.current_device()}" if device.index is None else str(device)


def _pins(loader: DataLoader[Any]) -> bool:
    return loader.pin_memory and torch.accelerator.is_available()


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
