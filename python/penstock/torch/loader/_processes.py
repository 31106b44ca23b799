"""Batches that worker processes make: `DataLoader(workers="processes")`.

The parent's threads read samples, and a worker makes the batch of them: the dataset's functions, the collation, and the
functions of batches (`Finisher`). It is the code that threads run (`_finish.py`), in another process.
"""

from __future__ import annotations

import hashlib
import operator
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import torch
import torch.utils.data as torch_data

from penstock._core import _HeldFunction, _note_part
from penstock._processes import method_of, processes_for, why_threads
from penstock._processes._functions import pickled
from penstock._processes._worker import here
from penstock.torch import _private
from penstock.torch._shared_parts import bounded, collated_by
from penstock.torch.datasets._making import looked_up
from penstock.torch.datasets._road import Functions, Road, asks_for_processes, penstocks_in, road_of
from penstock.torch.loader._collation import is_default
from penstock.torch.loader._feeds import Read
from penstock.torch.loader._finish import Finish
from penstock.torch.loader._located import noted
from penstock.torch.loader._packing import packed, stacked_in_answer


class Finishing(NamedTuple):
    """Who makes the batches of a loader, and what they do for it."""

    workers: Any
    finish: Finisher
    held: Any  # the same for C++; workers keep their copies while it lives
    trial: bool  # some batches come unfinished, because it is to be found out who makes them sooner


class Chosen(NamedTuple):
    """The road of a dataset by `workers`, and why it is that one. `asked`: what is asked for by `workers`, or by a
    function of the dataset; `trial`: both ways are tried as batches are made."""

    road: Road
    asked: str
    why: str
    trial: bool = False


def chosen(dataset: Any, workers: str, num_workers: int, init: Any, why_not_there: Callable[[Road], str]) -> Chosen:
    """`why_not_there`: why Python's part of a road in processes cannot get there, if it cannot."""
    ours = penstocks_in(dataset)
    asked = "processes" if asks_for_processes(ours) else workers
    why = why_threads(asked, num_workers)
    if why:
        return Chosen(road_of(dataset, init, ours=bool(ours)), asked, why)
    there = road_of(dataset, init, True)
    if asked == "processes" or there.native is None:
        return Chosen(there, asked, f"workers={asked!r}")
    here = road_of(dataset, init, ours=bool(ours))
    if here.native is not None:
        return Chosen(there, asked, "both ways are measured as batches are made", True)
    # What threads cannot do is done by processes, ours or torch's.
    why = why_not_there(there)
    return Chosen(here, asked, why) if why else Chosen(there, asked, f"threads cannot, because {here.reason}")


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
        if State.now() == self:  # as for most programs, and to set all of it takes as long as ten samples
            return function(*args)
        torch.set_default_dtype(self.dtype)
        if torch.are_deterministic_algorithms_enabled() != self.deterministic:
            torch.use_deterministic_algorithms(self.deterministic)
        with (
            torch.inference_mode(self.inference),
            torch.set_grad_enabled(self.grad),
            torch.autocast("cpu", self.autocast_dtype, self.autocast),
        ):
            return function(*args)


def _left_behind() -> list[str]:
    """What this thread has set that no other process can have."""
    modes = [type(mode).__name__ for mode in _private.function_mode_stack()]
    return [*modes, *(type(mode).__name__ for mode in _private.dispatch_mode_stack())]


def require_processes(context: Any) -> None:
    """ValueError where processes cannot start in that way; warns of what they will not have."""
    method_of(context)
    left = _left_behind()
    if left:
        warnings.warn(
            f"{' and '.join(left)} of torch stay in this process, and do not change what worker processes compute",
            stacklevel=4,
        )


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
        at_once: bool = False,
    ) -> None:
        # What is read by the parent does not travel, unless the program wants to see it there.
        looks_up = functions is not None and any(True for _ in looked_up(functions.make))
        self._dataset = dataset if init is not None or looks_up else None
        self._collate_fn = _with_its_types(collate_fn)
        self._functions = None if functions is None else functions._replace(dataset=None)
        self._alone = alone
        self._init = init
        self._at_once = at_once
        self._state = State.now()
        self.apart = True
        self._is_ready = False

    def __repr__(self) -> str:
        """As an error names what cannot be sent."""
        return "what the dataset, its functions or collate_fn do"

    def is_of_now(self) -> bool:
        """Whether this thread has set of torch what it had when this was made, under which it makes batches."""
        return self._state == State.now()

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
            finish = _Noting(self._collate_fn, self._functions, seed, self._at_once)
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
    if _has_accelerator():
        torch.manual_seed(seed)
    else:  # without a look for devices, which takes ten times as long
        torch.default_generator.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


@cache
def _has_accelerator() -> bool:
    return torch.accelerator.is_available()


def _with_its_types(collate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """torch's default_collate with the types that this process has taught it, which workers have not; others
    unchanged."""
    if collate is not torch_data.default_collate or is_default(collate):
        return collate
    taught = partial(_private.collate, collate_fn_map=dict(_private.default_collate_fn_map))
    return partial(collated_by, taught)


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
    """As in threads; errors are located where the names of samples are. The parent is told at which sample it is, which
    that blames where the process ends."""

    _note = staticmethod(_note_part)

    def __init__(self, collate_fn: Callable[[Any], Any], functions: Functions | None, seed: int, at_once: bool) -> None:
        super().__init__(collate_fn, functions, str, seed=seed, at_once=at_once)
        self._collate_fn = _Uninformed(
            partial(collated_by, stacked_in_answer) if is_default(collate_fn) else bounded(collate_fn)
        )

    def _located(self, error: Exception, indices: Sequence[int]) -> Exception:
        noted(error, indices)
        return error


class Started:
    """The processes of a loader, which stay from one iteration to the next."""

    def __init__(self) -> None:
        self._asked: Any = None
        self._workers: Any = None
        self._finisher: Any = None

    def finishing(self, loader: Any, choice: Chosen) -> Finishing | None:
        """Who calls Python's functions in processes. The dataset's copies in them are new ones, unless workers are
        persistent and torch's settings are as before."""
        if not choice.road.processes:
            return None
        method = method_of(loader.multiprocessing_context)
        asked = operator.index(loader.num_workers), method, choice.trial
        stays = self._finisher is not None and loader.persistent_workers and self._finisher[0].is_of_now()
        if self._asked != asked or not stays:
            finisher = Finisher(
                loader.dataset,
                loader.collate_fn,
                loader._functions,
                not loader._auto_collation,
                loader.worker_init_fn,
                loader.on_error == "raise",
            )
            self._finisher = finisher, _HeldFunction(finisher)
        if self._asked != asked:  # behind what forks of the program are to have
            trial = "callers" if choice.trial else None
            self._workers = processes_for(asked[0], method, trial)
            self._asked = asked
        finisher, held = self._finisher
        return Finishing(self._workers, finisher, held, choice.trial)

    def calls_here(self, choice: Chosen) -> bool:
        """Whether a trial has functions called in threads now."""
        return choice.trial and (self._workers is None or bool(self._workers.calls_here))

    def because(self, choice: Chosen) -> str:
        return str(self._workers.because) if choice.trial and self._workers is not None else choice.why


def why_it_stays(finisher: Finisher) -> str:
    """Why it cannot be sent to a process that would not run the program's main module; empty where it can."""
    try:
        pickled(finisher, runs_main=False)
    except Exception as error:
        return str(error)
    return ""
