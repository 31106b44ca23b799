"""The batches of an epoch as C++ reads them: asked for ahead, and given in order.

`Reads` stands between the sampler and a feed (`_Feed` in C++, or `_sample_feed.py`, which reads one sample at a time).
It draws indices, pushes them to the feed, and says what becomes of samples that cannot be read (`on_error`) or that C++
cannot stack. What Python does with a batch afterwards is in `_finish.py`.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Any, NamedTuple

import torch
import torch.utils.data as torch_data

import penstock
from penstock._core import (
    _Feed,
    _is_of_surroundings,
    _next_into,
    _none_left,
    _plain_indices,
    _samples_in_order,
    _stack_in_order,
)
from penstock._text import plural
from penstock.torch._convert import sample_to_torch
from penstock.torch._errors import as_torchs
from penstock.torch._private import default_collate_fn_map
from penstock.torch._samples import Samples
from penstock.torch._shared_parts import bounded
from penstock.torch.collate import Rule, Stack
from penstock.torch.datasets._dataset import counted
from penstock.torch.loader._drawn import Drawn
from penstock.torch.loader._located import raised_there, sample_of
from penstock.torch.loader._sample_feed import SampleFeed
from penstock.torch.loader._settings import Settings
from penstock.torch.loader._signals import cut_generator, is_of_signal
from penstock.torch.loader._timeout import LoaderTimeoutError, timed_out

# What native collation says of samples that torch may still find a way to stack.
_UNLIKE = (penstock.DTypeMismatchError, penstock.ShapeMismatchError, penstock.UnsupportedError)


_MADE, _END = 1, 2  # what `_Feed.step` tells


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


class _Asked(NamedTuple):
    """A batch under way: the indices that the sampler asked for, and those that are read, or None where none of them
    can be."""

    wanted: Sequence[int]
    indices: Sequence[int] | None


class Reads:
    """Asks the workers for the batches that a sampler draws, and gives them in order.

    `whole`: samples come one by one, without batches. `bulk`: then the sampler gives lists of
    indices, and each list is one stacked sample. `drawn` counts the batches that the sampler gave,
    and `ended` says that it has no more. `on_device`: batches arrive on the loader's device.
    `taken` counts the batches that were given or left out; `held` has those of them that the
    loader has not handed on yet, which count as under way.

    No signal loses a batch (`_signals.py`): what the sampler gave stays in `_pulled` until it is
    asked for, what the feed gave in `_arrived` or `_made`, and what `next` is about to give in
    `ready_reads`.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        assert settings.native is not None
        self._settings = settings
        self._seed = seed
        self._dataset = settings.native
        self._functions = settings.functions
        self._set_aside = settings.set_aside
        self._workers = operator.index(settings.num_workers) if settings.num_workers else 0
        self._timeout = settings.timeout
        self._collate_fn = settings.collate_fn
        read = settings.dataset if self._functions is None else self._functions.dataset
        self._samples = Samples(read, settings.native)
        self._one_by_one = False
        self._refusal: type[Exception] | None = None  # no error itself: its traceback would lead back here
        self._refused = ""  # why C++ could not make a batch
        self._failure = 0  # the id of the program's own error that the last `next` raised for its batch
        self.whole = not settings.batches
        self.bulk = False
        self._collate = self._native_collate()
        # Where nothing of Python's is to be called, processes have nothing to do.
        self.in_processes = settings.processes is not None and not self._native_whole()
        self.on_device: bool = self._native and settings.functions is None and arrives_on_device(settings.device)
        self._feed: _Feed | SampleFeed = self._new_feed(self._workers)
        self._indices: Iterator[Any] = iter(())
        self._pulled: list[Any] = []
        self._cut = False  # the sampler was, by a signal
        self._pending: list[_Asked] = []
        self._pushed = 0  # of them, by the feed that there is
        self._arrived: list[Any] = []
        self._made: list[Any] = []  # of what was pulled, by one step
        self.ready_reads: list[Read] = []
        self.taken = 0
        self.drawn = 0
        self.ended = False
        self.held: Sized = ()
        self._left_out: int | None = 0  # batches, while there were no others
        self.finished = False
        self._closed = False

    def begin(self, indices: Iterator[Any], taken: int, sums: Drawn) -> None:
        """Reads the batches that `indices` gives; `taken` batches of the epoch were taken before. What the sampler
        gives is added to `sums`."""
        self._indices, self.taken, self.drawn, self._sums = indices, taken, taken, sums
        if self._workers > 0:
            self.draw()

    @property
    def alone(self) -> bool:
        """Whether what comes next is a single sample rather than a batch."""
        return self.whole and not self.bulk

    def close(self) -> None:
        """Ends the workers and drops what they prepared."""
        if not self._closed:
            self._closed = True
            self._feed.close()

    def stats(self) -> dict[str, Any]:
        try:
            return self._feed.stats()
        except penstock.Error:  # in a forked child, where there are none
            return {}

    def last_stats(self) -> Callable[[], dict[str, Any]]:
        """Closes it, and gives what then tells the figures without what was read. They are made when they are asked
        for: that takes longer than a small epoch."""
        self.close()
        if isinstance(self._feed, _Feed) and not self.in_processes:
            return self._feed.stats
        stats = self.stats()
        return lambda: stats

    def describe(self, index: int) -> str:
        return self._samples.describe(index)

    @property
    def ready(self) -> bool:
        """Whether `next` would give something without waiting."""
        return bool(self._pending) and (not self._pending[0].indices or self._feed.ready)

    def next(self, *, hold: bool = False) -> Read:
        """The next batch that has a readable sample; StopIteration behind the last. An error
        belongs to one batch, and the next call gives the batch after it.

        With `hold` the batch is put among the held ones.
        """
        self._failure = 0
        if self._made or (self._in_steps and not self.ready_reads and not self._pending and not self.ended):
            read = self._step()
            if read is not None:
                return read
        while not self.ready_reads:
            if self._workers == 0 and not self.finished:
                self.draw()
            if not self._pending:
                self.finished = True
                self.close()
                self._require_some()
                raise StopIteration
            try:
                self._take_first()
            finally:
                if self._workers > 0:
                    self._draw_behind(hold)
        read = self.ready_reads[0]
        del self.ready_reads[0]
        return read

    @property
    def _in_steps(self) -> bool:
        """Whether nobody works ahead, so that the feed may draw a batch and make it in one call."""
        return self._workers == 0 and self._settings.on_error == "raise" and isinstance(self._feed, _Feed)

    def _step(self) -> Read | None:
        """The next batch where one call makes it; None where it takes several, which also find out what is wrong."""
        if not self._made:
            feed = self._feed
            assert isinstance(feed, _Feed)
            try:
                came = feed.step(self._indices, self._pulled, self._made, self.alone)
            except BaseException as error:
                self._note_cut(error)
                raise
            if came != _MADE:
                self.ended = came == _END and not self._cut
                return None
        drawn, value = self._pulled[0], self._made[0]
        sums = self._sums.behind(drawn)
        indices = [drawn] if self.alone else drawn
        read: Read = tuple.__new__(Read, (indices, value, not self._native, indices, self.taken, False))
        # From here on without a call, so that no handler comes in between.
        self._pulled, self._made = [], []
        self._left_out = None
        self._sums.state = sums
        self.drawn += 1
        self.taken += 1
        return read

    def _take_first(self) -> None:
        """Takes the batch that was asked for first, to `ready_reads` where something of it can be read."""
        asked, number = self._pending[0], self.taken
        del self._pending[0]
        self.taken += 1
        try:
            value = self._take(asked)
            if value is not None:
                value = value._replace(wanted=asked.wanted, number=number)
        except BaseException as error:
            # An error that came from the feed is the batch's, whatever it is.
            if isinstance(error, LoaderTimeoutError) or (is_of_signal(error) and id(error) != self._failure):
                self._pending = [asked, *self._pending]
                self.taken -= 1
            else:
                self._arrived = []
            raise
        self._arrived = []
        if value is not None:
            self._left_out = None
            self.ready_reads += (value,)
        elif self._settings.on_error == "mask":  # batches are counted on, and none is left out
            self._left_out = None
            raise self._unreadable()
        elif self._left_out is not None:
            self._left_out += 1

    def _require_some(self) -> None:
        """Raises an error where `on_error` left out every batch of an epoch, because then the fault is not that of
        single samples."""
        if self._left_out:
            self._left_out = 0  # it is said once; the end comes behind it
            raise self._unreadable()

    def _unreadable(self) -> penstock.Error:
        return _none_left(self._set_aside.listed())

    def _new_feed(self, workers: int, collate: penstock.Collate | None = None) -> _Feed | SampleFeed:
        settings = self._settings
        factor = operator.index(settings.prefetch_factor) if workers > 0 and settings.prefetch_factor else 1
        if self._one_by_one:
            return SampleFeed(self._samples, workers, factor, float(self._timeout))
        # C++ leaves out a batch of which nothing can be read; what that is with masks is decided here.
        on_error = "replace" if settings.on_error == "mask" else settings.on_error
        is_special = collate is not None  # whoever asks for it wants what was read
        device = _full_name(settings.device) if self.on_device and not is_special else "cpu"
        budget = settings.memory_budget
        collate, timeout = collate or self._collate, float(self._timeout)
        there: tuple[Any, ...] = ()
        if self.in_processes and not is_special:
            settings.processes.finish.apart = not self._native
            there = settings.processes.workers, settings.processes.held
        feed = _Feed(self._dataset, collate, workers, factor, budget, timeout, device, self._seed, on_error, *there)
        if on_error != "raise":
            feed.know(self._set_aside.listed())
        return feed

    def _native_collate(self) -> penstock.Collate:
        """What the workers do with the samples: collate them with a rule of ours, or leave them apart."""
        collate = self._collate_fn
        per_sample = self._functions is not None and self._functions.make is not None
        self._native = not self.whole and not per_sample
        if self._native and isinstance(collate, (Rule, penstock.Collate)):
            if isinstance(collate, Stack):
                return self._stack()
            return collate.native if isinstance(collate, Rule) else collate
        self._native = self._native and is_default(collate)
        return self._stack() if self._native else _samples_in_order()

    def _stack(self) -> penstock.Collate:
        """As `default_collate` stacks: channels-last samples so, but in worker processes, into memory in C order."""
        return penstock.stack() if self._workers else _stack_in_order()

    def _native_whole(self) -> bool:
        """Whether C++ makes the batches as the program gets them."""
        return self._functions is None and (self._native or self._collate_fn is None)

    def _draw_behind(self, hold: bool) -> None:
        try:
            self.draw(hold)
        except BaseException as error:
            if not is_of_signal(error):  # the sampler's error takes the place of the batch, as in torch
                self.ready_reads = []
            raise

    def draw(self, hold: bool = False) -> None:
        """Asks for batches until as many are under way as torch would have. `hold`: what is ready will be held."""
        while not self.finished:
            ready = len(self.ready_reads) if hold else 0
            if len(self._pending) + len(self.held) + ready >= self._feed.window:
                return
            if not self._pulled and not self._pull():
                return
            sums = self._sums.behind(self._pulled[0])
            try:
                asked = self._ask(self._pulled[0])
            except BaseException as error:
                if not is_of_signal(error):
                    self._pulled = []
                    self.drawn += 1
                    self._sums.state = sums
                raise
            # From here on without a call, so that no handler comes in between.
            self._pulled = []
            self._pending += (asked,)
            self._pushed += 1 if asked.indices else 0
            self.drawn += 1
            self._sums.state = sums

    def _pull(self) -> bool:
        """Has what the sampler gives next in `_pulled`; False at its end."""
        if self.ended:  # which it is asked for once
            return False
        try:
            came = _next_into(self._indices, self._pulled)
        except BaseException as error:
            self._note_cut(error)
            raise
        if not came and self._cut:
            raise penstock.InvalidArgumentError(
                "the sampler is a generator that a signal has interrupted, so that the rest of its epoch is lost; "
                "begin another epoch, or give a sampler whose iterator is an object of a class"
            )
        self.ended = not came
        return came

    def _note_cut(self, error: BaseException) -> None:
        self._cut = is_of_signal(error) and cut_generator(error)

    def _ask(self, drawn: Any) -> _Asked:
        if self.whole and isinstance(drawn, (list, slice)) != self.bulk:
            self._read_lists(not self.bulk)
        wanted = self._wanted(drawn)
        indices = self._chosen(wanted)
        asked = _Asked(wanted, indices if indices or not wanted else None)
        if indices and self._feed.pushed == self._pushed:  # else a handler raised right behind the push
            self._feed.push(indices)
        return asked

    def _read_lists(self, bulk: bool) -> None:
        """Switches between indices and lists of indices. Without batches a sampler may give lists; each is one sample,
        the stack of its rows."""
        if self._pending or self._functions is not None:
            raise TypeError("found a list where the sampler gives indices; expected one or the other of all samples")
        self.bulk = bulk
        self._collate = _stack_in_order() if bulk else _samples_in_order()
        self._feed.close()
        self._feed, self._pushed = self._new_feed(self._workers), 0

    def _wanted(self, drawn: Any) -> Sequence[int]:
        """The drawn indices; negative ones are counted from the end."""
        if type(drawn) is range and drawn.step > 0 and drawn.start >= 0:
            return drawn
        indices = _plain_indices(drawn)
        if indices is not None:
            return indices
        indices = self._checked(drawn)
        return counted(indices, len(self._dataset)) if indices and min(indices) < 0 else indices

    def _checked(self, drawn: Any) -> list[int]:
        if self.whole and not self.bulk:
            return [operator.index(drawn)]
        if isinstance(drawn, slice):
            return list(range(len(self._dataset))[drawn])
        if isinstance(drawn, torch.Tensor) and drawn.dim() == 1 and not drawn.is_floating_point():
            drawn = drawn.tolist()
        return [operator.index(one) for one in drawn]

    def _chosen(self, indices: Sequence[int]) -> Sequence[int]:
        """The indices without those of samples that are known to be unreadable, or with others in their places. C++
        does that itself."""
        if self._one_by_one and self._set_aside.any_of(indices):
            return self._repaired(indices)
        return indices

    def _repaired(self, indices: Sequence[int]) -> list[int]:
        set_aside = self._set_aside
        if self._settings.on_error == "skip":
            return set_aside.without(indices)
        return set_aside.replaced(self._samples, indices)

    def _take(self, asked: _Asked) -> Read | None:
        """The batch that was asked for first; None when none of its samples can be read."""
        indices = asked.indices
        if indices is None:
            return None
        if not indices:
            return self._empty()
        arrived, self._arrived = self._arrived, []  # a function of the program that is called may take a batch itself
        value = None
        try:
            if not arrived:
                arrived = self._fetch()
            value = arrived[0]
            if isinstance(value, Read):
                return value
            if isinstance(value, penstock.Error):
                return self._instead(indices, value)
            return self._given(self._feed, indices, value)
        except BaseException:
            if not self._arrived:
                self._arrived = arrived
            raise
        finally:
            del arrived, value  # the traceback of an error leads here

    def _fetch(self) -> list[Any]:
        """The feed's next batch, or the error in its place."""
        arrived: list[Any] = []
        try:
            if not self._feed.next(arrived):
                raise timed_out(self._timeout)
        except LoaderTimeoutError:
            raise
        except penstock.Error as error:
            return [error]  # another list: the traceback of the error leads to that one
        except BaseException:
            self._arrived = arrived
            raise
        return arrived

    def _instead(self, indices: Sequence[int], error: penstock.Error) -> Read | None:
        """What there is of a batch that the feed gave an error for."""
        try:
            other = self._otherwise(indices, error)
            if other is not None:
                return other
            if (
                self._settings.on_error == "raise"
                or not self._one_by_one
                or _is_of_surroundings(error)
                or not self._set_aside.try_each(self._samples, indices)
            ):
                if isinstance(self._feed, _Feed):  # which takes an outage's samples back
                    self._set_aside.become(self._feed.set_aside)
                raise self._users(error)
        finally:
            del error  # whose traceback leads here
        return self._again(self._repaired(indices))

    def _given(self, feed: _Feed | SampleFeed, asked: Sequence[int], value: Any) -> Read | None:
        """What a feed gave for the indices that were asked for; None where it left the batch out."""
        indices = self._read_of(feed, asked)
        if not indices:
            return None
        # In a trial, some batches come as they were read.
        finished = self.in_processes and value[0] is not None
        return Read(
            indices, value if finished or not self.in_processes else value[1], not self._native, finished=finished
        )

    def _read_of(self, feed: _Feed | SampleFeed, asked: Sequence[int]) -> Sequence[int]:
        """The indices that a feed read for those that were asked for."""
        if self._settings.on_error == "raise" or not isinstance(feed, _Feed):
            return asked
        indices = feed.indices
        if indices != asked:
            self._set_aside.become(feed.set_aside)
        return indices

    def _empty(self) -> Read:
        """The batch for an empty list of indices from the sampler."""
        if self.bulk:
            return Read([], self._samples[[]], True)
        if self._native:
            raise IndexError(
                "the batch sampler gave a batch of no samples, of which nothing can be stacked; leave empty ones out, "
                "or give a collate_fn that takes them"
            )
        return Read([], [], True)

    def _again(self, indices: Sequence[int]) -> Read | None:
        if not indices:
            return None
        feed = self._new_feed(0)
        feed.push(indices)
        try:
            samples: list[Any] = []
            feed.next(samples)
            return self._given(feed, indices, samples[0])
        except penstock.Error as error:
            other = self._otherwise(indices, error)
            if other is None:
                raise self._users(error)  # noqa: B904 - the program's exception keeps the cause that it has
            return other

    def sets_aside(self, error: Exception) -> bool:
        """Whether what a function raised is one sample's, which `on_error` says to set aside."""
        if self._settings.on_error == "raise" or is_of_signal(error):
            return False
        return sample_of(error) is not None and not _is_of_surroundings(error)

    def without_bad(self, read: Read, error: Exception) -> Read | None:
        """The batch without the sample whose function raised, or with another for it, as `on_error` says; None where
        nothing is left of it."""
        index = sample_of(error)
        assert index is not None
        self._set_aside.refuse(index, self.describe(index), error)
        if isinstance(self._feed, _Feed):
            self._feed.know(self._set_aside.listed())
        again = self._again(self._repaired(read.indices))
        if again is None and self._settings.on_error == "mask":
            raise self._unreadable()
        return None if again is None else again._replace(wanted=read.wanted, number=read.number)

    def require_some_made(self, left_out: int) -> None:
        """Raises where functions left so many batches out, and no other came."""
        if left_out:
            raise self._unreadable()

    def _users(self, error: penstock.Error) -> BaseException:
        """What the program gets for an error of a feed."""
        found = _users(error, self._refusal)
        found = raised_there(found, self.describe) if self.in_processes else found
        self._failure = id(found)
        return found

    def is_of_batch(self, error: Exception) -> bool:
        """Whether `next` raised it because of its batch, and not of the order or of the time that it took."""
        if isinstance(error, penstock.Error):
            return not isinstance(error, LoaderTimeoutError)
        return id(error) == self._failure

    def _otherwise(self, indices: Sequence[int], error: penstock.Error) -> Read | None:
        """The batch in another way, where C++ cannot make it: torch's own collation stacks it, or the dataset makes its
        samples. All later batches are then made that way. None where that fails too; the caller then raises the native
        error, which names the files."""
        stacked = self._native and is_default(self._collate_fn)
        found = self._refusal = None
        if stacked and isinstance(error, _UNLIKE):
            found = self._tried(self._new_feed(0, _samples_in_order()), indices)
        if found is None and not self._one_by_one and isinstance(error, penstock.UnsupportedError):
            if (self._native and not stacked) or self.bulk:
                return None
            found = self._made_one_by_one(indices)
            self._one_by_one = found is not None
        if found is None:
            return None
        self._refused = str(error)
        self._go_on_apart(found)
        return found

    def _made_one_by_one(self, indices: Sequence[int]) -> Read | None:
        """The batch of samples that the dataset makes, without those that it cannot make, or with others for them."""
        found = self._tried(SampleFeed(self._samples, 0, 1, 0), indices)
        if found is not None or self._settings.on_error == "raise":
            return found
        self._set_aside.try_each(self._samples, indices)
        left = self._repaired(indices)
        return self._tried(SampleFeed(self._samples, 0, 1, 0), left) if left and left != list(indices) else None

    def _tried(self, feed: _Feed | SampleFeed, indices: Sequence[int]) -> Read | None:
        """The samples, if torch can stack those that have to be stacked; otherwise None, and `_refusal` is torch's type
        of error."""
        try:
            feed.push(indices)
            samples: list[Any] = []
            feed.next(samples)
            if self._native:
                bounded(self._collate_fn)(sample_to_torch(samples[0]))
        except Exception as refusal:
            if is_of_signal(refusal):
                raise
            self._refusal = type(refusal)
            return None
        return Read(self._read_of(feed, indices), samples[0], True)

    def _go_on_apart(self, found: Read) -> None:
        self._collate, self._native, self.on_device = _samples_in_order(), False, False
        if self.in_processes and "not sent" not in self._settings.warned:
            self._settings.warned.add("not sent")
            warnings.warn(
                f"{self._refused}; threads call the functions of this dataset from here on, and not worker processes",
                stacklevel=8,
            )
        self.in_processes = False
        before, feed = self._feed, self._new_feed(self._workers)
        for pending in self._pending:
            if pending.indices:
                feed.push(pending.indices)
        # The new feed knows nothing of the batch that was found, so that this is its only place.
        self._feed, self._pushed, self._arrived = feed, len([one for one in self._pending if one.indices]), [found]
        before.close()


