"""Datasets whose samples lie in tensor files, with torch tensors as samples."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.utils.data as torch_data
from typing_extensions import TypeVar

import penstock
from penstock._core import _Feed
from penstock.torch._convert import sample_to_torch
from penstock.torch._errors import as_torchs
from penstock.torch._samples import as_mapping_of

__all__ = ["Dataset", "Files", "Mapped", "Packed", "Rows", "counted", "mapped_of", "native_of"]


_Sample = TypeVar("_Sample", covariant=True, default=Any)


class Dataset(torch_data.Dataset[_Sample]):
    """A `penstock.Dataset` for torch: `dataset[i]` reads sample i and gives torch tensors.

    `penstock.torch.DataLoader` reads its batches natively; any other loader may use it as the map-style dataset that
    it is. `native` is the penstock.Dataset. Any number of threads and processes may use it; it pickles.
    """

    def __init__(self, native: penstock.Dataset) -> None:
        if not isinstance(native, penstock.Dataset):
            raise TypeError(f"found an object of type {type(native).__name__}, expected a penstock.Dataset")
        self.native = native
        self._keys: list[str] | None = None

    def __len__(self) -> int:
        return len(self.native)

    def __getitem__(self, index: Any) -> Any:
        """Sample `index`; of a slice, a list or an array of indices the samples stacked, as TensorDataset has them.

        `torch.utils.data.Subset` makes a dataset of a part.
        """
        if type(index) is not int:
            many = self._several(index)
            if many is not None:
                return self._stacked(many) if many else _without_rows(self._stacked([0]))
            index = operator.index(index)
        try:
            return sample_to_torch(self.native[index])
        except penstock.UnsupportedError as error:
            if self._keys is None or error.path is None:
                raise
            return self._loaded(error.path, self._keys)
        except penstock.Error as error:
            raise as_torchs(error) from error.__cause__

    @staticmethod
    def _loaded(path: str, keys: list[str]) -> Any:
        """What the file holds, also what no native sample has a form for: sparse and quantized tensors, sets, ..."""
        from penstock.torch.serialization import load

        content = load(path)
        return {key: content[key] for key in keys} if keys else content

    def _several(self, index: Any) -> list[int] | None:
        """The indices that `index` stands for, as a tensor's dimension 0 takes them; None for one alone."""
        if isinstance(index, slice):
            return list(range(len(self))[index])
        if isinstance(index, (list, range)):
            return list(index)
        if getattr(index, "ndim", 0) == 1:
            return torch.arange(len(self))[index].tolist()
        return None

    def _stacked(self, indices: list[int]) -> Any:
        feed = _Feed(self.native, penstock.stack(), 0, 1, None, 0.0, "cpu")
        feed.push(counted(indices, len(self)))
        return sample_to_torch(feed.next())

    def map(self, function: Callable[[Any], Any], *, batched: bool = False, processes: bool = False) -> Mapped:
        """Each sample (or each batch, if `batched`) as `function` makes it from the one that was read.

        The loader calls `function` in `num_workers` threads, under what the thread that iterates has when it asks for
        batches: `no_grad`, `inference_mode`, autocast, default device, modes and hooks of torch, context variables.
        Modes are the same objects in all threads, and torch's own `FakeTensorMode` is not safe there. Threads share
        Python's interpreter lock: they speed up functions that spend their time in torch, NumPy or waiting, but not
        pure Python. For that there is `processes=True`: torch's own loader then runs `function` in `num_workers`
        processes, and so it should for functions that draw random numbers: all threads of a process share the global
        generators of torch, NumPy and `random`, so that what they draw depends on which of them comes first. It must
        not depend on the order of the calls.

        What `torch.utils.data.Subset` and `random_split` make of a mapped dataset is mapped likewise.
        """
        return Mapped(self, function, batched=batched, processes=processes)

    def __repr__(self) -> str:
        return f"penstock.torch.{type(self).__name__}({self.native!r})"


def Rows(*sources: Any) -> Dataset[Any]:  # noqa: N802 - named like the class it stands for
    """Samples are the rows of large arrays: paths, tensors or arrays. Of several, a sample is the tuple of their rows.

    Uncompressed files are mapped, not read.
    """
    if not sources:
        raise TypeError("Rows() takes one array or more; found none")
    parts = [penstock.rows(source) for source in sources]
    return Dataset(parts[0] if len(parts) == 1 else penstock.zip(*parts))


def Packed(pattern: str | os.PathLike[str]) -> Dataset[Any]:  # noqa: N802 - named like the class it stands for
    """The samples that `penstock.pack` or the command `penstock pack` wrote into the files of a folder or pattern.

    The files are mapped, not read. Numbers come back as tensors without dimensions.
    """
    return Dataset(penstock.packed(pattern))


