"""URLs with options of their own, and files of other libraries' file systems, where Penstock takes a path.

    state = penstock.load(penstock.remote.open("s3://bucket/model.pt", RemoteOptions(timeout=5)))
    state = penstock.load(penstock.remote.from_fsspec(fs, "bucket/model.pt"))
    archive = penstock.open(penstock.remote.from_obstore(store, "model.safetensors"))

`s3://`, `gs://`, `az://`, `hf://` and `http(s)://` need none of this: they are paths. `open` is for options that differ
from those of the environment. The others are for whatever else fsspec and obstore reach (HDFS, an archive, memory), and
for programs that have such an object already.
"""

from __future__ import annotations

import operator
from dataclasses import KW_ONLY, dataclass, replace

from penstock import _whole as _whole  # it tells of a package that is not whole
from penstock._asked import has
from penstock._core import Source, _open_source, _source_from
from penstock._files.paths import absolute
from penstock._text import abbreviated
from penstock.errors import (
    ChangedError,
    DTypeMismatchError,
    Error,
    InputOutputError,
    InvalidArgumentError,
    IsDirectoryError,
    NotFoundError,
    PermissionDeniedError,
    TimedOutError,
    TruncatedError,
    UnsupportedError,
    _shown,
)

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["CacheOptions", "RemoteOptions", "Source", "from_fsspec", "from_obstore", "open"]

Source.__module__ = __name__

# fsspec has the parts of one call in flight together, and a load asks for up to 8 MiB at once.
_PART = 2 << 20

# What others' exceptions stand for, by their name where they are no built-in ones (obstore's).
_KINDS = {
    FileNotFoundError: NotFoundError,
    IsADirectoryError: IsDirectoryError,
    PermissionError: PermissionDeniedError,
    TimeoutError: TimedOutError,
}
_NAMED = {
    "PreconditionError": ChangedError,
    "PermissionDeniedError": PermissionDeniedError,
    "UnauthenticatedError": PermissionDeniedError,
}


class _Options:
    """Values by name, which are compared, shown and pickled."""

    __slots__: tuple[str, ...] = ()

    def _values(self) -> dict[str, Any]:
        return {name: value for name in sorted(self.__slots__) if (value := getattr(self, name)) is not None}

    def __repr__(self) -> str:
        shown = (
            f"{name}={'...' if name in _SECRETS else _shown(repr(value))}" for name, value in self._values().items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values().items()))


_SECRETS = {"account_key", "sas_token", "secret_access_key", "session_token", "token"}


@dataclass(repr=False, eq=False, slots=True)
class CacheOptions(_Options):
    """A folder on disk that keeps what was read by URL, shared with other processes that name it.

    Parameters
    ----------
    folder
        Where it is; empty: nothing is kept.
    max_bytes
        The least recently used goes beyond it; 2 MB or more.
    trust_seconds
        For so long an object in it is taken for unchanged; 0: always asked.
    """

    folder: str | os.PathLike[str] = ""
    _: KW_ONLY
    max_bytes: int = 50_000_000_000
    trust_seconds: float = 0


@dataclass(repr=False, eq=False, slots=True, kw_only=True)
class RemoteOptions(_Options):
    """Options of a location behind a URL. What is None follows from the environment, as docs/remote.md says.

    Parameters
    ----------
    timeout
        Seconds without a byte, or with less than 1 KiB each, after which a request has failed: 0.01 to 3600.
    retry_seconds
        For so long a read tries again: 0 to 86400.
    hedges
        Second requests for bytes whose answer is late, as a share of all answers: 0 (none) to 1.
    requests
        Most requests of one read in flight: 1 to 1024. All reads of a process together have
        `PENSTOCK_REMOTE_REQUESTS`.
    cache
        The cache on disk; `CacheOptions()` is none.
    endpoint
        The store of `s3://`, `gs://`, `az://` and `hf://`, such as "http://localhost:9000".
    addressing
        "path" or "virtual": where the buckets of another store than Amazon's are in a URL.
    region
        That requests are signed for.
    access_key_id, secret_access_key, session_token
        Keys of `s3://` and `gs://`.
    account, account_key, sas_token
        The account of `az://`, and its key or a shared access signature.
    anonymous
        Ask `s3://` and `az://` without a signature.
    token
        The bearer token of `hf://`, `gs://`, `az://`, `http://` and `https://`. It is sent to the host of the location,
        and to no other that a redirect names.
    """

    timeout: float | None = None
    retry_seconds: float | None = None
    hedges: float | None = None
    requests: int | None = None
    cache: CacheOptions | None = None
    endpoint: str | None = None
    addressing: str | None = None
    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = None
    session_token: str | None = None
    account: str | None = None
    account_key: str | None = None
    sas_token: str | None = None
    anonymous: bool | None = None
    token: str | None = None


