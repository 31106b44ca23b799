"""Samples without a length: what a generator gives, one by one, until it ends."""

from __future__ import annotations

import itertools

from penstock._api.transforms import Transforms
from penstock._asked import attribute, has
from penstock._core import Dataset, Tensor, _Stream, _stream, _stream_of_dataset, _StreamWalk, mix
from penstock._wrong_argument import names_arguments
from penstock.errors import InvalidArgumentError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Opener:
    """Makes the iterators of a source, and keeps those that are being read.

    C++ calls `open`, `next` and `close`, and knows an iterator by the number that `open` gives.
    """

    def __init__(self, source: Any, seekable: bool) -> None:
        self.source = source
        self.seekable = seekable
        self.iterators: dict[int, Iterator[Any]] = {}
        self.numbers = itertools.count()

    def open(self, start: int) -> int:
        """The number of an iterator that begins at that sample."""
        number = next(self.numbers)
        self.iterators[number] = self._opened(start)
        return number

    def next(self, number: int) -> tuple[Any, ...]:
        """The next sample in a tuple, which is empty at the end. `next` alone is asked: an iterator may begin anew in
        its `__iter__`."""
        try:
            return (next(self.iterators[number]),)
        except StopIteration:
            return ()

    def close(self, number: int) -> None:
        """Lets go of the iterator."""
        self.iterators.pop(number, None)

    def _opened(self, start: int) -> Iterator[Any]:
        if not callable(self.source):
            return iter(self.source)
        made = self.source(start) if self.seekable else self.source()
        if has(made, "__next__"):
            return iter(made) if has(made, "__iter__") else made
        if isinstance(made, (str, bytes, dict, Tensor)) or has(made, "ndim") or not has(made, "__iter__"):
            raise TypeError(
                f"the function of stream() gave an object of type {type(made).__name__}, expected what gives samples "
                "one by one; write it as a generator (with yield)"
            )
        return iter(made)


def _begins(source: Any, seekable: bool) -> str:
    if isinstance(source, (str, bytes, dict, Tensor)) or has(source, "ndim"):
        raise TypeError(
            f"found an object of type {type(source).__name__} as source, where stream() takes a generator, a function "
            "that makes one, or an iterable of samples; rows() makes a dataset of an array, files() one of paths"
        )
    if hasattr(type(source), "__next__"):  # a class of iterators is a function that makes one
        if seekable:
            raise InvalidArgumentError(
                "an iterator cannot begin anywhere; seekable=True wants a function of the first sample"
            )
        return "once"
    if callable(source):
        return "anywhere" if seekable else "anew"
    if seekable or not has(source, "__iter__"):
        raise TypeError(
            f"found an object of type {type(source).__name__} as source, where stream() takes a "
            + ("function of the first sample's number" if seekable else "generator or a function that makes one")
        )
    return "anew"


@names_arguments
def stream(source: Any, *, name: str = "<stream>", seekable: bool = False) -> SampleStream:
    """Samples that come one by one, and of which nobody knows how many.

    One thread at a time asks for the next sample; what the source gives is the stream's from then
    on, and must not be written to. What it raises arrives from the loader with its own type and the
    sample's number, whatever `on_error` says.

    Parameters
    ----------
    source
        A function that makes a generator (or another iterator or iterable), called for each epoch.
        A generator or iterator by itself is read once: a second epoch is an error, and so is going
        on from a position once it has begun. An iterable (a list, torch's IterableDataset) begins
        anew for each epoch. A Dataset gives its samples in their order.
    name
        What the samples are, for messages: "clips.tar" gives "clips.tar[7]".
    seekable
        Whether the function takes the number of the sample to begin at. A loader that goes on from
        a position then reads nothing again, as long as no shuffle, filter, mixture or repetition
        stands before it.

    Examples
    --------
    >>> def clips():
    ...     for path in sorted(glob.glob("clips/*.npy")):
    ...         yield penstock.load(path)
    >>> loader = penstock.DataLoader(penstock.stream(clips).shuffle(1000), batch_size=32)
    """
    held = attribute(source, "__penstock_dataset__")
    if isinstance(source, Dataset) or (held is not None and not isinstance(source, type)):
        if seekable or name != "<stream>":
            message = "found name= or seekable= beside a dataset, which has names and begins anywhere; leave them out"
            raise InvalidArgumentError(message)
        return SampleStream(_stream_of_dataset(source), (stream, (source,), {}))
    begins = _begins(source, seekable)
    return SampleStream(
        _stream(Opener(source, seekable), name, begins), (stream, (source,), {"name": name, "seekable": seekable})
    )


