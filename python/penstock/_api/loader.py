"""The loader: batches that threads prepare ahead."""

from __future__ import annotations

import penstock._core as _core

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from typing import Any

    from penstock._batches.ranks import Ranks
    from penstock._batches.streams import SampleStream
    from penstock._core import BatchSampler, Collate, Dataset, Sampler


class DataLoader(_core.DataLoader):
    """Iterates over a dataset in batches that threads prepare ahead.

    A batch has its samples' structure: a Tensor, a dict, a tuple for zip(), lists for strings.
    Batches are the same bit by bit for any number of workers, and their order follows from seed and
    epoch alone. Each pass over the loader is the next epoch; a pass that was broken off begins again.
    An error belongs to one batch: the loop can go on with `next(iterator)`.

    A loader can be copied, and pickled if its dataset and samplers can. The copy continues at the same
    position and writes no trace. After a fork, make a new loader in the child.

    Parameters
    ----------
    dataset
        A Dataset, or a dataset of penstock.torch that holds one.
    batch_size
        How many samples a batch has.
    shuffle
        Permute the samples anew for each epoch.
    sampler
        A Sampler or any iterable of indices, which decides the order in place of `shuffle`.
    num_workers
        How many threads prepare batches. "auto" starts one for each processor and adds more while they
        wait for storage and more of them are faster. 0 prepares batches in the loop itself.
    collate
        How samples become a batch: stack(), which is the default, pad(), pad_to(), ragged() or
        samples().
    drop_last
        Leave out the last batch if it is smaller.
    batch_sampler
        A BatchSampler or any iterable of lists of indices, in place of `batch_size`, `shuffle`,
        `sampler` and `drop_last`.
    prefetch_factor
        How many batches each worker prepares ahead at most.
    seed
        The seed of all random numbers.
    memory_budget
        How many bytes are prepared ahead at most.
    timeout
        How many seconds to wait for a batch before TimeoutError. 0 waits for ever.
    device
        The device that batches are moved to.
    trace
        A file that shows what each thread did and when: a Chrome trace, for ui.perfetto.dev. close()
        and write_trace() write it.
    collate_fn
        A function that makes the batch of the list of its samples, in place of `collate`; called in the
        threads, which take the interpreter's lock for the call alone.
    on_error
        What to do about a sample that cannot be read, or whose function raises: "raise" at its batch;
        "skip" it, so that its batch is smaller; "replace" it by the next good one; "mask" does that and
        makes each batch a pair of itself and which of its samples are those that were asked for.
        `set_aside` lists them. What comes from a store (expired keys, no answer) is raised, and so is
        a run of more than 100 such samples, which is taken for an outage.
    dtype
        The type that tensors of floating-point and complex numbers get, as by torch's Module.to(dtype);
        integers and bools stay. "promote" takes the type that the types of all promote to.
    strict
        Raise where a value does not fit into the type.
    ranks
        Deals the order out among the processes of a distributed program: "auto" for what
        penstock.ranks() finds, a pair (rank, size), or a Ranks. Rank r of n takes positions r, r + n,
        ... of the order, or with a `batch_sampler` batches r, r + n, .... `batch_size` is that of one
        rank. All ranks take the same number of steps.
    remainder
        What becomes of the last samples where not every rank would get one: "pad" repeats the first
        ones, "drop" leaves them out, "exact" repeats the first ones and makes each batch a pair of
        itself and which of its samples count, so that all ranks together count each sample once.
    gather
        Takes a text and gives the texts of all ranks, such as mpi4py's `comm.allgather`. The loader
        finds out with it, when it is made, whether all ranks have the same dataset, seed and options.
        By default torch.distributed does it where the ranks come from there; False compares nothing.
    workers
        Who calls the functions of the dataset (`map`, `dataset`) and `collate_fn`: "threads", or
        "processes", of which there are up to `num_workers` ("auto": one for each processor). Threads
        read as ever, and samples and results go there and back in shared memory. Batches are the same.
        Functions are sent by pickle, or by cloudpickle where that is installed. Without workers, and in
        interpreters without a lock, functions are called in threads. "auto" makes a few batches in each
        way and goes on in the one that took less time; `explain()` says which, and why. Functions that
        cannot be sent are called in threads then. Of a stream, processes call the functions of `map`
        and `filter`; the thread that reads calls its source.
    multiprocessing_context
        How these processes start: "forkserver", which None is, "spawn" or "fork". With "fork" they are
        forks of the program as it is when the loader is made, and have its lambdas and closures. That
        is refused while other threads of Python or of Penstock run, because a fork may wait for ever
        for a lock that one of them holds.
    """

    __slots__ = ()

    def __init__(
        self,
        dataset: Dataset | SampleStream,
        batch_size: int = 1,
        shuffle: bool = False,
        sampler: Sampler | Iterable[int] | None = None,
        num_workers: int | str = "auto",
        collate: Collate | None = None,
        drop_last: bool = False,
        *,
        batch_sampler: BatchSampler | Iterable[Iterable[int]] | None = None,
        prefetch_factor: int = 2,
        seed: int = 0,
        memory_budget: int | None = None,
        timeout: float = 0.0,
        device: object = "cpu",
        trace: str | os.PathLike[str] | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        on_error: str = "raise",
        dtype: object | None = None,
        strict: bool = False,
        ranks: Ranks | tuple[int, int] | str | None = None,
        remainder: str = "pad",
        gather: Callable[[str], list[str]] | bool | None = None,
        workers: str = "threads",
        multiprocessing_context: str | None = None,
    ) -> None:
        given = locals()
        del given["self"]
        _core.DataLoader.__init__(self, given)

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch at its first batch.

        Parameters
        ----------
        epoch
            Its number, from 0.
        """
        super().set_epoch(epoch)

    def state_dict(self) -> dict[str, int | str]:
        """The position of the iteration, after the last batch that it gave.

        A loader with any number of workers continues exactly from it. It is the same on all ranks, and
        another number of ranks continues from it too: at any batch if batch_size times ranks stays the
        same, and with the same batch_size if the batches taken so far divide evenly among the new ranks.

        Returns
        -------
        dict of int and str
        """
        return super().state_dict()

    def load_state_dict(self, state: dict[str, int | str]) -> None:
        """Makes the next iteration continue from a saved position.

        Parameters
        ----------
        state
            The result of state_dict().

        Raises
        ------
        ValueError
            For the state of another dataset, batch_size, shuffle or sampler, and for that of other ranks
            which these cannot go on from with whole batches.
        """
        super().load_state_dict(state)

    def stats(self) -> dict[str, Any]:
        """Counts, bytes and seconds since the loader was made.

        The seconds of workers are sums over all workers. "limit" says in a sentence what limits the
        iteration, "bottleneck" in one word, and "workers_because" why there are so many workers.

        Returns
        -------
        dict
            It prints as a few lines for people.
        """
        return super().stats()

    def explain(self) -> str:
        """Who reads the samples, who calls Python's functions, and why: a sentence for people.

        With `workers="auto"` it has what was measured.
        """
        return super().explain()

    def write_trace(self) -> None:
        """Writes the trace so far to the file that `trace` named.

        It takes the place of what was there. ValueError without one.
        """
        super().write_trace()

    def close(self) -> None:
        """Stops the workers; the loader is of no more use.

        Writes the trace where one was asked for, and frees what was prepared.
        """
        super().close()
