"""Batches of samples that the dataset makes one by one.

`SampleFeed` takes the place of C++'s `_Feed` for samples that C++ has no form for: sparse and quantized tensors, sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from penstock.torch.loader._signals import is_of_signal
from penstock.torch.loader._threads import Threads, are_done
from penstock.torch.loader._timeout import timed_out


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
        self.pushed = 0
        self._unread: deque[list[int]] = deque()
        self._reads: deque[list[Future[Any]]] = deque()

    def push(self, indices: Iterable[int]) -> None:
        if self._pool is None:
            self._unread += (list(indices),)
        else:
            self._reads += ([self._pool.submit(self._dataset.__getitem__, index) for index in indices],)
        self.pushed += 1

    @property
    def ready(self) -> bool:
        """Whether `next` would give something without waiting."""
        return bool(self._reads) and all(read.done() for read in self._reads[0])

    def next(self, arrived: list[Any]) -> bool:
        """Adds the samples of the oldest push to `arrived`. An error belongs to one batch."""
        if self._pool is None:
            unread = self._unread[0]
            del self._unread[0]  # a dataset may take a batch itself
            try:
                samples = [self._dataset[index] for index in unread]
            except BaseException as error:
                if is_of_signal(error):
                    self._unread.appendleft(unread)
                raise
            arrived += (samples,)
            return True
        self._pool.require_own_process()
        if not are_done(self._reads[0], self._timeout):
            raise timed_out(self._timeout)
        samples = []
        try:
            for number in range(len(self._reads[0])):
                samples.append(self._reads[0][number].result())  # unnamed: an error's traceback would lead back to it
        except BaseException as error:
            if error is self._reads[0][number].exception():
                del self._reads[0]
            raise
        del self._reads[0]
        arrived += (samples,)
        return True

    def stats(self) -> dict[str, Any]:
        """Nothing, because nothing is counted here."""
        return {}

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