def mixed(native: _Stream, streams: Any, weights: Any, end: str, size: int | None) -> SampleStream:
    """What `penstock.mix` gives of streams."""
    return SampleStream(native, (_mix, (streams, weights, end, size), {}))


def _mix(*args: Any) -> Any:
    """`penstock.mix`, which does not pickle itself."""
    return mix(*args)


def _method(below: SampleStream, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> SampleStream:
    """What a method of a stream gives, for pickles."""
    return getattr(below, name)(*args, **named)  # type: ignore[no-any-return]


def _called(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> SampleStream:
    return function(*args, **named)  # type: ignore[no-any-return]


class _Walk:
    """The samples of a stream, which it keeps. It goes on behind an error, as a generator would not."""

    def __init__(self, stream: SampleStream) -> None:
        self._stream = stream
        self._walk = _StreamWalk(stream._native)

    def __iter__(self) -> _Walk:
        return self

    def __next__(self) -> Any:
        return next(self._walk)


class SampleStream(Transforms):
    """Samples without a length: what `stream` makes, and what its methods make of that.

    `penstock.DataLoader` takes it as a dataset; `for sample in stream` reads the samples one by
    one, as epoch 0 of seed 0. `shuffle`, `take`, `skip`, `repeat`, `filter` and the functions
    before a filter run in one thread at a time, in order; `map` and native transforms that no
    filter follows run in all workers at once. It pickles as the call that made it (`made_by`), if
    its source does.
    """

    __module__ = "penstock"

    def __init__(self, native: _Stream, made_by: Any, samples: Dataset | None = None) -> None:
        self._native = native
        self._samples = native.samples if samples is None else samples
        self._made_by = made_by

    def _next(self, name: str, native: _Stream, *args: Any, **named: Any) -> SampleStream:
        return SampleStream(native, (_method, (self, name, args, named), {}))

    def _with(self, samples: Dataset, name: str, *args: Any, **named: Any) -> SampleStream:
        made_by: Any = (_method, (self, name, args, named), {})
        return SampleStream(self._native.with_samples(samples), made_by, samples)

    def _transformed(self, name: str, *args: Any) -> SampleStream:
        return self._with(getattr(self._samples, name)(*args), name, *args)

    def __iter__(self) -> Iterator[Any]:
        return _Walk(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _called, self._made_by

    def __repr__(self) -> str:
        return f"penstock.SampleStream({self._samples_name()})"

    def _samples_name(self) -> str:
        return self._samples.describe(0).removesuffix("[0]")

    @property
    def can_begin_again(self) -> bool:
        """Whether it can be read more than once."""
        return self._native.can_begin_again

    def take(self, count: int) -> SampleStream:
        """The first samples; the one behind them is not asked for.

        Parameters
        ----------
        count
            How many.
        """
        return self._next("take", self._native.take(count), count)

    def skip(self, count: int) -> SampleStream:
        """All but the first samples.

        Parameters
        ----------
        count
            How many are left out.
        """
        return self._next("skip", self._native.skip(count), count)

    def repeat(self, times: int | None = None) -> SampleStream:
        """All samples, several times one behind the other.

        They are numbered on, so that random steps draw anew.

        Parameters
        ----------
        times
            How often; None: for ever.
        """
        return self._next("repeat", self._native.repeat(times), times)

    def shuffle(self, window: int, seed: int = 0, *, memory: int | None = None) -> SampleStream:
        """Each sample drawn from a window that is kept full.

        The order depends on `seed`, the loader's seed and the epoch alone, and is the same for any
        number of workers and in a resumed run.

        Parameters
        ----------
        window
            Samples in the window.
        seed
            Of this shuffle.
        memory
            Bytes of tensors that the window may hold; beyond, OutOfMemoryError. None: half of the
            memory that this process may use.
        """
        return self._next("shuffle", self._native.shuffle(window, seed, memory), window, seed, memory=memory)

    def filter(self, keep: Callable[[Any], Any]) -> SampleStream:
        """The samples for which a function is true, as they come.

        Parameters
        ----------
        keep
            Called with each sample, one at a time.
        """
        return self._next("filter", self._native.filter(keep), keep)

    def map(self, function: Callable[..., Any], *, batched: bool = False, seeded: bool = False) -> SampleStream:
        """Each sample (or each batch) as a function makes it, as `Dataset.map`.

        Parameters
        ----------
        function
            Called with each sample, in the loader's worker threads.
        batched
            Whether it is called with whole batches instead.
        seeded
            Whether it is called with a numpy.random.Generator as well, made from the loader's seed,
            the epoch and the sample's number.
        """
        named = {"batched": batched, "seeded": seeded}
        return self._with(self._samples.map(function, **named), "map", function, **named)
