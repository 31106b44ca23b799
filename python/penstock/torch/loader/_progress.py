"""How far an iteration of penstock.torch.DataLoader has come.

The loader keeps this object when the iterator is gone, because `state_dict()` and `stats()` may be asked for then. So
it refers to the reading only weakly and keeps the last figures itself.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from penstock._batches.stats import LoaderStats
from penstock.torch.loader._drawn import Drawn
from penstock.torch.loader._position import Position
from penstock.torch.loader._reads import Reads
from penstock.torch.loader._settings import Settings

_MUCH = 0.5  # of the time


class Progress:
    """What a loader keeps of its newest iteration.

    `given` counts the batches that the user has had, and those left out. `sums` is the checksum of those that the
    sampler gave. `function_seconds` is how
    long the caller waited for Python's functions: the dataset's and `collate_fn`.
    """

    def __init__(self, begin: Position, sums: Drawn, reads: Reads | None = None) -> None:
        self._begin = begin
        self._reads = _nothing if reads is None else weakref.ref(reads)
        self._last: Callable[[], dict[str, Any]] = dict
        self.given = begin.batch
        self.drawn = begin.batch  # of the sampler
        self.sums = sums
        self.ended = False  # the sampler is
        self.pending: list[int] | None = None  # batches that were drawn and not given, where others overtook them
        # What torch's own iterators know; asked with whether they are finished.
        self.python: Callable[[bool], dict[str, Any] | None] = _nothing
        self.finished = False
        self.function_seconds = 0.0

    def position(self, settings: Settings) -> Position:
        """The place after the last batch that was given; behind the end of the epoch, the beginning of the next one."""
        if self.finished:
            restarts = self._begin.restarts + 1 if settings.persistent_workers else 0
            position = Position.now(settings, draws_seed=not settings.persistent_workers, restarts=restarts)
        else:
            sums = self.sums.text()
            position = self._begin.after(self.given, self.drawn, self.ended, settings, self.pending, sums)
        position.python = self.python(self.finished)
        return position

    def in_functions(self) -> _InFunctions:
        """Counts the time of the block as time in functions."""
        return _InFunctions(self)

    def stats(self) -> dict[str, Any]:
        reads = self._reads()
        return _with_functions(self._last() if reads is None else reads.stats(), self.function_seconds)

    def keep_stats(self) -> None:
        """Keeps the last figures, before the iteration is gone."""
        reads = self._reads()
        if reads is not None:
            self._last = reads.last_stats()


class _InFunctions:
    """No generator, which takes a microsecond more for each batch."""

    __slots__ = ("_begin", "_progress")

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._progress.function_seconds += time.perf_counter() - self._begin


def _nothing(*_: Any) -> None:
    """Stands for a weak reference to nothing, and for an iterator that knows nothing more."""


def _with_functions(stats: dict[str, Any], seconds: float) -> dict[str, Any]:
    """The figures with the time in functions apart: the reading counts it as the caller's own time."""
    if not stats:
        return stats
    figures = {**stats, "function_seconds": seconds}
    figures["caller_seconds"] = max(0.0, stats["caller_seconds"] - seconds)
    # Reading may have begun anew, without what was counted before.
    whole = max(stats["caller_seconds"] + stats["wait_seconds"], seconds)
    if seconds > _MUCH * whole > 0:
        figures["bottleneck"] = "functions"
        figures["limit"] = (
            "functions of Python's are the limit, the dataset's and collate_fn: the caller waits for them "
            f"{seconds / whole:.0%} of the time; workers='processes' runs them on all processors"
        )
    return LoaderStats(figures, str(stats).replace(stats["limit"], figures["limit"]))
