"""The batches of an epoch as C++ reads them: asked for ahead, and given in order.

`Reads` stands between the sampler (`_wanted.py`) and a feed (`_feeds.py`): it draws indices, pushes them to the feed,
and takes batches in the order in which they were asked for. What Python does with them afterwards is in `_finish.py`.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Sequence, Sized
from typing import Any, NamedTuple

import penstock
from penstock._core import _Feed
from penstock.torch.datasets._dataset import several
from penstock.torch.loader._drawn import Drawn
from penstock.torch.loader._feeds import Feed, Feeds, Read, read_by
from penstock.torch.loader._settings import Settings
from penstock.torch.loader._signals import is_of_signal
from penstock.torch.loader._timeout import LoaderTimeoutError, timed_out
from penstock.torch.loader._wanted import Wanted, indices_of

_MADE, _END = 1, 2  # what `_Feed.step` tells


class _Asked(NamedTuple):
    """A batch under way: the indices that the sampler asked for, and those that are read, or None where none of them
    can be."""

    wanted: Sequence[int]
    indices: Sequence[int] | None


class Reads:
    """Asks the workers for the batches that a sampler draws, and gives them in order.

    `taken` counts the batches that were given or left out; `held` has those of them that the
    loader has not handed on yet, which count as under way.

    No signal loses a batch (`_signals.py`): what the sampler gave stays in `wanted.pulled` until it is
    asked for, what the feed gave in `_arrived` or `_made`, and what `next` is about to give in
    `ready_reads`.
    """

    wanted: Wanted

    def __init__(self, settings: Settings, seed: int) -> None:
        self._settings = settings
        self._workers = operator.index(settings.num_workers) if settings.num_workers else 0
        self.feeds = Feeds(settings, seed)
        self._feed: Feed = self.feeds.new(self._workers)
        self._failure = 0  # the id of the program's own error that the last `next` raised for its batch
        self._pending: list[_Asked] = []
        self._pushed = 0  # of them, by the feed that there is
        self._arrived: list[Any] = []
        self._made: list[Any] = []  # of what was pulled, by one step
        self.ready_reads: list[Read] = []
        self.taken = 0
        self.held: Sized = ()
        self._left_out: int | None = None  # batches, while there were no others
        self.finished = False
        self._closed = False

    def begin(self, items: Iterator[Any], taken: int, sums: Drawn) -> None:
        """Reads the batches that the sampler's `items` ask for; `taken` batches of the epoch were taken before. What
        the sampler gives is added to `sums`."""
        self.wanted, self.taken = Wanted(items, taken, sums), taken
        # One that goes on inside of an epoch stands behind a batch that was given.
        self._left_out = None if taken else 0
        if self._workers > 0:
            self.draw()

    @property
    def alone(self) -> bool:
        """Whether what comes next is a single sample rather than a batch."""
        return not self._settings.batches and not self.feeds.bulk

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
        if isinstance(self._feed, _Feed) and not self.feeds.in_processes:
            return self._feed.stats
        stats = self.stats()
        return lambda: stats

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
        if self._made or (self._in_steps and not self.ready_reads and not self._pending and not self.wanted.ended):
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
        wanted = self.wanted
        if not self._made:
            feed = self._feed
            assert isinstance(feed, _Feed)
            try:
                came = feed.step(wanted.items, wanted.pulled, self._made, self.alone)
            except BaseException as error:
                wanted.note_cut(error)
                raise
            if came != _MADE:
                wanted.ended = came == _END and not wanted.cut  # else `pull` says what cut it
                return None
        drawn, value = wanted.pulled[0], self._made[0]
        sums = wanted.sums.behind(drawn)
        indices = [drawn] if self.alone else drawn
        read: Read = tuple.__new__(Read, (indices, value, not self.feeds.native, indices, self.taken, False))
        # From here on without a call, so that no handler comes in between.
        wanted.pulled, self._made = [], []
        self._left_out = None
        wanted.sums.state = sums
        wanted.drawn += 1
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
            raise self.feeds.unreadable()
        elif self._left_out is not None:
            self._left_out += 1

    def _require_some(self) -> None:
        """Raises an error where `on_error` left out every batch of an epoch, because then the fault is not that of
        single samples."""
        if self._left_out:
            self._left_out = 0  # it is said once; the end comes behind it
            raise self.feeds.unreadable()

    def _draw_behind(self, hold: bool) -> None:
        try:
            self.draw(hold)
        except BaseException as error:
            if not is_of_signal(error):  # the sampler's error takes the place of the batch, as in torch
                self.ready_reads = []
            raise

    def draw(self, hold: bool = False) -> None:
        """Asks for batches until as many are under way as torch would have. `hold`: what is ready will be held."""
        wanted = self.wanted
        while not self.finished:
            ready = len(self.ready_reads) if hold else 0
            if len(self._pending) + len(self.held) + ready >= self._feed.window:
                return
            if not wanted.pulled and not wanted.pull():
                return
            sums = wanted.sums.behind(wanted.pulled[0])
            try:
                asked = self._ask(wanted.pulled[0])
            except BaseException as error:
                if not is_of_signal(error):
                    wanted.pulled = []
                    wanted.drawn += 1
                    wanted.sums.state = sums
                raise
            # From here on without a call, so that no handler comes in between.
            wanted.pulled = []
            self._pending += (asked,)
            self._pushed += 1 if asked.indices else 0
            wanted.drawn += 1
            wanted.sums.state = sums

    def _ask(self, drawn: Any) -> _Asked:
        if not self._settings.batches:
            many = several(drawn, len(self.feeds.samples))
            if (many is not None) != self.feeds.bulk:
                self._read_lists(not self.feeds.bulk)
            drawn = drawn if many is None else many
        wanted = indices_of(drawn, self.alone, len(self.feeds.samples))
        indices = self.feeds.chosen(wanted)
        asked = _Asked(wanted, indices if indices or not wanted else None)
        if indices and self._feed.pushed == self._pushed:  # else a handler raised right behind the push
            self._feed.push(indices)
        return asked

    def _read_lists(self, bulk: bool) -> None:
        """Without batches a sampler may give lists; each is one sample, the stack of its rows."""
        if self._pending or self._settings.functions is not None:
            raise TypeError("found a list where the sampler gives indices; expected one or the other of all samples")
        self.feeds.read_lists(bulk)
        self._feed.close()
        self._feed, self._pushed = self.feeds.new(self._workers), 0

    def _take(self, asked: _Asked) -> Read | None:
        """The batch that was asked for first; None when none of its samples can be read."""
        indices = asked.indices
        if indices is None:
            return None
        if not indices:
            return self.feeds.empty()
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
            return self.feeds.given(self._feed, indices, value)
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
                raise timed_out(self._settings.timeout)
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
            if not self.feeds.find_bad(indices, error):
                self.feeds.take_over(self._feed)
                raise self._users(error)
        finally:
            del error  # whose traceback leads here
        return self._again(indices)

    def _again(self, asked: Sequence[int]) -> Read | None:
        """The batch without its bad samples, or with others for them, read here; None where nothing is left of it."""
        indices = self.feeds.repaired(asked)
        if not indices:
            return None
        feed = self.feeds.new(0)
        try:
            return self.feeds.given(feed, indices, read_by(feed, indices))
        except penstock.Error as error:
            other = self._otherwise(indices, error)
            if other is None:
                raise self._users(error)  # noqa: B904 - the program's exception keeps the cause that it has
            return other

    def without_bad(self, read: Read, error: Exception) -> Read | None:
        """The batch without the sample whose function raised, or with another for it, as `on_error` says; None where
        nothing is left of it."""
        self.feeds.refuse(error, self._feed)
        again = self._again(read.indices)
        if again is None and self._settings.on_error == "mask":
            raise self.feeds.unreadable()
        return None if again is None else again._replace(wanted=read.wanted, number=read.number)

    def _users(self, error: penstock.Error) -> BaseException:
        found = self.feeds.users(error)
        self._failure = id(found)
        return found

    def is_of_batch(self, error: Exception) -> bool:
        """Whether `next` raised it because of its batch, and not of the order or of the time that it took."""
        if isinstance(error, penstock.Error):
            return not isinstance(error, LoaderTimeoutError)
        return id(error) == self._failure

    def _otherwise(self, indices: Sequence[int], error: penstock.Error) -> Read | None:
        """The batch in another way, if there is one; all later batches are then made that way."""
        found = self.feeds.otherwise(indices, error)
        if found is not None:
            self._go_on_apart(found, str(error))
        return found

    def _go_on_apart(self, found: Read, refused: str) -> None:
        if self.feeds.in_processes and "not sent" not in self._settings.warned:
            self._settings.warned.add("not sent")
            warnings.warn(
                f"{refused}; threads call the functions of this dataset from here on, and not worker processes",
                stacklevel=8,
            )
        self.feeds.leave_apart()
        before, feed = self._feed, self.feeds.new(self._workers)
        for pending in self._pending:
            if pending.indices:
                feed.push(pending.indices)
        # The new feed knows nothing of the batch that was found, so that this is its only place.
        self._feed, self._pushed, self._arrived = feed, len([one for one in self._pending if one.indices]), [found]
        before.close()
