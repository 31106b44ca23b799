"""Streams as torch's loader takes them: datasets that are iterated, and shared by its worker processes."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.data as torch_data

import penstock
from penstock._core import _StreamWalk
from penstock._wrong_argument import names_arguments
from penstock.torch._convert import sample_to_torch
from penstock.torch._errors import as_torchs


class _Walk:
    """The samples of one walk over a stream, which it keeps. It goes on behind an error, as a generator would not.

    Where they are taken by `batch` at a time, those of a batch that an error ends come again behind it: torch's fetcher
    drops them.
    """

    def __init__(self, stream: penstock.SampleStream, seed: int, epoch: int, part: int, parts: int, batch: int) -> None:
        self._stream = stream
        self._walk = _StreamWalk(stream._native, seed, epoch, part, parts, True)
        self._batch = batch
        self._taken: list[Any] = []  # of the batch at hand
        self._again: list[Any] = []

    def __iter__(self) -> _Walk:
        return self

    def __next__(self) -> Any:
        if len(self._taken) == self._batch:
            self._taken = []
        try:
            sample = self._again.pop(0) if self._again else self._read()
        except StopIteration:
            raise
        except BaseException:
            self._again, self._taken = self._taken, []
            raise
        self._taken.append(sample)
        return sample

    def _read(self) -> Any:
        try:
            return sample_to_torch(next(self._walk))
        except penstock.Error as error:
            raise as_torchs(error) from error.__cause__


def _shared_number() -> torch.Tensor:
    """Zero, which worker processes see change where the system has shared memory to give (/dev/shm)."""
    with torch.inference_mode(False):
        number = torch.zeros(1, dtype=torch.int64, device="cpu")
    with contextlib.suppress(RuntimeError):
        number.share_memory_()
    return number


class Stream(torch_data.IterableDataset[Any]):
    """A `penstock.SampleStream` for torch: an IterableDataset whose samples are torch tensors.

    torch's own loader takes it, with worker processes too: worker w of n gives samples w, w + n,
    ... of the stream, so that each comes once. Every worker reads the whole stream, but calls
    functions of `map` for its own samples alone.

    Parameters
    ----------
    source
        A penstock.SampleStream, or what `penstock.stream` takes.
    ranks
        (rank, size): of several processes that train together, each takes its share likewise.
    seed
        Decides shuffles and random steps, with the epoch that `set_epoch` sets.
    """

    @names_arguments
    def __init__(self, source: Any, *, ranks: tuple[int, int] = (0, 1), seed: int = 0) -> None:
        rank, size = ranks
        if not 0 <= rank < size:
            raise ValueError(f"found ranks={ranks!r}, expected a rank of 0 or more and less than the size behind it")
        self.native = source if isinstance(source, penstock.SampleStream) else penstock.stream(source)
        self.ranks = (rank, size)
        self.seed = seed
        self._told = _shared_number()  # the epoch
        self._batch = 1

    def _in_batches(self, size: int) -> Stream:
        """This stream for a loader that takes so many samples at a time."""
        made = copy.copy(self)
        made._batch = size
        return made

    def _with(self, native: penstock.SampleStream) -> Stream:
        """This stream over other samples. Both stand at one epoch, whichever of them is told it."""
        made = copy.copy(self)
        made.native = native
        return made

    @property
    def epoch(self) -> int:
        """The number of the next iteration, from 0."""
        return int(self._told)

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._told[0] = epoch

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is, for shuffles and random steps.

        Parameters
        ----------
        epoch
            Its number, from 0.
        """
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        worker = torch_data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        rank, size = self.ranks
        # Samples are dealt to ranks first: what a rank gets does not depend on its workers.
        part, parts = rank + size * number, size * workers
        return _Walk(self.native, self.seed, self.epoch, part, parts, self._batch)

    def __repr__(self) -> str:
        return f"penstock.torch.Stream({self.native!r})"
