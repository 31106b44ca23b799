"""Errors about files that are torch.load's too, so that programs that catch those go on with an older checkpoint, and
errors about batches that are default_collate's.
"""

from __future__ import annotations

import os
import pickle

import torch

import penstock
from penstock._translating import Translating
from penstock.errors import _twin


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


class UnmappableFileError(penstock.OutOfMemoryError, RuntimeError):
    """The process has not as many addresses left as the file has bytes."""


class UnreachableDeviceError(penstock.NoDeviceError, RuntimeError):
    """The file records a device that is not here, or that torch does not know."""


class UnmadeError(penstock.UnsupportedError, NotImplementedError):
    """Parts of an object that torch has no way to make one of."""


class DeviceMemoryError(penstock.OutOfMemoryError, torch.OutOfMemoryError):
    """The device has not enough memory left."""


class UnequalSamplesError(penstock.ShapeMismatchError, RuntimeError):
    """Samples of one batch are not of one size."""


class UnequalDTypesError(penstock.DTypeMismatchError, RuntimeError):
    """Samples of one batch are not of one dtype, and not of one size either."""


class UnlikeKeysError(penstock.ShapeMismatchError, KeyError):
    """Samples of one batch do not have the same keys."""


class UnlikeTypesError(penstock.ShapeMismatchError, TypeError):
    """Samples of one batch are not of one type."""


class UnstackableTypeError(penstock.UnsupportedError, TypeError):
    """Samples of a type that batches have no form for."""


class UnstackableTensorError(penstock.UnsupportedError, RuntimeError):
    """Tensors that are not stacked, such as sparse ones."""


_KINDS: dict[type[penstock.Error], type[penstock.Error]] = {
    penstock.UnknownFormatError: UnknownFileError,
    penstock.TruncatedError: CutFileError,
    penstock.CorruptError: CorruptFileError,
    penstock.ChecksumError: DamagedFileError,
    penstock.UnsafeError: UnsafeFileError,
}


_OF_BATCHES: tuple[type[penstock.Error], ...] = (
    UnequalSamplesError,
    UnequalDTypesError,
    UnlikeKeysError,
    UnlikeTypesError,
    UnstackableTypeError,
    UnstackableTensorError,
)


def as_torchs(error: penstock.Error, refusal: type[Exception] | None = None) -> penstock.Error:
    """The error as one of torch's type too, where there is one; `refusal`: how default_collate refused the samples."""
    kind = _KINDS.get(type(error))
    if kind is UnknownFileError and _is_empty(error.path):
        kind = EmptyFileError
    if kind is None and refusal is not None:
        wanted = (type(error), refusal)
        kind = next((one for one in _OF_BATCHES if one.__bases__ == wanted), None)
    if kind is None:
        return error
    twin = _twin(error, kind)
    twin.__cause__ = error.__cause__
    return twin.with_traceback(error.__traceback__)


def _is_empty(path: str | None) -> bool:
    try:
        return path is not None and os.path.getsize(path) == 0
    except OSError:
        return False


def torch_errors() -> Translating:
    """What is raised within as an error of torch's type too, where that has one."""
    return Translating(lambda error: as_torchs(error) if isinstance(error, penstock.Error) else None)
