"""Exceptions: each is a penstock.Error and the built-in exception that fits."""

from __future__ import annotations

import errno as _errno

from penstock import _whole as _whole  # it tells of a package that is not whole
from penstock._text import abbreviated

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CancelledError",
    "ChangedError",
    "ChecksumError",
    "CorruptError",
    "DTypeMismatchError",
    "DeviceFailedError",
    "DeviceMismatchError",
    "Error",
    "IndexOutOfRangeError",
    "InputOutputError",
    "InvalidArgumentError",
    "IsDirectoryError",
    "KeyNotFoundError",
    "LimitError",
    "NoDeviceError",
    "NotDirectoryError",
    "NotFoundError",
    "OutOfMemoryError",
    "PairWarning",
    "PermissionDeniedError",
    "ShapeMismatchError",
    "ShardWarning",
    "TimedOutError",
    "TransferWarning",
    "TruncatedError",
    "UnknownFormatError",
    "UnsafeError",
    "UnsupportedError",
    "UserCodeError",
]


class PairWarning(UserWarning):
    """`zip` pairs files by place, and their names do not pair so; once for each zip, at the line that calls it."""


class ShardWarning(UserWarning):
    """A shard has members and none of a sample, while other shards have samples; once for each dataset or stream."""


class TransferWarning(UserWarning):
    """A tensor goes back and forth between host and device; once for each storage, at the line that copies it."""


class Error(Exception):
    """What every Penstock call raises.

    `str(error)` is one sentence: where, what was found, what was expected, what to do. The parts:

    - `code`: the stable name of the kind of failure, "not_found";
    - `message`: the sentence without its place;
    - `path`, `offset`, `tensor`: the file, the byte in it, the tensor or record; None where unknown;
    - `http_status`: of a URL, the HTTP status of the last answer, 0 where none came; None where no request failed;
    - `errno`: of errors that are an OSError, the number of the system's error; None where the system gave none.

    Programs that decide by the kind of failure ask the class, `code`, `errno` and `http_status`. The text is for
    people: parts of it follow the locale, and other errors may quote it.
    """

    code: str = ""
    message: str
    path: str | None
    offset: int | None
    tensor: str | None
    http_status: int | None

    def __init__(
        self,
        text: str = "",
        message: str | None = None,
        path: str | None = None,
        offset: int | None = None,
        tensor: str | None = None,
        errno: int | None = None,
        http_status: int | None = None,
    ) -> None:
        super().__init__(_shown(text))
        self.message = self.args[0] if message is None else _shown(message)
        self.path = None if path is None else _shown(path)
        self.offset = offset
        self.tensor = tensor
        self.http_status = http_status
        if isinstance(self, OSError):
            _describe(self, _ERRNO.get(self.code) if errno is None else errno, self.message, self.path)

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        place = (self.path, self.offset, self.tensor)
        return type(self), (self.args[0], self.message, *place, _number(self), self.http_status)


class NotFoundError(Error, FileNotFoundError):
    """There is no such file."""

    code = "not_found"


class IsDirectoryError(Error, IsADirectoryError):
    """A folder lies where a file was expected."""

    code = "is_directory"


class NotDirectoryError(Error, NotADirectoryError):
    """A file lies where a folder was expected."""

    code = "not_directory"


class PermissionDeniedError(Error, PermissionError):
    """The system does not allow it."""

    code = "permission"


class InputOutputError(Error, OSError):
    """Reading or writing failed."""

    code = "io"


class UnknownFormatError(Error, ValueError):
    """No format recognises the content."""

    code = "unknown_format"


class TruncatedError(Error, ValueError):
    """The file ends before something it declares, or was cut while in use."""

    code = "truncated"


class CorruptError(Error, ValueError):
    """A rule of the format is broken."""

    code = "corrupt"


class ChecksumError(Error, ValueError):
    """Bytes do not have their recorded checksum."""

    code = "checksum"


class UnsafeError(Error, ValueError):
    """Content that only running code could load, or a path that leaves its folder."""

    code = "unsafe"