def open(location: str, options: RemoteOptions | None = None) -> Source:
    """A location behind a URL, with options in place of the environment's.

    `penstock.load(penstock.remote.open("s3://bucket/model.pt", RemoteOptions(timeout=5)))`. Files beside it that an
    index names are opened by the same options. `penstock.files(urls, source=lambda url: penstock.remote.open(url,
    options))` reads a data set so.

    Parameters
    ----------
    location
        A URL, or a path, which the options change nothing for.
    options
        What differs from the environment.

    Returns
    -------
    Source
        What `penstock.open`, `load`, `load_into` and `rows`, and `load` and `load_into` of `penstock.torch`, take in
        place of a path. It can be pickled, with the options: with keys in them too.

    Raises
    ------
    InvalidArgumentError
        An option is out of range.
    penstock.Error
        As `penstock.open`.
    """
    values: dict[str, Any] = {}
    kept = None  # as they are now
    if options is not None:
        values = _values_of("options", options, RemoteOptions)
        kept = replace(options)
        if options.cache is not None:
            values["cache"] = _values_of("cache", options.cache, CacheOptions)
            kept.cache = replace(options.cache)
    is_path = isinstance(location, (str, bytes)) or has(location, "__fspath__")
    return _open_source(location, values, (open, (absolute(location) if is_path else location, kept)))


def _values_of(name: str, options: Any, kind: type[_Options]) -> dict[str, Any]:
    if not isinstance(options, kind):
        raise DTypeMismatchError(f"found {name} of type {type(options).__name__}, expected {kind.__name__}")
    return options._values()


def from_fsspec(fs: Any, path: str, *, size: int | None = None) -> Source:
    """A file of an fsspec file system.

    `penstock.load(penstock.remote.from_fsspec(*fsspec.url_to_fs("abfs://clips/a.pt")))` loads by an address. The file
    is read in ranges of 2 MiB at most, several at once, by `fs.cat_ranges`; it is never read whole when a part was
    asked for.

    Parameters
    ----------
    fs
        Any file system of fsspec.
    path
        The file, as `fs` names it.
    size
        Its bytes, where they are known: `fs` is not asked for them then.

    Returns
    -------
    Source
        What `penstock.open`, `load`, `load_into` and `rows`, and `load` and `load_into` of `penstock.torch`, take in
        place of a path. It can be pickled if `fs` can.

    Raises
    ------
    penstock.Error
        As for a path: NotFoundError, PermissionDeniedError, ..., and InputOutputError for what else `fs` raises, which
        is the `__cause__`. While reading too, then with the byte that was read.
    """
    _require(fs, "cat_ranges", "an fsspec file system")
    name = _path_of(path)
    unstrip = getattr(fs, "unstrip_protocol", None)
    shown = name if unstrip is None else unstrip(name)
    size = _size_of(_asked(lambda: fs.info(name), shown) if size is None else {"size": size}, shown)

    def ranges(starts: list[int], ends: list[int]) -> Sequence[Any]:
        got: Sequence[Any] = fs.cat_ranges([name] * len(starts), starts, ends, on_error="raise")
        return got

    return _source_from(_reader(ranges, shown), size, shown, (_again, ("from_fsspec", fs, path, size)))


def from_obstore(store: Any, path: str, *, size: int | None = None) -> Source:
    """An object of an obstore store.

    `penstock.load(penstock.remote.from_obstore(store, "model.pt"))`. The object is read in ranges, several at
    once, by `store.get_ranges`.

    Parameters
    ----------
    store
        Any store of obstore: S3Store, AzureStore, LocalStore, MemoryStore, ...
    path
        The object, as `store` names it.
    size
        Its bytes, where they are known: `store` is not asked for them then.

    Returns
    -------
    Source
        As `from_fsspec`.

    Raises
    ------
    penstock.Error
        As `from_fsspec`.
    """
    _require(store, "get_ranges", "an obstore store")
    name = _path_of(path)
    shown = f"{type(store).__name__}:{name}"
    size = _size_of(_asked(lambda: store.head(name), shown) if size is None else {"size": size}, shown)

    def ranges(starts: list[int], ends: list[int]) -> Sequence[Any]:
        got: Sequence[Any] = store.get_ranges(name, starts=starts, ends=ends)
        return got

    return _source_from(_reader(ranges, shown), size, shown, (_again, ("from_obstore", store, path, size)))


