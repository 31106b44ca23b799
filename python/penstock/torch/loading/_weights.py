"""A model's weights one after another, in file order, while the next ones are read: what engines for inference ask for.

What is read at once is a unit: a tensor of a `.safetensors` or of a folder of DCP, all of a `.pt`. A few threads read
units ahead; the units that are read and not handed out yet, or are being read, are the ring, and its bytes are bounded.
"""

from __future__ import annotations

import fnmatch
import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import torch

import penstock
from penstock._core import _did_you_mean, _entry_parts, _storage_parts
from penstock._pool import Pool
from penstock._text import abbreviated, listed
from penstock._weights.weight_files import KINDS, weight_files
from penstock._wrong_argument import names_arguments
from penstock.torch._arrays import Arrays
from penstock.torch._devices import present, reachable
from penstock.torch.loading._checkpoint import load
from penstock.torch.loading._lending import Lending
from penstock.torch.loading._ranks import Plan, agreed, plan_of, ranks_of, telling
from penstock.torch.loading._weights_once import Pairs, Unit, taken_together

_BY_TENSOR = {"safetensors", "shard-index", "dcp", "torch_checkpointing"}


@names_arguments
def weights(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    device: str | int | torch.device = "cpu",
    ring_bytes: int = 128 << 20,
    threads: int = 4,
    include: Sequence[str] | Callable[[str], bool] = ("*",),
    exclude: Sequence[str] | Callable[[str], bool] = (),
    key: str | None = None,
    files: Sequence[str] = tuple(KINDS.values()),
    ignore: Sequence[str] = (),
    mmap: bool = True,
    ranks: Any = None,
) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and tensors of a model, in the order of its files, while the next ones are read.

    Files are found and their headers read when this is called, so that what is missing is an error
    before the first tensor. Tensors may be kept and written to. To stop early, drop the iterator or
    `close()` it.

    Parameters
    ----------
    path
        A folder of a model, a file, the index of a sharded model, a folder of
        `torch.distributed.checkpoint`, or a list of those; also `s3://`, `gs://`, `az://`, `hf://` and
        `https://`. In a folder, what its index does not name, files named "consolidated*" beside
        others, and files of trainers are left out.
    device
        Where tensors go: "cpu", "cuda", "cuda:1", a number.
    ring_bytes
        How many bytes of tensors may be on their way: being read, or read and not handed out. A tensor
        that is larger, or a larger `.pt`, is on its way alone.
    threads
        How many are read at the same time.
    include
        Patterns of names ("model.layers.*"), or a function of a name. A pattern that matches none is an
        error, which a `.pt` raises when it has been read.
    exclude
        The same, for names to leave out. A tensor that is left out is not
        read, except in a `.pt`, which is read whole.
    key
        The part of the content that holds the weights, which loses that name: "model" for a checkpoint
        that has them beside an optimizer's state.
    files
        Patterns of file names in a folder; the first that finds a file decides.
    ignore
        Patterns of files in a folder that are left out.
    mmap
        Of files in the page cache, hand out large tensors of the host as parts of the mapped file,
        which nobody has to copy for a loop that copies them into its parameters. Those that are kept
        get memory of their own when the fourth one behind them is taken, and at the end; when many are
        kept, the next ones are read. Until then a tensor may be written to by the thread that takes
        them alone: what others write in the moment of that change may be lost. Files must not be cut
        while they are loaded: with False, that is an error of Penstock's. Not with `ranks`.
    ranks
        Read each tensor once for several processes: a process group of torch.distributed, or "auto" for
        all of its processes where a program has initialised it. All ranks take all tensors, and stop
        early at the same one; an error of one rank, or that it stops, is raised on the others. A rank
        that takes slowly holds the others up. `threads` is not used. Tensors of one `.pt` keep each
        other's memory.

    Returns
    -------
    iterator

    Raises
    ------
    penstock.Error
        Where files are missing, damaged or written to meanwhile, a name is in two files, a value is no
        tensor, or a pattern of `include` or `exclude` matches no name.
    """
    with telling(ranks):
        _require_counts(ring_bytes, threads)
        place = _device(device)
        wanted = _Wanted(include, exclude)
        given = [path] if isinstance(path, (str, os.PathLike)) else list(path)
        if type(mmap) is not bool:
            raise penstock.DTypeMismatchError(f"found mmap={mmap!r}, expected True or False")
    together = ranks_of(ranks)
    lending = Lending(mmap and together is None and place.type == "cpu")

    def all_units() -> list[Unit]:
        found = [each for one in given for each in weight_files(os.fspath(one), files, ignore)]
        names: _Names = {}
        units = [unit for each in found for unit in _units(each, key, wanted, place, ranks, lending, names)]
        if all(unit.place is not None for unit in units):
            wanted.require_used()
        return units

    if together is None:
        alone = all_units()
        lending.last = alone[-1].name if alone else ""
        return _checked(lending.watched(_in_order(alone, ring_bytes, threads)), wanted)
    units = agreed(together, all_units, lambda units: _plan(units, f"{ring_bytes} {place.type}"))
    return _checked(taken_together(units, ring_bytes, together, place), wanted)


def _plan(units: list[Unit], options: str) -> Plan:
    names = [None if unit.place is None else unit.place[1] for unit in units]
    archives = {id(unit.archive): unit.archive for unit in units if unit.archive is not None}
    return plan_of(list(archives.values()), f"{options} {names}")


def _require_counts(ring_bytes: int, threads: int) -> None:
    for name, value in (("ring_bytes", ring_bytes), ("threads", threads)):
        if type(value) is not int or value < 1:
            raise penstock.InvalidArgumentError(f"{name}={value!r}: it is a whole number of at least 1")


def _device(device: str | int | torch.device) -> torch.device:
    """With its number, because the current device is each thread's own."""
    place = present(device)
    if place.type == "cuda" and place.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return place


