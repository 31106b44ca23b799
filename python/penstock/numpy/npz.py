"""The arrays of a `.npz`, read one by one as they are asked for."""

from __future__ import annotations

import io
import threading
import warnings
import weakref
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import penstock
from penstock._core import _entry_parts, _is_url, _numpy_facts, _part
from penstock.errors import _twin
from penstock.numpy._arrays import array_of, check_header
from penstock.numpy._objects import objects_in, refused

__all__ = ["BadMemberError", "NpzFile", "warn_of_python2"]


def warn_of_python2(archive: penstock.Archive, number: int, level: int) -> None:
    """NumPy's warning, in its words, where Python 2 wrote the entry's header; `level` as of `warnings.warn`."""
    if number in _numpy_facts(archive)[1]:
        warnings.warn(
            "Reading `.npy` or `.npz` file required additional header parsing as it was created on Python 2. Save the "
            "file again to speed up loading and avoid this warning.",
            UserWarning,
            stacklevel=level,
        )


class BadMemberError(penstock.ChecksumError, zipfile.BadZipFile):
    """A member has not the checksum that the archive records; NumPy raises the second of its types."""


class NpzFile(np.lib.npyio.NpzFile):
    """What `load` gives for a `.npz`: a mapping from names to arrays, a numpy.lib.npyio.NpzFile too.

    Nothing but the archive's directory and the arrays' headers is read before an array is asked for,
    and each time it is asked for it is read anew. `npz["a"]`, `npz["a.npy"]` and `npz.f.a` are the same
    array. Members that are no arrays come as bytes, folders as none. Any number of threads may read.

    `zip` is the archive as a zipfile.ZipFile, opened when it is first asked for; None after `close`.

    Parameters
    ----------
    archive
        The archive that `penstock.open` gave.
    source
        The path or the bytes that it was opened from.
    name
        How it is called where it is shown; None where it has no path.
    max_header_size
        Longer headers of its arrays are refused.
    allow_pickle
        Whether arrays of objects are read, of which nothing is run.
    """

    fid = None
    _archive: penstock.Archive | None

    def __init__(
        self,
        archive: penstock.Archive,
        source: Any,
        name: str | None = None,
        max_header_size: int = 10000,
        allow_pickle: bool = False,
    ) -> None:
        """`source`: the path or the bytes that `archive` was opened from."""
        self._archive = archive
        self._source = source
        self._name = name
        self._zip: zipfile.ZipFile | None = None
        self._lock = threading.Lock()
        self.max_header_size = max_header_size
        self.allow_pickle = allow_pickle
        self._numbers = {key: number for number, key in enumerate(archive)}
        self.files: list[str]
        self.files, _, objects = _numpy_facts(archive)
        self._objects = frozenset(objects)
        self.f: Fields | None = Fields(self)  # type: ignore[assignment]

    @property
    def zip(self) -> zipfile.ZipFile | None:  # type: ignore[override]
        with self._lock:
            if self._zip is None and self._source is not None:
                in_memory = isinstance(self._source, memoryview)
                if not in_memory and _is_url(self._source):
                    raise penstock.UnsupportedError(
                        f"{self._name}: zipfile cannot read it by its URL; ask for arrays, or load its bytes"
                    )
                self._zip = zipfile.ZipFile(io.BytesIO(self._source) if in_memory else self._source)
            return self._zip

    def __getitem__(self, key: str) -> Any:
        if self._archive is None:
            raise penstock.InvalidArgumentError(f"the file is closed, so that {key!r} cannot be read; load it again")
        found = self._objects_at(key)
        if found is not None:
            return found
        if isinstance(key, str) and key not in self._numbers and key in self.files:
            return b""  # a folder
        if key not in self:
            raise KeyError(f"{key} is not a file in the archive")
        entry = self._archive[key]
        header: int = _entry_parts(self._archive, self._numbers[entry.name])[4]
        if header == 0:  # a member that is no array
            return entry.load().tobytes()
        check_header(
            header, self.max_header_size, f"{self._archive.path}: {entry.name}", lambda: self._version(entry.name)
        )
        warn_of_python2(self._archive, self._numbers[entry.name], 3)
        try:
            return array_of(entry)
        except penstock.ChecksumError as error:
            raise _twin(error, BadMemberError) from error

    def _objects_at(self, key: Any) -> Any:
        """The array of objects of that key; None where it is none."""
        if not self._objects or not isinstance(key, str):
            return None
        name = next((name for name in (key, key.removesuffix(".npy")) if name in self._objects), None)
        if name is None or self._archive is None:
            return None
        if not self.allow_pickle:
            raise refused(self._archive.path, name)
        return objects_in(_part(self._archive, [name], None), name)

    def _version(self, key: str) -> int:
        archive = self.zip
        assert archive is not None
        with archive.open(key if key in archive.NameToInfo else f"{key}.npy") as member:
            return member.read(7)[6]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (key in self.files or key.removesuffix(".npy") in self.files)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("an open .npz cannot be pickled or copied; pickle dict(npz), or its path")

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def close(self) -> None:
        """Lets go of the file; arrays that were read stay. The end of a `with` block does it too."""
        with self._lock:
            if self._zip is not None:
                self._zip.close()
            if self._archive is not None:
                self._archive.close()
            self._archive = self._source = self._zip = self.f = None

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
        self._npz = weakref.proxy(npz)  # no cycle: without one, the file is closed when the last name for it goes

    def __getattr__(self, name: str) -> Any:
        try:
            return self._npz[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return list(self._npz.files)
