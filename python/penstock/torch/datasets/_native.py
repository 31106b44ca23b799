"""Datasets of what lies in files: rows of arrays, packed samples, tar shards, one file a sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

import penstock
from penstock._text import plural
from penstock._wrong_argument import names_arguments
from penstock.torch.datasets._class_folders import ClassFolders
from penstock.torch.datasets._dataset import Dataset, _Sample


class Rows(Dataset[_Sample]):
    """Samples are the rows of large arrays. Of several arrays, a sample is the tuple of their rows.

    Nothing of an uncompressed file is read ahead.

    Parameters
    ----------
    sources
        Paths, tensors, arrays or lists, of as many rows each.
    key
        The name of the tensor in a file that has several: one for all files, or a list with one for
        each source (None where it needs none).
    mmap
        Whether files are mapped, or each row read when it is wanted. None maps a file where it fits
        into memory.
    dtype
        The type that tensors of floating-point and complex numbers get, as by `Module.to(dtype)`.
        Integers and bools stay; `cast` converts these. "promote" takes the type that the types of all
        samples promote to, which it finds in headers.
    strict
        Raise where a value does not fit into the type.
    shape, offset, order
        One of them says that the files have no header, as `penstock.raw` has them. Then `dtype` is
        what the elements in the files are, and nothing is converted.
    """

    @names_arguments
    def __init__(
        self,
        *sources: Any,
        key: str | Sequence[str | None] | None = None,
        mmap: bool | None = None,
        dtype: torch.dtype | str | None = None,
        strict: bool = False,
        shape: int | Sequence[int] | None = None,
        offset: int | None = None,
        order: str | None = None,
    ) -> None:
        if not sources:
            raise TypeError("Rows() takes one array or more; found none")
        keys = [key] * len(sources) if key is None or isinstance(key, str) else list(key)
        if len(keys) != len(sources):
            raise ValueError(
                f"found {plural(len(keys), 'key')} for {plural(len(sources), 'source')}, expected one for each"
            )
        pairs = zip(sources, keys, strict=True)
        options: Any = {"dtype": dtype, "strict": strict, "shape": shape, "offset": offset, "order": order}
        parts = [penstock.rows(source, name, mmap, **options) for source, name in pairs]
        super().__init__(parts[0] if len(parts) == 1 else penstock.zip(*parts))


class Packed(Dataset[_Sample]):
    """The samples that `penstock.pack` or the command `penstock pack` wrote.

    Numbers come back as tensors without dimensions.

    Parameters
    ----------
    pattern
        The folder that they were written to, or a pattern of its files.
    mmap
        Whether files are mapped or read, as for `Rows`.
    """

    def __init__(self, pattern: str | os.PathLike[str], mmap: bool | None = None) -> None:
        super().__init__(penstock.packed(pattern, mmap))


class Shards(Dataset[_Sample]):
    """Samples in tar shards, as WebDataset has them: each is a dict by field.

    Every sample can be read by itself, so that `shuffle=True`, samplers and ranks are those of every
    other dataset. `penstock.shards` says how members become samples and fields become values;
    `Stream` of this dataset reads each shard once, from front to back.

    Parameters
    ----------
    shards
        Paths, URLs, patterns, ranges ("train-{000..146}.tar"), folders, lists joined by "::", or
        lists of wids (.json); one, or several.
    keys
        Take only these fields, in this order. None: all fields behind "__key__".
    raw
        The bytes of each field are its value, whatever it holds.
    index
        Keep where each sample begins, in the user's cache folder (True) or in a file of your own.
    """

    def __init__(
        self,
        shards: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        keys: str | Iterable[str] | None = None,
        *,
        raw: bool = False,
        index: bool | str | os.PathLike[str] = True,
    ) -> None:
        super().__init__(penstock.shards(shards, keys, raw, index))


class Files(ClassFolders, Dataset[_Sample]):
    """Each file is a sample: what `load` gives for it, with plain numbers and torch tensors.

    Dense tensors are plain ones, without a class and attributes of their own, and NumPy's arrays of
    objects are lists. Other tensors (quantized, meta, wrappers) are what `load` makes of them.

    `paths` are the files in the order of the samples. Where the folders are classes ("train/cat/1.pt"),
    `classes`, `class_to_idx` and `targets` are what torchvision's ImageFolder has under these names.

    Parameters
    ----------
    pattern
        A file, a folder, a glob (`**` for any depth) or a list of paths. The order of a folder or glob
        is by name.
    keys
        Take only these keys of each file's dict, as a dict. A key is a name, several names with dots
        between them ("model.w", where a name that has dots itself is found first), or an integer.
    index
        Keep the list of files, in the user's cache folder (True) or in a file of your own, and next
        time list only folders that changed.
    exclude
        Leave these folders and files out of what is listed: a name or glob at any depth ("lost+found",
        "tmp*"), or the end of a path ("old/raw"). One, or several.
    dtype
        The type that tensors of floating-point and complex numbers get, as by `Module.to(dtype)`.
        Integers and bools stay, unless `keys` names them. "promote" takes the type that the types of
        all samples promote to, which it finds in headers.
    strict
        Raise where a value does not fit into the type.
    source
        A function that opens a file of the list of paths, which may be any text, as for
        `penstock.files`: it is given the path and gives the file's bytes, a Source of
        `penstock.remote`, another path, or an open file. It is called in the loader's threads, and
        pickles with the dataset.
    """

    _source: Callable[[str], Any] | None = None

    @names_arguments
    def __init__(
        self,
        pattern: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        keys: str | int | Iterable[str | int] | None = None,
        index: bool | str | os.PathLike[str] = False,
        exclude: str | Iterable[str] | None = None,
        *,
        dtype: torch.dtype | str | None = None,
        strict: bool = False,
        source: Callable[[str], Any] | None = None,
    ) -> None:
        names = [keys] if isinstance(keys, (str, int)) else keys if keys is None else list(keys)
        pattern = pattern if isinstance(pattern, (str, bytes, os.PathLike)) else list(pattern)
        super().__init__(penstock.files(pattern, names, index, exclude, dtype=dtype, strict=strict, source=source))
        # What has no native form is not cast, so that it stays an error beside a dtype.
        self._keys = (names or []) if dtype is None else None
        self._source = source

    def _opener(self, path: str) -> Any:
        return path if self._source is None else self._source(path)
