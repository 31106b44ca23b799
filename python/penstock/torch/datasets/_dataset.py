"""What datasets of torch tensors share whose samples C++ reads: access by index, parts of batches, transforms."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.utils.data as torch_data
from typing_extensions import Self, TypeVar

import penstock
from penstock._api.transforms import Transforms
from penstock._core import (
    _is_of_surroundings,
    _sample_in_order,
    _samples_in_order,
    _stack_in_order,
    _stack_of_rows,
)
from penstock.torch._convert import sample_to_torch
from penstock.torch._errors import as_torchs
from penstock.torch._samples import as_mapping_of
from penstock.torch.datasets._batch_reads import BatchReads
from penstock.torch.datasets._mapped import Mapped
from penstock.torch.datasets._taken_apart import Promises, holds_tensors_alone, taken_apart
from penstock.torch.datasets._windows import Windows
from penstock.torch.loading._checkpoint import load_given

_Sample = TypeVar("_Sample", covariant=True, default=Any)


class Dataset(Windows, Transforms, torch_data.Dataset[_Sample]):
    """A `penstock.Dataset` for torch: `dataset[i]` reads sample i and gives torch tensors.

    `penstock.torch.DataLoader` reads its batches natively; any other loader may use it as the
    map-style dataset that it is, and reads whole batches of it at once by `__getitems__`. Any number
    of threads and processes may use it; it pickles. Classes derived from it keep what they define:
    where one has a `__getitem__`, `__getitems__` or `__len__` of its own, its samples are made by
    that, in every loader.

    Parameters
    ----------
    native
        The penstock.Dataset, which is also the attribute of that name.
    """

    _keys: list[str | int] | None = None
    _promises: Promises | None = None
    # Whether samples hold tensors alone, and have been alike so far; None: not looked at yet.
    _alike: bool | None = None

    def __init__(self, native: penstock.Dataset) -> None:
        if not isinstance(native, penstock.Dataset):
            raise TypeError(f"found native=an object of type {type(native).__name__}, expected a penstock.Dataset")
        self.native = native
        self._reads = BatchReads()

    def __len__(self) -> int:
        return len(self.native)

    def __getitem__(self, index: Any) -> Any:
        """Sample `index`. A slice, a list or an array of indices gives the samples stacked, as TensorDataset gives
        them.

        `torch.utils.data.Subset` makes a dataset of a part.
        """
        if type(index) is not int:
            many = several(index, len(self))
            if many is not None:
                return self._stacked(many) if many else _without_rows(self._stacked([0]))
            index = operator.index(index)
        try:
            return sample_to_torch(_sample_in_order(self.native, index))
        except penstock.UnsupportedError as error:
            if self._keys is None or error.path is None:
                raise
            return load_given(self._opener(error.path), error.path, self._keys)
        except penstock.Error as error:
            raise as_torchs(error) from error.__cause__

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """The samples at these indices, read together. torch's own loader asks for this, and so do the loaders that
        others make of ours (accelerate's, transformers')."""
        if type(self).__getitem__ is not Dataset.__getitem__:
            return [self[index] for index in indices]
        if self._promises is not None:
            self._promises.say()
        if not len(indices):
            return []
        try:
            return self._read_together(counted(indices, len(self)))
        except penstock.Error as error:
            if _is_of_surroundings(error):
                raise
            return [self[index] for index in indices]  # which makes what has no native form, or names the sample

    def _read_together(self, indices: list[int]) -> list[Any]:
        if self._alike is None:
            self._alike = holds_tensors_alone(self[indices[0]])
        if self._alike:
            # Reading the batch into one piece and taking it apart costs less than a piece of memory for each sample.
            # The rule refuses samples that do not lie in it as they would by themselves: in C order, without gradients.
            try:
                return taken_apart(self._reads.read(self.native, indices, _stack_of_rows), len(indices))
            except (TypeError, penstock.Error):  # also for text and dates, which torch has no tensors of
                self._alike = False
        return self._reads.read(self.native, indices, _samples_in_order)  # type: ignore[no-any-return]

    def __penstock_dataset__(self) -> penstock.Dataset:
        """The dataset that functions of `penstock` take. TypeError where a derived class makes samples of its own."""
        if not has_plain_samples(self, Dataset):
            raise TypeError(
                f"the class {type(self).__name__} makes samples of its own, which no native dataset has; give its "
                "`native` for those that lie below"
            )
        return self.native

    def fields(
        self,
        templates: dict[str, str],
        *,
        missing: str = "error",
        check: bool = True,
        raw: bool | str | Iterable[str] | None = None,
    ) -> Dataset[dict[str, Any]]:
        """Sample i is a dict of several files, whose paths follow from that of file i by templates.

        "../masks/{stem}_mask.npy" is one; `penstock.Dataset.fields` says what may be in them.

        Parameters
        ----------
        templates
            A template for each field.
        missing
            "error" raises a FileNotFoundError that names files which are not there; "drop" leaves their
            samples out.
        check
            Look for the files, which lists each folder once.
        raw
            Fields that are the bytes of their files: one name, or several; True or False for all.

        Returns
        -------
        Dataset
            A dataset of dicts.
        """
        native = self.__penstock_dataset__()
        return Dataset(native.fields(templates, missing=missing, check=check, raw=raw))

    def _transformed(self, name: str, *args: Any) -> Self:
        return self._with(getattr(self.__penstock_dataset__(), name)(*args))

    def _with(self, native: penstock.Dataset) -> Self:
        """This dataset over samples that C++ transforms. What has no native form is not transformed, so that it stays
        an error."""
        made = copy.copy(self)
        made.native = native
        made._reads = BatchReads()
        made._keys = None
        return made

    def _opener(self, path: str) -> Any:
        """What opens the file that the dataset has by this name."""
        return path

    def _stacked(self, indices: list[int]) -> Any:
        return self._reads.read(self.native, counted(indices, len(self)), _stack_in_order)

    def map(
        self, function: Callable[..., Any], *, batched: bool = False, seeded: bool = False, processes: bool = False
    ) -> Mapped:
        """Each sample (or each batch) as a function makes it from the one that was read.

        The loader calls it in `num_workers` threads, under what the thread that iterates has when it asks
        for batches: `no_grad`, `inference_mode`, autocast, default device, modes and hooks of torch,
        context variables. Modes are the same objects in all threads, and torch's own `FakeTensorMode` is
        not safe there. Threads share Python's interpreter lock: they speed up functions that spend their
        time in torch, NumPy or waiting, but not pure Python.

        What `torch.utils.data.Subset` and `random_split` make of a mapped dataset is mapped likewise.

        Parameters
        ----------
        function
            Called with each sample. It must not depend on the order of the calls.
        batched
            Whether it is called with batches, after their collation.
        seeded
            Whether it is called with a torch.Generator as well, which follows from the loader's
            generator, the epoch and the sample's index: the same batches for any number of threads, and
            in a resumed run. Other loaders, and `mapped[i]`, seed it from torch's global generator.
        processes
            Have the loader call all functions in processes, as its `workers="processes"` does: for pure
            Python, and for functions that draw random numbers, as all threads of a process share the
            global generators of torch, NumPy and `random`, so that what they draw depends on which of
            them comes first.

        Returns
        -------
        Mapped
            A dataset.
        """
        return Mapped(self, function, batched=batched, seeded=seeded, processes=processes)

    def __repr__(self) -> str:
        kind = type(self)
        name = f"penstock.torch.{kind.__name__}" if kind.__module__ == "penstock.torch.datasets" else kind.__qualname__
        return f"{name}({self.native!r})"


def _without_rows(batch: Any) -> Any:
    """The batch with empty tensors."""
    if isinstance(batch, torch.Tensor):
        return batch[:0]
    if isinstance(batch, dict):
        return as_mapping_of(batch, {key: _without_rows(item) for key, item in batch.items()})
    if isinstance(batch, (list, tuple)):
        return type(batch)(_without_rows(item) for item in batch if isinstance(item, (torch.Tensor, dict, list, tuple)))
    return batch


def several(index: Any, size: int) -> list[int] | None:
    """The indices of `size` samples that `index` stands for, as dimension 0 of a tensor takes them; None for a single
    index."""
    if isinstance(index, slice):
        return list(range(size)[index])
    if isinstance(index, list) and index and all(isinstance(one, bool) for one in index):
        index = torch.tensor(index)  # a mask, as to a tensor
    if isinstance(index, (list, range)):
        return list(index)
    if getattr(index, "ndim", 0) == 1:
        return torch.arange(size)[index].tolist()
    return None


def has_plain_samples(dataset: object, kind: type[Any]) -> bool:
    """Whether samples are made as `kind` makes them: whether the dataset's class, derived from
    `kind`, leaves that as it is."""
    own = type(dataset)
    return all(
        getattr(own, name, None) is getattr(kind, name, None) for name in ("__getitem__", "__getitems__", "__len__")
    )


def counted(indices: Iterable[int], size: int) -> list[int]:
    """The indices with negative ones counted from the end. Those outside stay as they are, and
    errors name them so."""
    if type(indices) is list and indices and {*map(type, indices)} == {int} and min(indices) >= 0:
        return [*indices]
    return [index + size if -size <= index < 0 else index for index in map(operator.index, indices)]