class _Wanted:
    """Whether a tensor is wanted, by its name, and whether each pattern matched one."""

    def __init__(
        self, include: Sequence[str] | Callable[[str], bool], exclude: Sequence[str] | Callable[[str], bool]
    ) -> None:
        self._unused: set[str] = set()
        self._names: list[str] = []
        self._inside, self._outside = self._test(include), self._test(exclude)
        self._unused.discard("*")

    def _test(self, rule: Sequence[str] | Callable[[str], bool]) -> Callable[[str], bool]:
        if callable(rule):
            return rule
        patterns = [rule] if isinstance(rule, str) else list(rule)
        self._unused.update(patterns)

        def matches(name: str) -> bool:
            found = [pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)]
            self._unused.difference_update(found)
            return bool(found)

        return matches

    def __call__(self, name: str) -> bool:
        if self._unused:
            self._names.append(name)
        inside, outside = self._inside(name), self._outside(name)
        return inside and not outside

    def require_used(self) -> None:
        """KeyNotFoundError for a pattern that matched none of the names."""
        for pattern in sorted(self._unused):
            meant = _did_you_mean(pattern, self._names) or f"there are {listed(self._names, most=5) or 'none'}"
            raise penstock.KeyNotFoundError(f"no name matches {pattern!r}; {meant}")


def _checked(pairs: Iterator[tuple[str, torch.Tensor]], wanted: _Wanted) -> Iterator[tuple[str, torch.Tensor]]:
    yield from pairs
    wanted.require_used()


# Each name with the file that it is in, in a list of its own for each file; a `.pt` says its names when it is read.
_Names = dict[str, list[str]]


def _take(name: str, names: _Names, file: list[str]) -> None:
    """Notes a name of a file. InvalidArgumentError where another one has it."""
    other = names.setdefault(name, file)  # by one of the threads that read
    if other is not file:
        message = f"tensor {name!r} is in {other[0]} too; say which files by files= or ignore="
        raise penstock.InvalidArgumentError(f"{file[0]}: {message}", message, file[0], tensor=name)


def _units(
    path: str,
    key: str | None,
    wanted: Callable[[str], bool],
    device: torch.device,
    ranks: Any,
    lending: Lending,
    names: _Names,
) -> Iterator[Unit]:
    """Units of a file."""
    archive = penstock.open(path)
    if archive.format in _BY_TENSOR:
        yield from _tensor_units(archive, key, wanted, device, lending, names)
        return
    size = sum(archive[name].nbytes for name in archive)
    yield Unit(size, lambda: _whole(path, key, wanted, device, ranks, names), archive)


