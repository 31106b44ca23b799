"""The arrays of a `.npz`, read one by one as they are asked for."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import penstock
from penstock.numpy._arrays import array_of

__all__ = ["NpzFile"]


class NpzFile(Mapping[str, Any]):
    """What `load` gives for a `.npz`: a mapping from names to arrays, as numpy.lib.npyio.NpzFile is.

    Nothing but the archive's directory and the arrays' headers is read before an array is asked for, and each time it
    is asked for it is read anew. `npz["a"]`, `npz["a.npy"]` and `npz.f.a` are the same array. Members that are no
    arrays come as bytes. Any number of threads may read. `close`, or the end of a `with` block, lets go of the file.
    """

    _archive: penstock.Archive | None

    def __init__(self, archive: penstock.Archive, source: Any, name: str | None = None) -> None:
        """`source`: the path or the bytes that `archive` was opened from."""
        self._archive = archive
        self._source = source
        self._name = name
        self.files = list(archive)
        self.f: Fields | None = Fields(self)

    def __getitem__(self, key: str) -> Any:
        if self._archive is None:
            raise penstock.InvalidArgumentError(f"the file is closed, so that {key!r} cannot be read; load it again")
        if not isinstance(key, str) or key not in self._archive:
            raise KeyError(f"{key} is not a file in the archive")
        entry = self._archive[key]
        if entry.dtype == "uint8" and entry.ndim == 1 and not self._is_array(entry.name):
            return entry.load().tobytes()
        return array_of(entry)

    def _is_array(self, name: str) -> bool:
        """Bytes that are no array look like one of uint8; the member itself tells."""
        source = io.BytesIO(self._source) if isinstance(self._source, memoryview) else self._source
        with zipfile.ZipFile(source) as archive:
            members = archive.namelist()
            with archive.open(name if name in members else f"{name}.npy") as member:
                return member.read(len(np.lib.format.MAGIC_PREFIX)) == np.lib.format.MAGIC_PREFIX

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (key in self.files or key.removesuffix(".npy") in self.files)

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def close(self) -> None:
        """Lets go of the file; arrays that were read stay."""
        if self._archive is not None:
            self._archive.close()
        self._archive = self._source = self.f = None

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __repr__(self) -> str:
        listed = ", ".join(self.files[:5]) + ("..." if len(self.files) > 5 else "")
        return f"NpzFile {self._name or 'object'!r} with keys: {listed}"


class Fields:
    """The arrays as attributes."""

    def __init__(self, npz: NpzFile) -> None:
        self._npz = npz

    def __getattr__(self, name: str) -> Any:
        try:
            return self._npz[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return self._npz.files
