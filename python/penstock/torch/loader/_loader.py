"""The class `DataLoader` that users see: torch's, argument by argument, over Penstock's reading.

It decides which iterator an epoch gets: ours where C++ can read the dataset, otherwise one of torch's. It keeps what
outlives an iteration: the samples that were set aside, the progress of the newest iteration, and a state that the next
one goes on from.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch
import torch.utils.data as torch_data
from typing_extensions import TypeVar

import penstock
from penstock._asked import attribute
from penstock._batches.ranks import compare, resolved
from penstock._batches.stats import LoaderStats
from penstock._core import _require_loader_options, _typed
from penstock._processes import without_workers, workers_argument
from penstock._wrong_argument import names_arguments
from penstock.torch._devices import device_of, present
from penstock.torch._shared_parts import bounded
from penstock.torch.datasets._dataset import Dataset
from penstock.torch.datasets._making import Both
from penstock.torch.datasets._road import Functions, Road, draws_alike, promise
from penstock.torch.datasets._stream import Stream
from penstock.torch.datasets._taken_apart import NotNativeWarning
from penstock.torch.loader._collation import explained
from penstock.torch.loader._dealing import Dealing, Order, deal, seed_of
from penstock.torch.loader._epochs import with_epochs
from penstock.torch.loader._iteration import Iteration
from penstock.torch.loader._order import order_of
from penstock.torch.loader._position import Position
from penstock.torch.loader._processes import (
    Chosen,
    Finisher,
    Started,
    chosen,
    require_processes,
    why_it_stays,
)
from penstock.torch.loader._progress import Progress
from penstock.torch.loader._set_aside import SetAside
from penstock.torch.loader._settings import settings_of
from penstock.torch.loader._torch_iterators import before_first, iterator_of
from penstock.torch.loader._worker_states import has_state

_Sample = TypeVar("_Sample", covariant=True, default=Any)


class DataLoader(torch_data.DataLoader[_Sample]):
    """torch's DataLoader, argument by argument, for any dataset.

    Of a Penstock dataset (`Rows`, `Files`, `penstock.files`, ..., and what `random_split`, `Subset`,
    `ConcatDataset` and `StackDataset` make of them) it reads the batches natively: `num_workers`
    threads of C++ read the samples straight into the batch's memory, without processes and without the
    interpreter lock. The order of samples is torch's for the same generator and samplers, bit by bit,
    for any number of workers. Every other dataset goes to torch's own loader with the same arguments;
    so does one with a `worker_init_fn`, which only processes have a use for. Where a Penstock dataset
    is inside, a NotNativeWarning says why; `explain()` and `stats()["road"]` tell it too.

    `state_dict()` and `load_state_dict()` resume exactly in the middle of an epoch, with any number of
    workers, and the epochs behind it are those of the run that was not stopped: the iteration that
    goes on puts the generators where they stood, torch's global one where the order comes from it.
    Between epochs no order is drawn yet, and a seed that the program sets after loading counts. All
    datasets have states, with torchdata's StatefulDataLoader protocol: Python's own are counted on,
    iterable ones gone through again, and those (or their iterators) with `state_dict` and
    `load_state_dict` asked where torch's own loader has them; elsewhere a warning says that they are
    not.

    Several threads may take from one iterator: each batch comes to one of them.

    Parameters
    ----------
    dataset
        A dataset of Penstock's or of torch's, or a sequence of samples.
    batch_size
        How many samples make a batch; None gives samples by themselves.
    shuffle
        Draw the order of each epoch anew.
    sampler
        Gives the indices of the samples in their order.
    batch_sampler
        Gives a list of indices for each batch.
    num_workers
        How many threads read (processes on torch's road); 0 reads in the caller's thread.
    collate_fn
        Makes a batch of a list of samples. None and `default_collate` are done natively, and so are
        `pad_to`, `pad`, `ragged` and `stack` of this module; any other function is called in the
        caller's thread with the list of samples as torch tensors.
    pin_memory
        Put batches into pinned memory, where there is an accelerator.
    drop_last
        Leave out a last batch that is not full.
    timeout
        Seconds to wait for a batch, then LoaderTimeoutError; 0 waits for ever.
    worker_init_fn
        Called in each worker process. A loader with it is torch's own, unless `workers` is
        "processes".
    multiprocessing_context
        How torch's own loader starts processes. With `workers="processes"`: "forkserver", which None
        is then, "spawn" or "fork". Forks are made when the first iterator is, and refused while other
        threads of Python or of Penstock run, which may hold locks.
    generator
        What the order is drawn from; None is torch's global one.
    prefetch_factor
        How many batches for each worker are prepared ahead; None is 2.
    persistent_workers
        Keep the workers from one epoch to the next.
    pin_memory_device
        As in torch, which no longer uses it.
    in_order
        Whether batches of torch's own loader come in the order of the sampler; natively they always do.
    snapshot_every_n_steps
        Taken for programs written for torchdata's loader; positions are exact after each batch.
    device
        Where batches go. Batches that are collated natively are copied to a CUDA device through
        Penstock's pinned ring while the next are read, and are ordered behind the copies on torch's
        current stream; `pin_memory` has nothing to do then. Others are moved by torch when they are
        taken, after `pin_memory` if that is set.
    on_error
        What a sample does that cannot be read, or whose function raises. "raise": the error names it
        and its file, and the iterator can go on with the next batch. "skip": the batch is delivered
        without it. "replace": the next sample takes its place. "mask": it does so too, and the loader
        gives pairs `(batch, valid)`, also where all samples are good: `valid` is a bool tensor with one
        element for each sample of the batch, False where another stands in, which is to be ignored. It
        goes where its batch goes (`device`, `pin_memory`); without batches (`batch_size=None`) it is a
        bool. A batch of which no sample can be read is given too; where the whole dataset has none,
        that is an error. Which ones were left out, and why, is in `set_aside`: each is tried once in
        the life of a loader, and a loader that resumes takes them over from the state. What comes from
        a store (expired keys, no answer) is raised, and so is a run of more than 100 such samples,
        which is taken for an outage.
    memory_budget
        Bytes of batches prepared ahead, at most; None is 1 GiB.
    ranks
        Deals the order out among the processes of a distributed program: "auto" for what
        `penstock.ranks()` finds, a pair (rank, size), or a `penstock.Ranks`. Without a sampler the
        order is that of torch's DistributedSampler, with the seed of `generator` (0 without one), and
        another one in each epoch without `set_epoch`. Another sampler's order, or the batches of a
        `batch_sampler`, are dealt out in turn. A DistributedSampler of the program's own stays as it
        is, and has to agree.
    remainder
        What becomes of the last samples where not every rank would get one: "pad" repeats the first
        ones, "drop" leaves them out, "exact" repeats the first ones and makes each batch a pair
        `(batch, valid)`, so that all ranks together count each sample once.
    gather
        Takes a text and gives the texts of all ranks. The loader finds out with it, when it is made,
        whether all ranks have the same dataset, seed and options. None is torch.distributed, where
        the ranks come from there; False compares nothing.
    dtype
        The type that floating-point and complex tensors of a Penstock dataset get on the way into the
        batch, as by `Module.to(dtype)`: integers and bools stay. "promote" takes the type that the
        types of all samples promote to.
    strict
        Raise where a value does not fit into the type.
    workers
        Who calls Python's functions (`map`, `collate_fn`, a dataset of the program's own): "threads",
        or "processes" of Penstock's. Then `num_workers` threads read all samples, and as many
        processes make the batches, which arrive in shared memory without a copy. Order, resume and
        seeded functions are those of threads. Functions are sent by pickle, or by cloudpickle where
        that is installed, and run with one thread of torch, and with the default dtype, autocast of
        the CPU and gradient mode that the iteration began with. Any dataset with a length is taken.
        Without workers, and in interpreters without a lock, functions are called in threads. "auto"
        makes a few batches in each way and goes on in the one that took less time; `explain()` says
        which, and why. Functions that cannot be sent are called in threads then, and what threads
        cannot do (a dataset class of the program's own, `worker_init_fn`) is done by processes. So
        functions must not depend on who calls them: let them draw by `seeded=True`.
    """

    ranks: penstock.Ranks | None
    remainder: str
    gather: Any
    memory_budget: int | None
    workers: str
    on_error: str
    native: penstock.Dataset | None
    device: torch.device | None
    _warned: set[str]
    _processes: Started
    _why_stays: str | None
    _choice: Chosen
    _road: Road
    _functions: Functions | None
    _dealing: Dealing | None
    _set_aside: SetAside
    _resume: Position | None
    _latest: Progress | None

    @names_arguments
    def __init__(
        self,
        dataset: torch_data.Dataset[_Sample] | Sequence[_Sample] | penstock.Dataset | penstock.SampleStream,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | penstock.Collate | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        snapshot_every_n_steps: int | None = None,
        device: str | torch.device | None = None,
        on_error: Literal["raise", "skip", "replace", "mask"] = "raise",
        memory_budget: int | None = None,
        ranks: penstock.Ranks | tuple[int, int] | Literal["auto"] | None = None,
        remainder: Literal["pad", "drop", "exact"] = "pad",
        gather: Callable[[str], list[str]] | bool | None = None,
        dtype: torch.dtype | str | None = None,
        strict: bool = False,
        workers: Literal["threads", "processes", "auto"] = "threads",
    ) -> None:
        if isinstance(num_workers, str):
            raise TypeError(
                f"num_workers is {num_workers!r}; it must be a number here, as of torch's loader (penstock.DataLoader "
                "finds one by itself)"
            )
        if isinstance(dataset, penstock.Dataset):
            dataset = Dataset(dataset)
        elif isinstance(dataset, penstock.SampleStream):
            dataset = Stream(dataset)
        if dtype is not None or strict:
            dataset = _cast(dataset, dtype, strict)
        # Into the dict at once, here and below, because torch's class looks at each attribute that is set.
        own = resolved(ranks)
        vars(self).update(
            ranks=own,
            remainder=remainder,
            gather=gather,
            memory_budget=_require_loader_options(own, remainder, on_error, bool(drop_last), memory_budget),
            workers=workers_argument(workers),
            on_error=on_error,
            device=None,
            _warned=set(),
            _processes=Started(),
            _why_stays=None,
            _dealing=None,
            _set_aside=SetAside(),
            _resume=None,
            _latest=None,
        )
        choice = self._chosen(dataset, num_workers, worker_init_fn, collate_fn)
        if choice.road.processes:
            require_processes(multiprocessing_context)
        self._take(choice, collate_fn, on_error)
        order = Order(batch_size, shuffle, sampler, batch_sampler)
        if self.ranks is not None:
            order, self._dealing = self._dealt(dataset, order, generator, self.ranks, in_order)
        super().__init__(
            dataset,  # type: ignore[arg-type]
            order.batch_size,
            order.shuffle,
            order.sampler,
            order.batch_sampler,
            num_workers,
            collate_fn,  # type: ignore[arg-type]
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        if device is not None:
            self.device = device_of(device)
        self._say_what_is_lost()
        compare(own, gather, self._told(), self.native)

    def _dealt(
        self, dataset: Any, order: Order, generator: Any, ranks: penstock.Ranks, in_order: bool
    ) -> tuple[Order, Dealing]:
        """The order of this loader's rank."""
        if order.sampler is not None and order.shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        order, dealing = deal(dataset, order, generator, ranks, self.remainder)
        if dealing.masks and self.native is None and (order.batch_sampler is not None or not in_order):
            raise ValueError(
                "remainder='exact' with a batch_sampler or in_order=False needs a dataset that is read natively "
                f"({self._road.reason})"
            )
        return order, dealing

    def _told(self) -> dict[str, Any]:
        """What all ranks have to be told alike."""
        if self._dealing is None:
            return {}
        begin = Position.now(settings_of(self))
        return {
            "the number of samples": begin.samples,
            "the seed": attribute(self.sampler, "seed", seed_of(attribute(order_of(self), "generator"))),
            "the order": begin.order,
            "the batch size": self.batch_size,
            "the number of batches": begin.batches,
            "the remainder": self.remainder,
        }

    def __getstate__(self) -> dict[str, Any]:
        # A copy is of the loader, not of an iteration of it with its workers.
        return {**vars(self), "_latest": None, "_iterator": None, "_processes": Started()}

    def _apart(self) -> DataLoader[_Sample]:
        """A copy of the loader as it is now, which an iteration may change and keep."""
        twin: DataLoader[_Sample] = object.__new__(type(self))
        vars(twin).update(self.__getstate__())
        return twin

    def check_worker_number_rationality(self) -> None:
        """As torch's, for processes; threads that only read are cheap."""
        if self.native is None:
            super().check_worker_number_rationality()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self.device = None if self.device is None else present(self.device)  # which may be set
        if self.native is not None:
            # Indices of a Subset, and the worker_init_fn, may have changed since.
            choice = self._chosen(self.dataset, self.num_workers, self.worker_init_fn, self.collate_fn)
            self._take(choice, self.collate_fn, self.on_error)
            if self.native is None:
                self._say_what_is_lost()
        if self.native is None:
            iterator = self._torchs_iterator()
            self._latest = iterator.progress
            return iterator  # type: ignore[no-any-return]
        if self.num_workers > 0 and self.prefetch_factor == 0:
            raise AssertionError("prefetch_factor must be greater than 0 with workers")
        resume, self._resume = self._resume, None
        persistent = self.persistent_workers and self.num_workers > 0
        if persistent and isinstance(self._iterator, Iteration):
            self._iterator.restart(settings_of(self, self._processes.finishing(self, self._choice)), resume)
            self._latest = self._iterator.progress
            return self._iterator
        # Threads may iterate at the same time: each gets the one that it asked for.
        iteration = Iteration(settings_of(self, self._processes.finishing(self, self._choice)), resume)
        self._latest = iteration.progress
        if persistent:
            self._iterator = iteration
        return iteration

    def _chosen(self, dataset: Any, num_workers: int, init: Any, collate_fn: Any) -> Chosen:
        def why_not_there(road: Road) -> str:
            if self._why_stays is None:  # asked once, because it pickles the dataset
                self._why_stays = why_it_stays(Finisher(dataset, collate_fn, road.functions, False, init))
            return self._why_stays

        return chosen(dataset, self.workers, num_workers, init, why_not_there)

    def _torchs_iterator(self) -> Any:
        """The iterator of torch's own loader, which calls functions of batches behind the collation."""
        resume, self._resume = self._resume, None
        twin, functions = self._apart(), self._functions
        vars(twin).update(collate_fn=bounded(self.collate_fn, storages=False))
        if functions is not None and functions.batch is not None:
            vars(twin).update(dataset=functions.dataset, collate_fn=Both(twin.collate_fn, functions.batch))
        persistent = self.persistent_workers and self.num_workers > 0
        if persistent and self._iterator is not None and resume is None:
            self._iterator._reset(twin)
            return self._iterator
        self._iterator = None  # with its workers, which know another position
        iterator = iterator_of(twin, resume)
        if persistent:
            self._iterator = iterator
        return iterator

    @property
    def _index_sampler(self) -> Any:
        given = vars(self).get("_given_indices")
        if given is not None:
            return given
        batches = self.batch_sampler  # asked here, as torch's property does, because len() is asked for often
        return with_epochs(self.sampler if batches is None else batches, order_of(self))

    @property
    def set_aside(self) -> list[tuple[int, str, str]]:
        """Samples that `on_error` left out so far: index, what it is (its file), and why."""
        return self._set_aside.listed()

    def stats(self) -> dict[str, Any]:
        """Counts, bytes and seconds of the newest iteration, as far as there is one that was read natively.

        Returns
        -------
        dict
            "road" is "native", or "torch" where torch's own loader makes the batches; then "reason" says
            why.
        """
        if self.native is None:
            return {"road": "torch", "reason": self._road.reason}
        figures = {} if self._latest is None else self._latest.stats()
        return LoaderStats({"road": "native", **figures}, str(figures)) if figures else {"road": "native"}

    def explain(self) -> str:
        """Who reads the dataset's samples, who makes batches of them, and why: a sentence for people."""
        why = f"; workers='auto': {self._processes.because(self._choice)}" if self.workers == "auto" else ""
        if self.native is None:
            return f"torch's own loader: {self._road.reason}{why}"
        in_processes = self._road.processes and not self._processes.calls_here(self._choice)
        return f"{explained(settings_of(self), in_processes)}{why}"

    def _take(self, choice: Chosen, collate_fn: Any, on_error: str) -> None:
        road = choice.road
        _require_native(road, collate_fn, on_error)
        vars(self).update(_choice=choice, _road=road, native=road.native, _functions=road.functions)

    def _say_what_is_lost(self) -> None:
        """Warns, once in a loader's life, of what a Penstock dataset or an argument of Penstock's cannot do on its
        road."""
        lost = []
        if self.native is not None:
            kept = {"on_error": None if self.on_error == "raise" else self.on_error, "device": self.device}
            told = " and ".join(f"{name}={str(value)!r}" for name, value in kept.items() if value is not None)
            if told:
                promise(self.dataset, told)
        elif not self._road.asked:
            lost.append(f"this dataset goes to torch's own loader: {self._road.reason}")
        if self.native is None and self.memory_budget is not None:
            lost.append(f"memory_budget bounds native reading alone, and {self._road.reason}; leave it out")
        if draws_alike(self._road, self.dataset):
            lost.append(
                "random steps of a Penstock dataset that Python code reads are those of epoch 0 in each epoch; "
                "give the loader that dataset, and what the code does as .map(function)"
            )
        for text in filter(None, (*lost, without_workers(self._choice.asked, self.num_workers))):
            warnings.warn(text, NotNativeWarning, stacklevel=4)

    def state_dict(self) -> dict[str, Any]:
        """Where the newest iteration stands, after the last batch it gave.

        Returns
        -------
        dict
            Plain data that torch.save and json take, as far as the program's own states are.
        """
        if self.native is not None and "state" not in self._warned and has_state(self.dataset):
            self._warned.add("state")
            warnings.warn(
                f"{type(self.dataset).__name__} has a state_dict, of which this state has nothing, because its samples "
                "are read ahead by threads, or made of copies in worker processes; save the dataset's state beside it, "
                "or have torch's own workers report it: a dataset class of your own, without workers='processes'",
                NotNativeWarning,
                stacklevel=2,
            )
        if self._resume is not None:
            return self._resume.to_dict()
        settings = settings_of(self)
        position = self._latest.position(settings) if self._latest is not None else Position.now(settings)
        if self._latest is None and self.native is None:
            position.python = before_first(self.dataset)
        return position.to_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next iteration goes on from there.

        Parameters
        ----------
        state_dict
            What `state_dict` gave, of a loader of the same dataset, batch size and order.

        Raises
        ------
        ValueError
            For what is no such state, or that of another dataset, batch size or order.
        """
        settings = settings_of(self)
        self._resume = Position.from_dict(state_dict, settings)
        self._resume.load(settings)


def _require_native(road: Road, collate_fn: Any, on_error: str) -> None:
    if road.native is not None:
        if isinstance(collate_fn, penstock.Collate) and road.functions is not None and road.functions.make is not None:
            raise TypeError(
                "pad, pad_to, ragged and stack of penstock work on what is read, and functions of Python's make other "
                "samples of that; take those of penstock.torch"
            )
        return
    if isinstance(collate_fn, penstock.Collate):
        raise TypeError(
            "pad, pad_to, ragged and stack of penstock work on Penstock datasets alone; for this one take those of "
            f"penstock.torch ({road.reason})"
        )
    if on_error != "raise":
        raise ValueError(
            f"on_error={on_error!r} needs a Penstock dataset that is read natively, without worker_init_fn in threads, "
            "or for another one with a length workers='processes' and num_workers; otherwise leave it out "
            f"({road.reason})"
        )


def _cast(dataset: Any, dtype: Any, strict: bool) -> Any:
    """The dataset with tensors of that type."""
    if isinstance(dataset, Stream) and type(dataset).__iter__ is Stream.__iter__:
        return dataset._with(_typed(dataset.native, dtype, strict))
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"dtype= is for datasets of Penstock's; the samples of {type(dataset).__name__} are made by Python, where "
            "they are cast too: in the function of map, or by dtype= of what it maps"
        )
    return dataset._with(_typed(dataset.__penstock_dataset__(), dtype, strict))