def _users(error: penstock.Error, refusal: type[Exception] | None) -> BaseException:
    """What users get for an error of a feed: the exception of their own function, where that is its cause, or one of
    torch's types."""
    cause = error.__cause__
    if cause is not None and (isinstance(error, penstock.UserCodeError) or not isinstance(cause, Exception)):
        return cause  # also what ends a program: SystemExit
    twin = as_torchs(error, refusal)
    twin.__cause__ = cause
    return twin


def explained(settings: Settings, in_processes: bool) -> str:
    """A sentence for people about who reads and who collates a dataset that is read natively."""
    functions, collate = settings.functions, settings.collate_fn
    workers = "the caller's thread reads"
    if settings.num_workers:
        workers = f"{plural(settings.num_workers, 'thread')} read{'s' if settings.num_workers == 1 else ''}"
    in_threads = settings.num_workers and functions is not None
    calls, s = (
        ("worker processes call", "")
        if in_processes
        else ("these threads call", "")
        if in_threads
        else ("the caller's thread calls", "s")
    )
    if functions is not None and functions.make is not None:
        made = f"{calls} the dataset's functions and collate{s}"
    elif not settings.batches:
        made = "samples come one by one"
    elif isinstance(collate, (Rule, penstock.Collate)) or is_default(collate):
        made = "batches are collated natively"
    else:
        made = f"{calls} collate_fn with the samples"
    behind = "" if functions is None or functions.batch is None else f", and {calls} the function of batches"
    return f"native: {workers} the samples; {made}{behind}"


def is_default(collate: Any) -> bool:
    """Whether this is torch's default_collate without additions: programs may teach it other types."""
    if collate is not torch_data.default_collate:
        return False
    return all(part.__module__ == torch_data.default_collate.__module__ for part in default_collate_fn_map.values())


def arrives_on_device(device: torch.device | None) -> bool:
    """Whether batches are copied to the device while the next ones are read. Otherwise torch moves
    them when they are taken."""
    return device is not None and device.type == "cuda" and torch.cuda.is_available() and penstock.device.is_available()


def _full_name(device: torch.device | None) -> str:
    """The device's name with its number, because "cuda" alone means torch's current device."""
    assert device is not None
    return f"cuda:{torch.cuda.current_device()}" if device.index is None else str(device)