def _tensor_units(
    archive: penstock.Archive,
    key: str | None,
    wanted: Callable[[str], bool],
    device: torch.device,
    lending: Lending,
    names: _Names,
) -> Iterator[Unit]:
    begin = "" if key is None else f"{key}."
    placed = []
    for number, name in enumerate(archive.keys()):
        if name.startswith(begin) and wanted(name[len(begin) :]):
            _, _, source, offset = _storage_parts(archive, _entry_parts(archive, number)[0])
            placed.append((source, offset or 0, number, name))
    if key is not None and not any(name.startswith(begin) for name in archive):
        message = f"no tensor is below key={key!r}; its first names are {list(archive)[:3]}"
        raise penstock.NotFoundError(f"{archive.path}: {message}", message, archive.path)
    arrays, file = Arrays(device), [archive.path]
    for _, _, number, name in sorted(placed):
        short = name[len(begin) :]
        _take(short, names, file)
        entry = archive[name]
        yield Unit(
            entry.nbytes,
            _reader(archive, arrays, name, short, device),
            archive,
            partial(lending.pairs, archive, number, short, arrays),
            (number, short, arrays.dtype(entry.dtype.name, name), tuple(entry.shape)),
        )


def _reader(
    archive: penstock.Archive, arrays: Arrays, name: str, short: str, device: torch.device
) -> Callable[[], Pairs]:
    def read() -> Pairs:
        entry = archive[name]
        if archive.format == "dcp":  # its pieces lie in several places
            direct = reachable(device)
            return [(short, arrays.whole(entry.load(device="cpu" if direct is None else str(direct)), name))]
        return [(short, arrays.one(archive, entry))]

    return read


def _whole(
    path: str, key: str | None, wanted: Callable[[str], bool], device: torch.device, ranks: Any, names: _Names
) -> Pairs:
    content = load(path, device, key=key, ranks=ranks)
    together = ranks_of(ranks)
    if together is None:
        return _pairs(path, content, wanted, names)
    pairs, error = [], None
    try:
        pairs = _pairs(path, content, wanted, names)
    except Exception as failure:  # each rank has a filter of its own
        error = failure
    together.require(error, "take what the file holds")
    return pairs


def _pairs(path: str, content: Any, wanted: Callable[[str], bool], names: _Names) -> Pairs:
    if not isinstance(content, dict):
        raise _no_weights(path, f"it holds a {type(content).__name__}, not a dict of tensors")
    pairs, file = [], [path]
    for name, value in content.items():
        if not isinstance(name, str):
            raise _no_weights(path, f"its key {abbreviated(repr(name))} is no text, as names of tensors are")
        if not wanted(name):
            continue
        if isinstance(value, torch.Tensor):
            _take(name, names, file)
            pairs.append((name, value.detach()))
        elif not name.endswith("_extra_state"):  # of a module's own, which engines have no place for
            raise _no_weights(path, f"{name!r} is a {type(value).__name__}, not a tensor")
    return pairs


def _no_weights(path: str, message: str) -> penstock.Error:
    message += '; say which part has the weights by key= (such as "model" or "state_dict"), or leave it out by exclude='
    return penstock.InvalidArgumentError(f"{path}: {message}", message, path)


def _in_order(units: Sequence[Unit], ring_bytes: int, threads: int) -> Generator[tuple[str, torch.Tensor], None, None]:
    """What the units read, in their order. Whoever takes a tensor has the next units begun, so that nothing is read
    when nobody takes any."""
    pool = Pool(threads, thread_name_prefix="penstock-weights")
    left = deque(units)
    coming: deque[tuple[int, Future[Pairs]]] = deque()
    held = 0  # bytes of units that are begun and not handed out

    def begin() -> None:
        nonlocal held
        while left and (held == 0 or held + left[0].nbytes <= ring_bytes):
            unit = left.popleft()
            coming.append((unit.nbytes, _at_once(unit) or pool.submit(unit.read)))
            held += unit.nbytes

    try:
        begin()
        while coming:
            nbytes, pairs = coming[0][0], coming[0][1].result()
            coming.popleft()
            alone = len(pairs) <= 1
            if alone:  # a tensor that is handed out is its taker's
                held -= nbytes
                begin()
            pairs.reverse()
            while pairs:
                yield pairs.pop()
            if not alone:
                held -= nbytes
                begin()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _at_once(unit: Unit) -> Future[Pairs] | None:
    """What needs no reading; an error waits for its turn."""
    out: Future[Pairs] = Future()
    try:
        pairs = None if unit.lend is None else unit.lend()
    except penstock.Error as error:
        out.set_exception(error)
        return out
    if pairs is None:
        return None
    out.set_result(pairs)
    return out