def Files(  # noqa: N802 - named like the class it stands for
    pattern: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    keys: str | Iterable[str] | None = None,
    index: bool | str | os.PathLike[str] = False,
) -> Dataset[Any]:
    """Each file is a sample. `pattern`: a file, a folder, a glob or a list of paths; `keys`: only these of its dict.

    `index` keeps the list of files between runs, as in `penstock.files`.
    """
    keys = [keys] if isinstance(keys, str) else keys if keys is None else list(keys)
    for key in keys or ():
        if not isinstance(key, str):
            raise TypeError(
                f"keys are names; found {key!r}: leave them out and choose with .map(lambda sample: sample[{key!r}])"
            )
    dataset: Dataset[Any] = Dataset(penstock.files(pattern, keys, index))
    dataset._keys = keys or []
    return dataset


class Mapped(torch_data.Dataset[Any]):
    """What `Dataset.map` gives. Without a loader, `mapped[i]` calls the function on sample i; TypeError where it is one
    of batches."""

    def __init__(
        self, dataset: torch_data.Dataset[Any], function: Callable[[Any], Any], *, batched: bool, processes: bool
    ) -> None:
        self.dataset = dataset
        self.function = function
        self.batched = batched
        self.processes = processes

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        try:
            index = operator.index(index)
        except TypeError as error:
            raise TypeError(f"{error}; torch.utils.data.Subset makes a dataset of several samples") from None
        if self.batched:
            raise TypeError(
                f"{self!r} is a function of whole batches, which penstock.torch.DataLoader makes; a sample by itself "
                "has none"
            )
        return self.function(self.dataset[index])

    def __repr__(self) -> str:
        return f"{self.dataset!r}.map({self.function!r})"


def _without_rows(batch: Any) -> Any:
    """The batch with nothing left in its tensors."""
    if isinstance(batch, torch.Tensor):
        return batch[:0]
    if isinstance(batch, dict):
        return as_mapping_of(batch, {key: _without_rows(item) for key, item in batch.items()})
    if isinstance(batch, (list, tuple)):
        return type(batch)(_without_rows(item) for item in batch if isinstance(item, (torch.Tensor, dict, list, tuple)))
    return batch


def native_of(dataset: Any) -> penstock.Dataset | None:
    """The penstock.Dataset that holds the same samples, or None when there is none.

    Looks through torch's Subset (random_split makes them), ConcatDataset and StackDataset. A class derived from
    `Dataset` that has samples of its own making is none.
    """
    if isinstance(dataset, penstock.Dataset):
        return dataset
    if isinstance(dataset, Dataset):
        return dataset.native if _has_plain_samples(dataset, Dataset) else None
    if type(dataset) is torch_data.Subset:
        whole = native_of(dataset.dataset)
        indices = dataset.indices
        # As Subset asks for them: one by one, so that a dict of them is another list than its keys.
        each = indices if isinstance(indices, (list, range)) else [indices[i] for i in range(len(indices))]
        return None if whole is None else penstock.subset(whole, counted(each, len(whole)))
    if type(dataset) is torch_data.ConcatDataset:
        parts = [native_of(part) for part in dataset.datasets]
        return None if None in parts else penstock.concat(*(part for part in parts if part is not None))
    if type(dataset) is torch_data.StackDataset and isinstance(dataset.datasets, tuple):
        parts = [native_of(part) for part in dataset.datasets]
        return None if None in parts else penstock.zip(*(part for part in parts if part is not None))
    return None


def _has_plain_samples(dataset: object, kind: type[Any]) -> bool:
    """Whether the samples of the dataset, of a class derived from `kind`, are made as `kind` makes them."""
    own = type(dataset)
    same = all(getattr(own, name) is getattr(kind, name) for name in ("__getitem__", "__len__"))
    return same and not hasattr(own, "__getitems__")


def mapped_of(dataset: Any) -> Mapped | None:
    """The dataset as a function of other samples, if it is one: a `Mapped`, or torch's Subset of one, whose function is
    then that of the subset's samples."""
    if isinstance(dataset, Mapped):
        return dataset if _has_plain_samples(dataset, Mapped) else None
    if type(dataset) is not torch_data.Subset:
        return None
    whole = mapped_of(dataset.dataset)
    if whole is None:
        return None
    part = torch_data.Subset(whole.dataset, dataset.indices)
    return Mapped(part, whole.function, batched=whole.batched, processes=whole.processes)


def counted(indices: Iterable[int], size: int) -> list[int]:
    """Negative ones counted from the front; what is outside stays, and is named so in errors."""
    return [index + size if -size <= index < 0 else index for index in map(operator.index, indices)]
