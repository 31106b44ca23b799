"""Batches that worker processes make: `DataLoader(workers="processes")`.

The parent's threads read samples, and a worker makes the batch of them: the dataset's functions, the collation, and the
functions of batches (`Finisher`). It is the code that threads run (`_finish.py`), in another process.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from penstock._processes import processes_for
from penstock._processes._worker import here
from penstock.torch import _private
from penstock.torch.datasets._making import looks_up
from penstock.torch.datasets._road import Functions
from penstock.torch.loader._finish import Finish
from penstock.torch.loader._located import noted
from penstock.torch.loader._packing import packed
from penstock.torch.loader._reads import Read

__all__ = ["Finisher", "Finishing", "State", "method_of", "started_for"]


class Finishing(NamedTuple):
    """Who makes the batches of a loader, and what they do for it."""

    workers: Any
    finish: Finisher
    held: Any  # the same for C++; workers keep their copies while it lives


class State(NamedTuple):
    """What the thread that iterates has set of torch, as far as another process can have it."""

    grad: bool
    inference: bool
    dtype: torch.dtype
    autocast: bool
    autocast_dtype: torch.dtype
    deterministic: bool

    @staticmethod
    def now() -> State:
        return State(
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            torch.get_default_dtype(),
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
            torch.are_deterministic_algorithms_enabled(),
        )

    def call(self, function: Callable[..., Any], *args: Any) -> Any:
        torch.set_default_dtype(self.dtype)
        if torch.are_deterministic_algorithms_enabled() != self.deterministic:
            torch.use_deterministic_algorithms(self.deterministic)
        with (
            torch.inference_mode(self.inference),
            torch.set_grad_enabled(self.grad),
            torch.autocast("cpu", self.autocast_dtype, self.autocast),
        ):
            return function(*args)


def left_behind() -> list[str]:
    """What this thread has set that no other process can have."""
    modes = [type(mode).__name__ for mode in _private.function_mode_stack()]
    return [*modes, *(type(mode).__name__ for mode in _private.dispatch_mode_stack())]


class Finisher:
    """What a worker process does with (indices, samples, seed). It pickles; each worker has a copy, whose dataset is
    the one that `worker_init_fn` finds by `get_worker_info`. `apart`: whether samples come, or their batch."""

    def __init__(
        self,
        dataset: Any,
        collate_fn: Callable[[Any], Any],
        functions: Functions | None,
        alone: bool,
        init: Callable[[int], None] | None,
    ) -> None:
        # What is read by the parent does not travel, unless the program wants to see it there.
        self._dataset = dataset if init is not None or (functions is not None and looks_up(functions.make)) else None
        self._collate_fn = collate_fn
        self._functions = None if functions is None else functions._replace(dataset=None)
        self._alone = alone
        self._init = init
        self._state = State.now()
        self.apart = True
        self._is_ready = False

    def __call__(self, given: Any) -> Any:
        return self._state.call(self._made, *given)

    def _made(self, indices: list[int], samples: Any, seed: int) -> Any:
        number = here.number or 0
        own = seed_of(seed, indices)
        _private.set_worker_info(_private.worker_info_of(number, here.count, own, self._dataset))
        try:
            if not self._is_ready:
                self._is_ready = True
                if self._init is not None:
                    self._init(number)
            seed_generators(own)
            finish = _Noting(_Uninformed(self._collate_fn), self._functions, seed)
            return packed(finish(Read(indices, samples, self.apart), self._alone))
        finally:
            _private.set_worker_info(None)


def seed_of(seed: int, indices: Sequence[int]) -> int:
    """What the generators of a process begin with for a batch: it follows from the epoch's seed and the batch, so that
    it does not matter which process makes it."""
    first = indices[0] if indices else 0
    digest = hashlib.blake2b(f"{seed},{first},{len(indices)}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def seed_generators(seed: int) -> None:
    """As torch seeds its workers, and NumPy's and Python's generators too."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


class _Uninformed:
    """A collation that does not know of being in a worker: torch's would take memory in /dev/shm, of which containers
    have little, and the batch is copied into memory of the loader's anyway."""

    def __init__(self, collate: Callable[[Any], Any]) -> None:
        self._collate = collate

    def __call__(self, samples: Any) -> Any:
        info = _private.worker_info()
        _private.set_worker_info(None)
        try:
            return self._collate(samples)
        finally:
            _private.set_worker_info(info)


class _Noting(Finish):
    """As in threads; errors are located where the names of samples are."""

    def __init__(self, collate_fn: Callable[[Any], Any], functions: Functions | None, seed: int) -> None:
        super().__init__(collate_fn, functions, str, seed=seed)

    def _located(self, error: Exception, indices: Sequence[int]) -> Exception:
        noted(error, indices)
        return error


def method_of(context: Any) -> str:
    """How processes start, by `multiprocessing_context`; ValueError for a way that is not safe here."""
    name = context if isinstance(context, str) or context is None else context.get_start_method()
    if name in (None, "forkserver"):
        return "forkserver"
    if name == "spawn":
        return "spawn"
    raise ValueError(
        f"found multiprocessing_context={name!r} with workers='processes', expected 'forkserver' or 'spawn': this "
        "process has threads that read, and a fork of it may wait for ever for a lock that one of them holds"
    )


def started_for(count: int, context: Any) -> Any:
    return processes_for(count, method_of(context))
