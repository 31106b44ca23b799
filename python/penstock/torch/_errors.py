"""Errors about files that are torch.load's too, so that programs that catch those go on with an older checkpoint."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Iterator

import penstock

__all__ = ["EmptyFileError", "torch_errors"]


class EmptyFileError(penstock.UnknownFormatError, EOFError):
    """There is nothing in the file."""


class UnknownFileError(penstock.UnknownFormatError, pickle.UnpicklingError, RuntimeError):
    """No format recognises the content."""


class CutFileError(penstock.TruncatedError, EOFError, pickle.UnpicklingError, RuntimeError):
    """The file ends before something it declares."""


class CorruptFileError(penstock.CorruptError, pickle.UnpicklingError, RuntimeError):
    """A rule of the format is broken."""


class DamagedFileError(penstock.ChecksumError, pickle.UnpicklingError, RuntimeError):
    """Bytes do not have their recorded checksum."""


class UnsafeFileError(penstock.UnsafeError, pickle.UnpicklingError):
    """Content that only running code could load."""


_KINDS: dict[type[penstock.Error], type[penstock.Error]] = {
    penstock.UnknownFormatError: UnknownFileError,
    penstock.TruncatedError: CutFileError,
    penstock.CorruptError: CorruptFileError,
    penstock.ChecksumError: DamagedFileError,
    penstock.UnsafeError: UnsafeFileError,
}


@contextlib.contextmanager
def torch_errors() -> Iterator[None]:
    """What is raised within as an error of torch's type too, where that has one."""
    try:
        yield
    except penstock.Error as error:
        kind = _KINDS.get(type(error))
        if kind is None:
            raise
        twin = kind(str(error), error.message, error.path, error.offset, error.tensor)
        raise twin.with_traceback(error.__traceback__) from error.__cause__
