"""Who reads the samples of a batch, and in which other way where C++ cannot make it.

At first a `_Feed` of C++ reads, and makes batches where it has a rule for them (`_collation.py`). What it cannot stack
is left apart for torch to stack; of what it has no form for, the dataset makes one sample after the other
(`_sample_feed.py`). All later batches are then made that way too.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.utils.data as torch_data

import penstock
from penstock._core import _Feed, _is_of_surroundings, _none_left, _samples_in_order, _stack_in_order
from penstock.torch._convert import sample_to_torch
from penstock.torch._errors import as_torchs
from penstock.torch._shared_parts import bounded
from penstock.torch.loader._collation import arrives_on_device, is_default, native_rule
from penstock.torch.loader._located import raised_there, sample_of
from penstock.torch.loader._sample_feed import SampleFeed
from penstock.torch.loader._set_aside import Samples
from penstock.torch.loader._settings import Settings
from penstock.torch.loader._signals import is_of_signal

Feed = _Feed | SampleFeed

# What native collation says of samples that torch may still find a way to stack.
_UNLIKE = (penstock.DTypeMismatchError, penstock.ShapeMismatchError, penstock.UnsupportedError)


class Read(NamedTuple):
    """A batch as the workers left it: whole, or the list of its samples.

    `wanted` has the indices that the sampler asked for, and `indices` those that were read: they
    differ where `on_error` put other samples in the place of bad ones. `number`: which batch of the
    epoch it is. `finished`: a worker process has made the batch of it (`_processes.py`).
    """

    indices: Sequence[int]
    value: Any
    apart: bool
    wanted: Sequence[int] = ()
    number: int = 0
    finished: bool = False


class Feeds:
    """Makes the feeds of an iteration, and batches of what they give.

    `native`: C++ makes the batches. `one_by_one`: the dataset makes each sample. `bulk`: without batches, the sampler
    gives lists of indices, and each list is one stacked sample. `in_processes`: processes make the batches of what is
    read. `on_device`: batches arrive on the loader's device.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        assert settings.native is not None
        self._settings = settings
        self._seed = seed
        functions = settings.functions
        self._dataset = settings.native
        self.samples = Samples(settings.dataset if functions is None else functions.dataset, settings.native)
        self._set_aside = settings.set_aside
        self._collate = native_rule(settings)
        self.native = self._collate is not None
        self.one_by_one = self.bulk = False
        # Where nothing of Python's is to be called, processes have nothing to do.
        calls = functions is not None or not (self.native or settings.collate_fn is torch_data.default_convert)
        self.in_processes = settings.processes is not None and calls
        self.on_device = self.native and functions is None and arrives_on_device(settings.device)
        self._refusal: type[Exception] | None = None  # no error itself: its traceback would lead back here

    def new(self, workers: int, *, apart: bool = False) -> Feed:
        """`apart`: one for samples as they are read, wherever batches are made now."""
        settings = self._settings
        factor = operator.index(settings.prefetch_factor) if workers > 0 and settings.prefetch_factor else 1
        timeout = float(settings.timeout)
        if self.one_by_one:
            return SampleFeed(self.samples, workers, factor, timeout)
        # C++ leaves out a batch of which nothing can be read; what that is with masks is decided here.
        on_error = "replace" if settings.on_error == "mask" else settings.on_error
        device = _full_name(settings.device) if self.on_device and not apart else "cpu"
        collate = _samples_in_order() if apart or self._collate is None else self._collate
        there: tuple[Any, ...] = ()
        if self.in_processes and not apart:
            settings.processes.finish.apart = not self.native
            there = settings.processes.workers, settings.processes.held
        budget = settings.memory_budget
        feed = _Feed(self._dataset, collate, workers, factor, budget, timeout, device, self._seed, on_error, *there)
        if on_error != "raise":
            feed.know(self._set_aside.listed())
        return feed

    def read_lists(self, bulk: bool) -> None:
        """Switches between indices and lists of indices. Worker processes know samples by themselves alone."""
        self.bulk, self.in_processes = bulk, False
        self._collate = _stack_in_order() if bulk else None

    def leave_apart(self) -> None:
        """From here on no batch is made by C++, nor by processes."""
        self._collate, self.native, self.on_device, self.in_processes = None, False, False, False

    def chosen(self, indices: Sequence[int]) -> Sequence[int]:
        """The indices without those of samples that are known to be unreadable, or with others in their places. C++
        does that itself."""
        if self.one_by_one and self._set_aside.any_of(indices):
            return self.repaired(indices)
        return indices

    def repaired(self, indices: Sequence[int]) -> list[int]:
        """The indices without those of bad samples, or with others for them."""
        if self._settings.on_error == "skip":
            return self._set_aside.without(indices)
        return self._set_aside.replaced(self.samples, indices)

    def given(self, feed: Feed, asked: Sequence[int], value: Any) -> Read | None:
        """What a feed gave for the indices that were asked for; None where it left the batch out."""
        indices = self._read_of(feed, asked)
        if not indices:
            return None
        # In a trial, some batches come as they were read.
        finished = self.in_processes and value[0] is not None
        return Read(
            indices, value if finished or not self.in_processes else value[1], not self.native, finished=finished
        )

    def _read_of(self, feed: Feed, asked: Sequence[int]) -> Sequence[int]:
        """The indices that a feed read for those that were asked for."""
        if self._settings.on_error == "raise" or not isinstance(feed, _Feed):
            return asked
        indices = feed.indices
        if indices != asked:
            self._set_aside.become(feed.set_aside)
        return indices

    def empty(self) -> Read:
        """The batch for an empty list of indices from the sampler."""
        if self.bulk:
            return Read([], self.samples[[]], True)
        if self.native:
            raise IndexError(
                "the batch sampler gave a batch of no samples, of which nothing can be stacked; leave empty ones out, "
                "or give a collate_fn that takes them"
            )
        return Read([], [], True)

    def find_bad(self, indices: Sequence[int], error: penstock.Error) -> bool:
        """Tries the samples of a batch with an error each by itself, where the dataset makes them and `on_error` sets
        them aside: whether one of them is bad."""
        if self._settings.on_error == "raise" or not self.one_by_one or _is_of_surroundings(error):
            return False
        return self._set_aside.try_each(self.samples, indices)

    def take_over(self, feed: Feed) -> None:
        """What C++ has set aside; an outage takes samples back."""
        if isinstance(feed, _Feed):
            self._set_aside.become(feed.set_aside)

    def sets_aside(self, error: Exception) -> bool:
        """Whether what a function raised is one sample's, which `on_error` says to set aside."""
        if self._settings.on_error == "raise" or is_of_signal(error):
            return False
        return sample_of(error) is not None and not _is_of_surroundings(error)

    def refuse(self, error: Exception, feed: Feed) -> None:
        """Sets the sample aside whose function raised."""
        index = sample_of(error)
        assert index is not None
        self._set_aside.refuse(self.samples, index, error)
        if isinstance(feed, _Feed):
            feed.know(self._set_aside.listed())

    def unreadable(self) -> penstock.Error:
        none_left: penstock.Error = _none_left(self._set_aside.listed())
        return none_left

    def otherwise(self, indices: Sequence[int], error: penstock.Error) -> Read | None:
        """The batch in another way, where C++ cannot make it: torch's own collation stacks it, or the dataset makes its
        samples, where it draws nothing, as it would draw the same in each epoch. None where that fails too; the caller
        then raises the native error, which names the files."""
        stacked = self.native and is_default(self._settings.collate_fn)
        found = self._refusal = None
        if stacked and isinstance(error, _UNLIKE):
            found = self._tried(self.new(0, apart=True), indices)
        if found is None and not self.one_by_one and isinstance(error, penstock.UnsupportedError):
            if (self.native and not stacked) or self.bulk or self._dataset._draws:
                return None
            found = self._made_one_by_one(indices)
            self.one_by_one = found is not None
        return found

    def _made_one_by_one(self, indices: Sequence[int]) -> Read | None:
        """The batch of samples that the dataset makes, without those that it cannot make, or with others for them."""
        found = self._tried(SampleFeed(self.samples, 0, 1, 0), indices)
        if found is not None or self._settings.on_error == "raise":
            return found
        self._set_aside.try_each(self.samples, indices)
        left = self.repaired(indices)
        return self._tried(SampleFeed(self.samples, 0, 1, 0), left) if left and left != list(indices) else None

    def _tried(self, feed: Feed, indices: Sequence[int]) -> Read | None:
        """The samples, if torch can stack those that have to be stacked; otherwise None, and `_refusal` is torch's type
        of error."""
        try:
            samples = read_by(feed, indices)
            if self.native:
                bounded(self._settings.collate_fn)(sample_to_torch(samples))
        except Exception as refusal:
            if is_of_signal(refusal):
                raise
            self._refusal = type(refusal)
            return None
        return Read(self._read_of(feed, indices), samples, True)

    def users(self, error: penstock.Error) -> BaseException:
        """What the program gets for an error of a feed: the exception of its own function, where that is the cause, or
        one of torch's types."""
        cause = error.__cause__
        if cause is not None and (isinstance(error, penstock.UserCodeError) or not isinstance(cause, Exception)):
            found = cause  # also what ends a program: SystemExit
        else:
            found = as_torchs(error, self._refusal)
            found.__cause__ = cause
        return raised_there(found, self.samples.describe) if self.in_processes else found


def read_by(feed: Feed, indices: Sequence[int]) -> Any:
    """What a feed of nobody else's gives for one batch."""
    feed.push(indices)
    samples: list[Any] = []
    feed.next(samples)
    return samples[0]


def _full_name(device: torch.device | None) -> str:
    """The device's name with its number, because "cuda" alone means torch's current device."""
    assert device is not None
    return f"cuda:{torch.cuda.current_device()}" if device.index is None else str(device)
