"""What Python does with a batch between the workers and the user: its collation, and the dataset's functions.

With `num_workers` and functions, `_iteration.py` calls this in threads; otherwise, and where the calls are over before
a thread would have begun, in the thread that takes the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from time import perf_counter
from typing import Any, NoReturn

import torch
import torch.utils.data as torch_data

from penstock.torch._convert import batch_to_torch, in_rows, sample_to_torch
from penstock.torch._shared_parts import bounded
from penstock.torch.collate import Rule
from penstock.torch.datasets._making import Made, Make, batches_of
from penstock.torch.datasets._road import Functions
from penstock.torch.datasets._seeded import here
from penstock.torch.loader._dealing import Dealing
from penstock.torch.loader._feeds import Read
from penstock.torch.loader._located import located_at, of_sample
from penstock.torch.loader._packing import unpacked
from penstock.torch.loader._thread_state import settings_now

TO_CALL: Any = object()  # in the place of a batch for which functions are to be called


class Finish:
    """Collates what was read, where that was not done natively, and calls the dataset's function, if it has one.

    Any number of threads may use it. `seed`: the epoch's, for functions that draw (`_seeded.py`). `describe`: what the
    sample of an index is, for errors; `masks`: beside each batch goes which of its samples are those that were asked
    for, and with a `dealing` that masks, which are not repeated. `in_rows`: batches lie in C order, as in worker
    processes of torch. `at_once`: a dataset that looks its samples up may be asked for a batch of them.
    """

    # Told at which of a batch's samples, counted from 1, the function is, and 0 behind them.
    _note: Callable[[int], None] | None = None

    def __init__(
        self,
        collate_fn: Callable[[Any], Any],
        functions: Functions | None,
        describe: Callable[[int], str],
        *,
        seed: int = 0,
        masks: bool = False,
        dealing: Dealing | None = None,
        in_rows: bool = False,
        at_once: bool = False,
    ) -> None:
        self._in_rows = in_rows and collate_fn is torch_data.default_collate
        self._seed = seed
        self._collate_fn = bounded(collate_fn)
        self._converts = collate_fn is torch_data.default_convert
        self._rule = collate_fn if isinstance(collate_fn, Rule) else None
        self._make = None if functions is None else functions.make
        self._make_all = batches_of(self._make) if at_once else None
        self._function = None if functions is None else functions.batch
        self._describe = describe
        self._masks = masks
        self._dealing = dealing if dealing is not None and dealing.masks else None

    def __call__(self, read: Read, alone: bool) -> Any:
        """`alone`: the batch is a sample by itself."""
        if read.finished:
            return self.without_calls(read, alone)
        around = getattr(here, "call", None)  # of a function that takes a batch itself
        try:
            batch = self._batch(read, alone)
        finally:
            here.call = around
        return (batch, self._valid(read, alone)) if self._masks or self._dealing else batch

    def without_calls(self, read: Read, alone: bool) -> Any:
        """The batch where nothing of the program's is called any more: it is finished, or was collated natively, or is
        a sample that torch's `default_convert` leaves as it is. Else TO_CALL."""
        if read.finished:
            batch = unpacked(read.value)
        elif self._function is not None or self._make is not None:
            return TO_CALL
        elif not read.apart:
            batch = self._native(read.value)
        else:
            batch = self._converted(read.value) if alone and self._converts else TO_CALL
            if batch is TO_CALL:
                return batch
        return (batch, self._valid(read, alone)) if self._masks or self._dealing else batch

    def _converted(self, value: Any) -> Any:
        sample = sample_to_torch(value)[0]
        if type(sample) is torch.Tensor:
            return sample
        is_flat = type(sample) is tuple and all(type(part) is torch.Tensor for part in sample)
        return list(sample) if is_flat else TO_CALL

    def _native(self, value: Any) -> Any:
        batch = batch_to_torch(value)
        return batch if self._rule is None else self._rule.of_native(batch)

    def _batch(self, read: Read, alone: bool) -> Any:
        batch = self._collated(read, alone)
        return batch if self._function is None else self._call(self._function, read.indices, batch)

    def _collated(self, read: Read, alone: bool) -> Any:
        if not read.apart:
            return self._native(read.value)
        samples = sample_to_torch(read.value)
        if self._make_all is not None and not alone:
            samples = self._call(self._make_all, read.indices, list(read.indices))
        elif self._make is not None:
            samples = self._made(self._make, read.indices, samples)
        batch = self._call(self._collate_fn, read.indices, samples[0] if alone else samples)
        return in_rows(batch) if self._in_rows else batch

    def _made(self, make: Make, indices: Sequence[int], samples: Any) -> list[Any]:
        out = []
        note, seed = self._note, self._seed
        function = make.function if isinstance(make, Made) and make.inner is None else None
        for part, (index, sample) in enumerate(zip(indices, samples, strict=True), 1):
            if note is not None:
                note(part)
            here.call = seed, index
            try:
                out.append(make(index, sample) if function is None else function(sample))
            except Exception as error:
                self._raise(error, [index], of_sample)
        if note is not None:
            note(0)
        return out

    def _call(self, function: Callable[[Any], Any], indices: Sequence[int], argument: Any) -> Any:
        """Errors of the user's function, of samples or of batches, name what it was called with."""
        try:
            here.call = self._seed, indices[0] if indices else 0
            return function(argument)
        except Exception as error:
            if not indices:
                raise
            self._raise(error, indices)

    def _raise(
        self, error: Exception, indices: Sequence[int], note: Callable[[Exception, int, Exception], None] | None = None
    ) -> NoReturn:
        """The error that is at hand, with what the function was called with in its text, and `note`d at its sample."""
        other = self._located(error, indices)
        if note is not None:
            note(other, indices[0], error)
        try:
            if other is error:
                raise
            raise other from error
        finally:
            del other, error  # whose traceback leads here

    def _located(self, error: Exception, indices: Sequence[int]) -> Exception:
        return located_at(error, indices, self._describe)

    def _valid(self, read: Read, alone: bool) -> Any:
        own = [True] * len(read.indices)
        if self._masks:
            own = [index == wanted for index, wanted in zip(read.indices, read.wanted, strict=True)]
        if self._dealing is not None:
            counts = self._dealing.counts(read.number, len(own))
            own = [is_own and count for is_own, count in zip(own, counts, strict=True)]
        return own[0] if alone else torch.tensor(own, dtype=torch.bool)