def _again(maker: str, store: Any, path: str, size: int) -> Source:
    """A source that is unpickled."""
    made: Source = globals()[maker](store, path, size=size)
    return made


def _require(store: Any, method: str, what: str) -> None:
    if not callable(getattr(store, method, None)):
        raise DTypeMismatchError(
            f"found an object of type {type(store).__name__}, expected {what}, which has {method}()"
        )


def _path_of(path: Any) -> str:
    if not isinstance(path, str):
        raise DTypeMismatchError(
            f"found a path of type {type(path).__name__}, expected a string, as the file system names the file"
        )
    return path


def _size_of(info: Any, shown: str) -> int:
    if not callable(getattr(info, "get", None)):
        message = f"its file system describes it as {abbreviated(repr(info))}, expected a dict with its size"
        raise _error(DTypeMismatchError, message, shown)
    if info.get("type") == "directory":
        raise _error(IsDirectoryError, "it is a folder; give one file of it", shown)
    size = info.get("size")
    if size is None:
        message = "its file system does not tell its size; give size=, or the opened file to penstock.load"
        raise _error(UnsupportedError, message, shown)
    try:
        number = -1 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise _error(InvalidArgumentError, f"found {size!r} as its size, expected a number of bytes", shown)
    return number


def _reader(ranges: Callable[[list[int], list[int]], Sequence[Any]], shown: str) -> Callable[[int, memoryview], None]:
    """A function that fills a view from an offset, by one call for all of its parts."""

    def read(offset: int, into: memoryview) -> None:
        starts = list(range(0, len(into), _PART))
        ends = [min(start + _PART, len(into)) for start in starts]
        asked = [offset + start for start in starts], [offset + end for end in ends]
        parts = _asked(lambda: ranges(*asked), shown, offset)
        for start, end, view in zip(starts, ends, _views(parts, len(starts), shown, offset), strict=True):
            if len(view) != end - start:
                raise _of_another_length(len(view), end - start, shown, offset + start)
            into[start:end] = view

    return read


def _of_another_length(found: int, asked: int, shown: str, offset: int) -> Error:
    if found > asked:
        message = f"its file system gave {found} bytes where {asked} were asked for; cat_ranges or get_ranges is wrong"
        return _error(InputOutputError, message, shown, offset)
    message = (
        f"its file system gave {found} of the {asked} bytes asked for; it is shorter than when it was opened, or was "
        "written to: open it again"
    )
    return _error(TruncatedError, message, shown, offset)


def _views(parts: Any, count: int, shown: str, offset: int) -> list[memoryview]:
    """The bytes of each part."""
    try:
        views = [memoryview(part) for part in parts]
        views = [(view if view.c_contiguous else memoryview(bytes(view))).cast("B") for view in views]
    except (TypeError, ValueError):
        views = []
    if len(views) != count:
        message = f"its file system gave {abbreviated(repr(parts))}, expected the bytes of {count} ranges"
        raise _error(DTypeMismatchError, message, shown, offset)
    return views


def _asked(ask: Callable[[], Any], shown: str, offset: int | None = None) -> Any:
    """What the file system answers; its exceptions as ours."""
    try:
        return ask()
    except (Error, MemoryError):
        raise
    except Exception as error:
        kind = _NAMED.get(type(error).__name__, InputOutputError)
        kind = next((ours for theirs, ours in _KINDS.items() if isinstance(error, theirs)), kind)
        raise _error(kind, f"its file system says {type(error).__name__}: {_said(error)}", shown, offset) from error


def _said(error: Exception) -> str:
    """The first line: obstore's messages go on with its own inner state."""
    try:
        return (str(error).splitlines() or [""])[0]
    except Exception:  # of a class whose text cannot be had
        return "(its text cannot be had)"


def _error(kind: type[Error], message: str, shown: str, offset: int | None = None) -> Error:
    text = f"{shown}: {message}" if offset is None else f"{shown}: {message} (byte {offset})"
    return kind(text, message, shown, offset)
