"""One pass of penstock.torch.DataLoader over a dataset that C++ reads.

The iterator puts three parts together: `Reads` gives batches as C++ leaves them, `Finish` calls Python's functions on
them, in threads where there are any, and `Progress` counts what was given so that a state can be taken at any time.
"""

from __future__ import annotations

import operator
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import torch

from penstock._batches.functions import drawn_since, random_states, shared_generators
from penstock._core import _forks
from penstock.torch._private import BaseDataLoaderIter, is_profiler_enabled, pin_memory
from penstock.torch._samples import to_device
from penstock.torch.loader._collation import is_default
from penstock.torch.loader._drawn import Drawn
from penstock.torch.loader._feeds import Read
from penstock.torch.loader._finish import TO_CALL, Finish, Timed
from penstock.torch.loader._position import Position, draw_base_seed
from penstock.torch.loader._progress import Progress
from penstock.torch.loader._reads import Reads
from penstock.torch.loader._settings import Settings, drawn_from
from penstock.torch.loader._signals import is_of_signal
from penstock.torch.loader._threads import Threads, are_done
from penstock.torch.loader._timeout import timed_out


class Iteration(BaseDataLoaderIter):
    """The iterator that `iter(loader)` gives. It derives from torch's base class for isinstance and for the attributes
    that programs know.

    It draws indices from the sampler when torch would: `prefetch_factor * num_workers` batches ahead, or when a batch
    is asked for without workers. So endless samplers work, and a generator that is shared with other code has the state
    that torch would leave it in. Threads and waiting batches end with the iterator, or at the end of the epoch.

    Several threads may take from one iterator: each batch goes to one of them, and all of them see the end.

    No signal loses a batch (`_signals.py`): it stays in `_waiting` until its functions have begun, in `_working` until
    they are done, in `_batch` until it is placed, and in `_made` until it is given. A step puts it back where a handler
    raises within the step.
    """

    _reads: Reads
    _restarts: int

    def __init__(self, settings: Settings, resume: Position | None) -> None:
        self._lock = threading.RLock()
        self._process = _forks()
        self._threads: Threads | None = None
        self._working: deque[tuple[Future[Any], Read | None]] = deque()
        self._waiting: list[Read] = []
        self._batch = self._made = _LEFT_OUT
        self._start(settings, resume, draws_seed=True)
        if not self._reads.feeds.on_device:
            _warn_of_pinning(settings)

    def restart(self, settings: Settings, resume: Position | None) -> None:
        """Begins the next epoch, as the iterator of persistent workers does; no new base seed is drawn."""
        with self._alone():
            self._stop()
            self._start(settings, resume, draws_seed=False)

    def _start(self, settings: Settings, resume: Position | None, *, draws_seed: bool) -> None:
        self._settings = settings
        self._dataset = settings.dataset
        self._num_workers = operator.index(settings.num_workers) if settings.num_workers else 0
        self._timeout = settings.timeout
        self._collate_fn = settings.collate_fn
        self._auto_collation = settings.batches
        self._num_yielded = 0
        self._left_out = 0  # batches of which no sample could be made
        self._pins = settings.pin_memory and torch.accelerator.is_available()
        self._index_sampler = settings.index_sampler
        restarts = 0 if draws_seed else self._restarts + 1
        for entry in [] if resume is None else resume.set_aside:
            settings.set_aside.add(*entry)  # before there is a feed, which is told
        if resume is not None and not resume.begun:
            resume.settle(settings)
            draws_seed, restarts, resume = resume.draws_seed, resume.restarts, None
        begin = Position.now(settings, draws_seed=draws_seed, restarts=restarts) if resume is None else resume
        self._restarts = begin.restarts
        seed = begin.sample_seed() if _draws(settings) else 0
        self._reads = Reads(settings, seed)
        self._reads.held = self._working
        masks, dealing = settings.on_error == "mask", settings.dealing
        self._masks = masks or (dealing is not None and dealing.masks)
        self._finish = Timed(
            Finish(
                settings.collate_fn,
                settings.functions,
                self._reads.feeds.samples.describe,
                seed=seed,
                masks=masks,
                dealing=dealing,
                in_rows=self._num_workers > 0,
                at_once=settings.on_error == "raise",
            ),
            partial(_note_here, settings.processes.workers, self._num_workers) if self._tries() else None,
        )
        sums = Drawn.of(settings)
        if resume is None:
            self._sampler_iter = drawn_from(settings)
            if draws_seed:
                self._base_seed = draw_base_seed(settings.generator)
            if begin.begins > 1:  # as torch does where it has workers
                self._sampler_iter = drawn_from(settings)
        else:
            self._sampler_iter, sums = resume.restore(settings)
        self.progress = Progress(begin, sums, self._reads)
        self._reads.begin(self._sampler_iter, begin.batch, sums)
        self._note()
        if self._num_workers == 0 and self._timeout != 0:
            raise AssertionError(f"timeout={self._timeout} needs num_workers > 0; leave it out without")

    def _note(self) -> None:
        """Copies how far it has come to `progress`, for those who ask."""
        kept = len(self._reads.ready_reads) + len(self._waiting) + len(self._working)
        kept += (self._batch is not _LEFT_OUT) + (self._made is not _LEFT_OUT)
        self.progress.given = self._reads.taken - kept
        self.progress.drawn, self.progress.ended = self._reads.wanted.drawn, self._reads.wanted.ended

    def _stop(self) -> None:
        self._working.clear()
        self._waiting = []
        self._batch = self._made = _LEFT_OUT
        if self._threads is not None:
            self._threads.close()
            self._threads = None
        self._reads.close()

    def __iter__(self) -> Iteration:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        value = _LEFT_OUT
        try:
            with self._alone():
                if not is_profiler_enabled():
                    self._make()
                else:
                    name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
                    with torch.autograd.profiler.record_function(name):
                        self._make()
                value, self._made = self._made, _LEFT_OUT
                self._note()
                return value
        except BaseException:
            with self._alone():  # which was left on the way here; another thread may take the next batch
                if value is not _LEFT_OUT:
                    self._made = value
                self._note()
            raise

    def _alone(self) -> threading.RLock:
        """A lock for one thread at a time. A thread that has it may take it again, because a function may take a batch
        itself."""
        if _forks() != self._process:  # whoever had it when this process was forked stayed in the parent
            self._lock, self._process = threading.RLock(), _forks()
        return self._lock

    def _make(self) -> None:
        """Has the next batch in `_made`, where it may be already."""
        if self._made is not _LEFT_OUT:
            return
        try:
            while self._batch is _LEFT_OUT:
                if self._uses_threads():
                    self._next_mapped()
                else:
                    self._next_read()
        except StopIteration:
            if self._reads.finished and not self._working and not self._waiting:  # else a function's own
                self.progress.finished = True
                self._stop()
                left_out, self._left_out = self._left_out, 0
                if self._num_yielded == 0 and left_out:
                    raise self._reads.feeds.unreadable() from None
            raise
        batch, self._batch = self._batch, _LEFT_OUT
        try:
            made = self._where_asked(batch)
        except BaseException as error:
            if is_of_signal(error):
                self._batch = batch
            raise
        self._made = made
        self._num_yielded += 1

    def _where_asked(self, value: Any) -> Any:
        there = self._reads.feeds.on_device
        if not self._masks:
            return value if there else self._placed(value)
        batch, valid = value
        # Unpinned, the mask would have the copy wait for all that the device has to do.
        return (batch, self._placed(pin_memory(valid))) if there else (self._placed(batch), self._placed(valid))

    def _tries(self) -> bool:
        """Whether it is to be found out who makes batches sooner, threads or processes."""
        return self._settings.processes is not None and self._settings.processes.trial

    def _uses_threads(self) -> bool:
        """Whether the next batch comes from threads that call the functions."""
        if (
            self._num_workers == 0
            or not self._settings.functions
            or (self._reads.feeds.in_processes and not self._tries())
        ):
            return False
        return bool(self._working) or not self._calls_here()

    def _calls_here(self) -> bool:
        """Whether functions are called in this thread from now on. One with a timeout cannot be left waiting here."""
        return self._timeout == 0 and self._finish.is_brief

    def _placed(self, value: Any) -> Any:
        """Pinned, and on the loader's device, where it asks for that."""
        if self._pins:
            value = pin_memory(value)
        device = self._settings.device
        return value if device is None else to_device(value, device)

    def _next_read(self) -> None:
        if not self._waiting:
            read = self._reads.next()
            self._waiting += (read,)
        read = self._waiting[0]
        del self._waiting[0]  # a function may take a batch itself
        try:
            batch = self._finished_here(read)
        except BaseException as error:
            if is_of_signal(error):
                self._waiting = [read, *self._waiting]
            raise
        self._batch = batch

    def _finished_here(self, read: Read) -> Any:
        batch = self._finish.without_calls(read, self._reads.alone)
        if batch is not TO_CALL:
            return batch
        with self.progress.in_functions():
            finish = self._finish.here if self._num_workers > 0 else self._finish
            return self._settled(read, lambda read: finish(read, self._reads.alone))

    def _settled(self, read: Read, finish: Callable[[Read], Any]) -> Any:
        """What `finish` makes of the batch, or of what is left of it where functions of its samples raise
        (`on_error`)."""
        current: Read | None = read
        while current is not None:
            try:
                batch = finish(current)
            except Exception as error:
                if not self._reads.feeds.sets_aside(error):
                    raise
                current = self._reads.without_bad(current, error)
            else:
                self._settings.set_aside.some_were_made()
                return batch
        self._left_out += 1
        return _LEFT_OUT

    def _next_mapped(self) -> None:
        """The next batch where functions are called in threads. As many calls are under way as torch has batches, and
        their results come in order."""
        if self._reads.finished and not self._working and not self._waiting and not self._reads.ready_reads:
            raise StopIteration
        if self._threads is None:
            self._threads = Threads(self._num_workers, "penstock-map")
        self._threads.require_own_process()
        if not self._working:
            self._call_with_next(self._threads)
        if "random" not in self._settings.warned:
            self._watch_first(self._working[0][0])
        if not self._calls_here():
            self._call_with_ready(self._threads)
        with self.progress.in_functions():
            in_time = are_done([self._working[0][0]], self._timeout or None)
        if not in_time:
            raise timed_out(self._timeout)
        first, read = self._working[0]
        try:
            if read is None or self._settings.on_error == "raise":
                batch = first.result()
            else:
                batch = self._settled(read, partial(self._again_here, first, read))
        except BaseException as error:
            if is_of_signal(error) and error is not first.exception():
                raise
            del self._working[0]
            self._go_on(self._threads)
            raise
        finally:
            del first  # whose error's traceback leads here
        self._batch = batch
        del self._working[0]
        self._go_on(self._threads)

    def _go_on(self, threads: Threads) -> None:
        """Asks for a batch in the place of the one that was taken."""
        self._reads.draw()
        if not self._calls_here():
            self._call_with_ready(threads)

    def _again_here(self, future: Future[Any], read: Read, now: Read) -> Any:
        """What the thread made of the batch, or what this one makes of what is left of it."""
        return future.result() if now is read else self._finish.here(now, self._reads.alone)

    def _watch_first(self, first: Future[Any]) -> None:
        """Warns, once in a loader's life, where functions draw from generators that all threads share. Nothing else
        draws while the first batch is waited for."""
        self._settings.warned.add("random")
        are_done([first], self._timeout or None)
        drawn = drawn_since(self._states)
        if drawn:
            warnings.warn(shared_generators(drawn, "workers='processes'"), stacklevel=6)

    def _call_with_ready(self, threads: Threads) -> None:
        while self._reads.ready:
            self._call_with_next(threads)

    def _call_with_next(self, threads: Threads) -> None:
        """Starts the functions on the next batch; StopIteration behind the last."""
        try:
            if not self._waiting:
                read = self._reads.next(hold=True)
                self._waiting += (read,)
        except Exception as error:
            if not self._reads.is_of_batch(error):
                raise
            # It waits for the batches before it.
            self._states = random_states()
            future: Future[Any] = Future()
            future.set_exception(error)
            self._working += ((future, None),)
            del future  # the traceback of the error leads here
        else:
            read = self._waiting[0]
            if "random" not in self._settings.warned:
                self._states = random_states()
            future = self._started(threads, read)
            self._working += ((future, read),)
            del self._waiting[0]

    def _started(self, threads: Threads, read: Read) -> Future[Any]:
        if not read.finished:
            return threads.submit(self._finish, read, self._reads.alone)
        future: Future[Any] = Future()
        try:
            future.set_result(self._finish(read, self._reads.alone))
        except Exception as error:
            if is_of_signal(error):
                raise
            future.set_exception(error)
        return future

    def __del__(self) -> None:
        if not hasattr(self, "progress") or sys.is_finalizing():  # when much of Python is gone
            return
        try:
            self.progress.keep_stats()
        finally:
            self._stop()


_LEFT_OUT: Any = object()


def _draws(settings: Settings) -> bool:
    """Whether something may be drawn from the seed of samples, which takes as long to make as a small batch."""
    assert settings.native is not None
    plain = settings.num_workers == 0 and settings.functions is None and is_default(settings.collate_fn)
    return not plain or settings.native._draws


def _note_here(workers: Any, count: int, seconds: float, samples: int, is_here: bool) -> None:
    """How long a batch took that no process made. As many processes as `count` work at a time; the thread that takes
    batches works alone."""
    workers.note_here(seconds * (count if is_here else 1), samples)


def _warn_of_pinning(settings: Settings) -> None:
    """Gives the warnings that torch gives for each new iterator."""
    if not settings.pin_memory:
        return
    if settings.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{settings.pin_memory_device}'.",
            stacklevel=4,
        )
    if not torch.accelerator.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
            "used.",
            stacklevel=4,
        )