class Timed:
    """A Finish that knows whether its calls are so brief that handing them to a thread takes longer.

    A function that changes settings of its thread and leaves them so stays in the threads, where each call begins with
    the settings of the thread that iterates. Any number of threads may use it. `note`: told the seconds and samples of
    each call, and whether the thread that takes the batch made it.
    """

    def __init__(self, finish: Finish, note: Callable[[float, int, bool], None] | None = None) -> None:
        self._finish = finish
        self.without_calls = finish.without_calls
        self._note = note
        self._brief = 0  # calls in succession; what threads count at the same time may be lost
        self._changes_settings = False

    @property
    def is_brief(self) -> bool:
        return self._brief >= _ENOUGH and not self._changes_settings

    def here(self, read: Read, alone: bool) -> Any:
        """The call in the thread that takes the batch."""
        return copy_context().run(self, read, alone, True)

    def __call__(self, read: Read, alone: bool, is_here: bool = False) -> Any:
        if read.finished:  # which calls nothing
            return self._finish(read, alone)
        before = settings_now() if _ENOUGH // 2 <= self._brief < _ENOUGH else None
        begin = perf_counter()
        try:
            batch = self._finish(read, alone)
            if self._note is not None:
                self._note(perf_counter() - begin, len(read.indices), is_here)
            return batch
        finally:
            most = _LONG if self.is_brief else _BRIEF
            self._brief = self._brief + 1 if perf_counter() - begin < most else 0
            if before is not None and settings_now() != before:
                self._changes_settings = True


# In seconds: what handing a call to a thread and back takes, and what a caller should not be kept waiting for.
_BRIEF = 100e-6
_LONG = 1e-3
_ENOUGH = 16
