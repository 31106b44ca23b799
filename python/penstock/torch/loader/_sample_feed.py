"""Batches of samples that the dataset makes one by one.

`SampleFeed` takes the place of C++'s `_Feed` for samples that C++ has no form for: sparse and quantized tensors, sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from penstock.torch.loader._threads import Threads, are_done
from penstock.torch.loader._timeout import timed_out

__all__ = ["SampleFeed"]


class SampleFeed:
    """Does what `_Feed` does, with `dataset[i]` for each sample.

    `workers` threads make samples at the same time; without workers the samples of a batch are made
    when it is taken. At most as many samples as `window` batches hold lie ready.
    """

    def __init__(self, dataset: Any, workers: int, factor: int, timeout: float) -> None:
        self.window = max(1, workers * factor)
        self._dataset = dataset
        self._timeout = timeout or None
        self._pool = Threads(workers, "penstock-samples") if workers > 0 else None
        self._unread: deque[list[int]] = deque()
        self._reads: deque[list[Future[Any]]] = deque()

    def push(self, indices: Iterable[int]) -> None:
        if self._pool is None:
            self._unread.append(list(indices))
        else:
            self._reads.append([self._pool.submit(self._dataset.__getitem__, index) for index in indices])

    @property
    def ready(self) -> bool:
        """Whether `next` would give something without waiting."""
        return bool(self._reads) and all(read.done() for read in self._reads[0])

    def next(self) -> list[Any]:
        """The samples of the oldest push. An error belongs to one batch."""
        if self._pool is None:
            return [self._dataset[index] for index in self._unread.popleft()]
        self._pool.require_own_process()
        if not are_done(self._reads[0], self._timeout):
            raise timed_out(self._timeout)
        reads, samples = self._reads.popleft(), []
        while reads:
            samples.append(reads.pop(0).result())  # unnamed: an error's traceback would lead back to it
        return samples

    def stats(self) -> dict[str, Any]:
        """Nothing, because nothing is counted here."""
        return {}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