class UnsupportedError(Error, ValueError):
    """Valid, but of a kind that Penstock does not read or write."""

    code = "unsupported"


class LimitError(Error, ValueError):
    """A budget against hostile input was exceeded."""

    code = "limit"


class ChangedError(Error, OSError):
    """The file was written to, or another came in its place, while in use. Open it again when it is complete."""

    code = "changed"


class InvalidArgumentError(Error, ValueError):
    """An argument makes no sense."""

    code = "invalid_argument"


class KeyNotFoundError(Error, KeyError):
    """No tensor or key of that name."""

    code = "key_not_found"


class IndexOutOfRangeError(Error, IndexError):
    """An index outside its dimension, or no index at all."""

    code = "index_out_of_range"


class DTypeMismatchError(Error, TypeError):
    """A dtype or kind of value other than what was expected."""

    code = "dtype_mismatch"


class ShapeMismatchError(Error, ValueError):
    """A shape other than what was expected."""

    code = "shape_mismatch"


class DeviceMismatchError(Error, RuntimeError):
    """Memory on another device than what was expected."""

    code = "device_mismatch"


class NoDeviceError(Error, RuntimeError):
    """The device is not there."""

    code = "no_device"


class DeviceFailedError(Error, RuntimeError):
    """The device's driver reported an error, or it was used in a forked process."""

    code = "device_failed"


class UserCodeError(Error, RuntimeError):
    """A function of the program that Penstock called raised; `__cause__` is what."""

    code = "user_code"


class OutOfMemoryError(Error, MemoryError):
    """There is not that much memory."""

    code = "out_of_memory"


class TimedOutError(Error, TimeoutError):
    """It took longer than allowed."""

    code = "timeout"


class CancelledError(Error, RuntimeError):
    """It was stopped from elsewhere."""

    code = "cancelled"


#: Where the system's own number is not known.
_ERRNO = {
    "not_found": _errno.ENOENT,
    "is_directory": _errno.EISDIR,
    "not_directory": _errno.ENOTDIR,
    "permission": _errno.EACCES,
    "timeout": _errno.ETIMEDOUT,
}


def _shown(text: str) -> str:
    """The text without what may be secret in its URLs. Errors that C++ makes are that already."""
    if ":/" not in text or not any(mark in text for mark in "?#@"):
        return text
    from penstock._core import _without_secrets

    return _without_secrets(text)


def _describe(error: OSError, number: int | None, message: str, path: str | None) -> None:
    error.errno = number
    error.strerror = message
    error.filename = path


def _number(error: Error) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _twin(error: Error, kind: type[Error], path: str | None = None) -> Error:
    """The error as one of another kind, which knows all that it knows; with another path if one is given."""
    where = error.path if path is None else path
    return kind(str(error), error.message, where, error.offset, error.tensor, _number(error), error.http_status)


def _within(error: Error, path: str | None = None, tensor: str | None = None) -> Error:
    """The error with what it does not say yet of where it happened."""
    where = error.path or path
    if where == error.path and (error.tensor or tensor) == error.tensor:
        return error
    name = error.tensor or tensor
    places = [] if name is None else [f"tensor '{abbreviated(name)}'"]
    places += [] if error.offset is None else [f"byte {error.offset}"]
    text = error.message if where is None else f"{where}: {error.message}"
    text = f"{text} ({', '.join(places)})" if places else text
    return type(error)(text, error.message, where, error.offset, name, _number(error), error.http_status)


def _renamed(error: Error, path: str, name: str) -> None:
    """Has an error about the file at `path` name `name` in its place."""
    if error.path != path:
        return
    error.args = (str(error).replace(path, name, 1), *error.args[1:])
    error.path = name
    if isinstance(error, OSError):
        error.filename = name


_CLASSES: dict[str, type[Error]] = {cls.code: cls for cls in Error.__subclasses__()}


def _make(code: str, *parts: Any) -> Error:
    """The error of that code; `parts` are the arguments of `Error`."""
    return _CLASSES[code](*parts)
