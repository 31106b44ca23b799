"""Which road a dataset takes: what of it C++ reads, and what Python does with the samples then.

torch's Subset, ConcatDataset and StackDataset and our own `map` are taken apart here. What remains are two trees: one
of C++ datasets, which are read, and one of functions (`_making.py`), which make the program's samples of what was read.
Where a part can only be read by Python, the whole goes to torch's own loader, and the road says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.utils.data as torch_data

import penstock
from penstock._core import zip as zipped
from penstock.torch.datasets._dataset import Dataset, counted, has_plain_samples
from penstock.torch.datasets._making import Both, Branches, Chosen, Fields, Items, LookedUp, Made, Make, looked_up
from penstock.torch.datasets._mapped import Mapped
from penstock.torch.datasets._native import Rows
from penstock.torch.datasets._stream import Stream
from penstock.torch.datasets._taken_apart import Promises


class Functions(NamedTuple):
    """What Python does with the samples of `dataset` when they are read: `make(index, sample)`,
    then the collation, then `batch`."""

    dataset: Any
    make: Make | None
    batch: Callable[[Any], Any] | None


class Road(NamedTuple):
    """`native` is what C++ reads, or None where torch's own loader takes the dataset; then `reason`
    says why.

    `asked`: the program asked for torch's loader itself, so that nobody has to be warned. `processes`: Python's part is
    done in worker processes of ours. `ours`: a dataset of Penstock's may be in it.
    """

    native: penstock.Dataset | None
    functions: Functions | None
    reason: str = ""
    asked: bool = False
    processes: bool = False
    ours: bool = True


class _NotNativeError(Exception):
    """Only torch's own loader can make these samples; the text is the reason."""


class _Plan(NamedTuple):
    """A dataset without its functions, what is read for it, and how its own samples are made of those."""

    dataset: Any
    native: penstock.Dataset
    make: Make | None


def road_of(dataset: Any, worker_init_fn: Any = None, in_processes: bool = False, *, ours: bool = True) -> Road:
    """The road of a loader over the dataset; `in_processes`: one whose functions are called in worker processes.
    `ours`: whether a dataset of Penstock's is in it."""
    if in_processes:
        return _road_in_processes(dataset)
    rest, batch = _without_batch_functions(dataset)
    functions = None if batch is None else Functions(rest, None, batch)
    if not ours:
        return Road(None, functions, _why_not_ours(dataset), asked=True, ours=False)
    try:
        if worker_init_fn is not None:
            raise _NotNativeError(
                "worker_init_fn prepares processes, which torch's own loader has, and workers='processes'; threads "
                "have no use for it: leave it out, or do what it does before the loop"
            )
        plan = _plan(rest)
    except _NotNativeError as error:
        return Road(None, functions, str(error))
    if plan.make is not None or batch is not None:
        functions = Functions(plan.dataset, plan.make, batch)
    return Road(plan.native, functions)


def _road_in_processes(dataset: Any) -> Road:
    """Every dataset with a length is read natively as far as that goes, and by worker processes beyond."""
    if isinstance(dataset, torch_data.IterableDataset):
        return Road(
            None, None, "an iterable dataset is gone through by the processes of torch's own loader", asked=True
        )
    rest, batch = _without_batch_functions(dataset)
    try:
        plan = _plan(rest)
    except _NotNativeError:
        plan = _looked_up(rest)
    functions = None if plan.make is None and batch is None else Functions(plan.dataset, plan.make, batch)
    return Road(plan.native, functions, processes=True)


def _looked_up(dataset: Any) -> _Plan:
    """As many samples of nothing stand for those that Python looks up."""
    blank = Rows(torch.zeros(1, dtype=torch.uint8).expand(len(dataset)))
    return _Plan(blank, blank.native, LookedUp(dataset))


def _why_not_ours(dataset: Any) -> str:
    if isinstance(dataset, Stream):
        return (
            "a Stream is iterated, as every IterableDataset, and torch's loader shares it out among its processes; "
            "penstock.DataLoader reads a SampleStream in threads"
        )
    return f"{_kind(dataset)} is no dataset of Penstock's"


def native_of(dataset: Any) -> penstock.Dataset | None:
    """The penstock.Dataset that holds the same samples, or None when there is none.

    Looks through torch's Subset (random_split makes them), ConcatDataset and StackDataset. A class derived from one of
    these that has samples of its own making is none.
    """
    try:
        plan = _plan(dataset) if contains_penstock(dataset) else None
    except _NotNativeError:
        return None
    return None if plan is None or plan.make is not None else plan.native


def asks_for_processes(ours: list[Any]) -> bool:
    """Whether a function in one of these is to be called in processes: map(processes=True)."""
    return any(isinstance(part, Mapped) and part.processes for part in ours)


def _without_batch_functions(dataset: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """The dataset without its functions of batches, and what they do together."""
    if isinstance(dataset, Mapped) and dataset.batched and has_plain_samples(dataset, Mapped):
        rest, inner = _without_batch_functions(dataset.dataset)
        batch: Callable[[Any], Any] | None = dataset.function if inner is None else Both(inner, dataset.function)
        return rest, batch
    if isinstance(dataset, torch_data.Subset) and has_plain_samples(dataset, torch_data.Subset):
        rest, batch = _without_batch_functions(dataset.dataset)
        if batch is not None:
            return torch_data.Subset(rest, dataset.indices), batch
    if isinstance(dataset, torch_data.ConcatDataset) and has_plain_samples(dataset, torch_data.ConcatDataset):
        parts = [_without_batch_functions(part) for part in dataset.datasets]
        batch = parts[0][1]
        if batch is not None and all(part[1] == batch for part in parts):
            return torch_data.ConcatDataset([part[0] for part in parts]), batch
    return dataset, None


def _plan(dataset: Any) -> _Plan:
    if isinstance(dataset, penstock.Dataset):
        return _Plan(dataset, dataset, None)
    for kind, plan in _PLANS:
        if isinstance(dataset, kind):
            if has_plain_samples(dataset, kind):
                return plan(dataset)
            raise _NotNativeError(
                f"the class {type(dataset).__name__} makes samples of its own (its __getitem__, __getitems__ or "
                "__len__); what it does with each sample can be done natively by .map(function)"
            )
    raise _NotNativeError(
        f"the samples of {_kind(dataset)} are made by Python code that may want a process of its own; native reading "
        "takes lists, arrays, tensors and TensorDataset beside datasets of Penstock's, and .map(function)"
    )


def _of_dataset(dataset: Dataset[Any]) -> _Plan:
    return _Plan(dataset, dataset.native, None)


def _of_mapped(dataset: Mapped) -> _Plan:
    if dataset.batched:
        raise _NotNativeError(
            "a function of batches stands inside of other datasets, where there are no batches yet; put "
            "map(batched=True) around the whole"
        )
    inner = _plan_of_part(dataset.dataset)
    return inner._replace(make=Made(inner.make, dataset.function))


def _of_subset(dataset: torch_data.Subset[Any]) -> _Plan:
    whole = _plan_of_part(dataset.dataset)
    indices = dataset.indices
    # As Subset asks for them: one by one, so that a dict of them is another list than its keys.
    each = _items_of(indices)
    chosen = counted(each, len(whole.native))
    read = dataset if whole.dataset is dataset.dataset else torch_data.Subset(whole.dataset, chosen)
    make = None if whole.make is None else Chosen(chosen, whole.make)
    return _Plan(read, penstock.subset(whole.native, chosen), make)


def _items_of(indices: Any) -> Sequence[int]:
    """What `indices[i]` gives for each i."""
    if isinstance(indices, (list, range)):
        return indices
    is_array = type(indices) is torch.Tensor or _is_numpys(type(indices))
    if is_array and indices.ndim == 1 and str(indices.dtype).removeprefix("torch.").startswith(("int", "uint")):
        return indices.tolist()  # type: ignore[no-any-return]
    return [indices[i] for i in range(len(indices))]


def _of_concat(dataset: torch_data.ConcatDataset[Any]) -> _Plan:
    parts = [_plan_of_part(part) for part in dataset.datasets]
    make: Make | None = None
    if any(part.make is not None for part in parts):
        make = Branches(list(dataset.cumulative_sizes), [part.make for part in parts])
    read = dataset if make is None else torch_data.ConcatDataset([part.dataset for part in parts])
    first, *others = (part.native for part in parts)
    return _Plan(read, first.concat(*others), make)


def _of_stack(dataset: torch_data.StackDataset[Any]) -> _Plan:
    named = dataset.datasets if isinstance(dataset.datasets, dict) else None
    plans = [_plan_of_part(part) for part in (dataset.datasets if named is None else named.values())]
    natives, makes, parts = ([getattr(plan, name) for plan in plans] for name in ("native", "make", "dataset"))
    native = zipped(natives, {}, False) if named is None else zipped((), dict(zip(named, natives, strict=True)), False)
    if all(make is None for make in makes):
        return _Plan(dataset, native, None)
    if named is None:
        return _Plan(torch_data.StackDataset(*parts), native, Items(makes))
    read = torch_data.StackDataset(**dict(zip(named, parts, strict=True)))
    return _Plan(read, native, Fields(dict(zip(named, makes, strict=True))))


_PLANS: tuple[tuple[type[Any], Callable[[Any], _Plan]], ...] = (
    (Dataset, _of_dataset),
    (Mapped, _of_mapped),
    (torch_data.Subset, _of_subset),
    (torch_data.ConcatDataset, _of_concat),
    (torch_data.StackDataset, _of_stack),
)


def _plan_of_part(part: Any) -> _Plan:
    """Of what stands inside of another dataset: plain data is looked up when the rest is read."""
    if not _is_data(part):
        return _plan(part)
    native = _rows_of(part)
    if native is not None:
        return _Plan(part, native, None)
    return _looked_up(part)


def _is_data(part: Any) -> bool:
    """Whether looking a sample up runs no code of the program's, so that any thread may do it."""
    if type(part) in {list, tuple, range, torch.Tensor} or _is_numpys(type(part)):
        return getattr(part, "ndim", 1) > 0
    if type(part) is torch_data.TensorDataset:
        return True
    if type(part) is torch_data.Subset:
        return _is_data(part.dataset)
    if type(part) in {torch_data.ConcatDataset, torch_data.StackDataset}:
        parts = part.datasets
        return all(map(_is_data, parts.values() if isinstance(parts, dict) else parts))
    return False


def _is_numpys(kind: type[Any]) -> bool:
    """Whether that is an array of NumPy's, which is not imported for the question."""
    return kind.__module__ == "numpy" and kind.__name__ in {"ndarray", "memmap"}


def _rows_of(part: Any) -> penstock.Dataset | None:
    """The rows of plain tensors, which are their samples; None for other data."""
    tensors = part.tensors if type(part) is torch_data.TensorDataset else (part,)
    if not all(type(tensor) is torch.Tensor and not tensor.requires_grad for tensor in tensors):
        return None
    try:
        rows = [penstock.rows(tensor) for tensor in tensors]
    except (penstock.Error, BufferError, TypeError):  # on a device, sparse, quantized, ...
        return None
    return penstock.zip(*rows) if type(part) is torch_data.TensorDataset else rows[0]


_WRAPPERS = (torch_data.Subset, torch_data.ConcatDataset, torch_data.StackDataset, torch_data.ChainDataset)
_MOST_ITEMS = 64


def contains_penstock(dataset: Any) -> bool:
    """Whether a dataset of Penstock's is in it: as a part of torch's datasets, or among the attributes of others."""
    return next(_penstocks_in(dataset), None) is not None


def draws_alike(road: Road, dataset: Any) -> bool:
    """Whether Python reads a dataset of Penstock's whose random steps then are those of epoch 0 in every epoch."""
    if not road.ours:
        return False
    functions = road.functions
    read = [dataset] if road.native is None else [] if functions is None else looked_up(functions.make)
    natives = (part.native if isinstance(part, Dataset) else part for each in read for part in _penstocks_in(each))
    return any(isinstance(native, penstock.Dataset) and native._draws for native in natives)


def promise(dataset: Any, arguments: str) -> None:
    """Notes in Penstock's datasets which arguments our loader was given, because loaders that
    others make of them will not know."""
    promises = Promises(arguments)
    for part in _penstocks_in(dataset):
        if isinstance(part, Dataset):
            part._promises = promises


def penstocks_in(dataset: Any) -> list[Any]:
    """The datasets of Penstock's in it: as parts of torch's datasets, or among the attributes of others."""
    if isinstance(dataset, Dataset) and type(dataset).__module__.startswith("penstock."):  # there are no others in it
        return [dataset]
    return list(_penstocks_in(dataset))


def _penstocks_in(dataset: Any) -> Iterator[Any]:
    seen: set[int] = set()
    waiting = [dataset]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (penstock.Dataset, Dataset, Mapped)):
            yield each
        looked_into = each is dataset or isinstance(each, torch_data.Dataset)
        if looked_into and id(each) not in seen:
            seen.add(id(each))
            waiting.extend(_parts(each))


def _parts(dataset: Any) -> Iterable[Any]:
    """What the dataset is made of, as far as attributes tell; of its long lists only the beginning."""
    if isinstance(dataset, _WRAPPERS):
        parts = dataset.dataset if isinstance(dataset, torch_data.Subset) else dataset.datasets
        yield from parts.values() if isinstance(parts, dict) else parts if isinstance(parts, (list, tuple)) else [parts]
        return
    for attribute in getattr(dataset, "__dict__", {}).values():
        if isinstance(attribute, (list, tuple)):
            yield from attribute[:_MOST_ITEMS]
        elif isinstance(attribute, dict):
            yield from list(attribute.values())[:_MOST_ITEMS]
        else:
            yield attribute


def _kind(dataset: Any) -> str:
    kind = type(dataset)
    return (
        kind.__qualname__ if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}.{kind.__qualname__}"
    )
