"""Objects of a checkpoint that are no tensors: by one rule for what is written and what is read, that of
penstock.torch.load, and of torch.load(weights_only=True) where that knows more.

torch's planner unpickles them with Python's own unpickler, which a few bytes can make take all memory or import
modules. So it never sees bytes of a file: it gets a stream that is written here, of the object that was read safely.
"""

from __future__ import annotations

import io
from typing import Any

import torch

from penstock._text import listed
from penstock.errors import DTypeMismatchError, Error, UnsafeError
from penstock.torch.dcp._metadata import failed
from penstock.torch.loading import UnknownGlobalsError, load

_load, _save = torch.load, torch.save  # as they are now: programs put penstock.torch's in their place


def safe_stream(data: bytes, path: str, name: str) -> io.BytesIO:
    """What a planner may unpickle. UnsafeError for a stream that would run code."""
    try:
        value = _read(data)
    except UnknownGlobalsError as error:
        message = (
            f"unpickling it would run or make {listed(list(error.names), most=5)}; {_way(error.names)}, or read files "
            "that you trust with StorageReader(..., weights_only=False)"
        )
        raise failed(UnsafeError, message, path, name) from error
    except Error as error:
        message = f"it cannot be read without running what it says ({error.message}); if you trust the file, read it "
        raise failed(UnsafeError, f"{message}with StorageReader(..., weights_only=False)", path, name) from error
    out = io.BytesIO()
    _save(value, out)
    out.seek(0)
    return out


def require_readable(data: bytes, path: str, name: str) -> None:
    """DTypeMismatchError for the stream of an object that `safe_stream` would refuse: a run must not learn that when it
    resumes."""
    try:
        _read(data)
    except UnknownGlobalsError as error:
        message = (
            f"found an object of {listed(list(error.names), most=5)}, which StorageReader does not read: it would run "
            f"code; save plain values in its place, {_way(error.names)} here and where it is read, or write and read "
            "with weights_only=False"
        )
        raise failed(DTypeMismatchError, message, path, name) from error
    except Error as error:
        message = f"StorageReader would not read this object ({error.message}); write and read with weights_only=False"
        raise failed(DTypeMismatchError, message, path, name) from error


def _read(data: bytes) -> Any:
    try:
        return load(io.BytesIO(data))
    except (Error, RuntimeError, NotImplementedError) as error:
        try:
            return _load(io.BytesIO(data), weights_only=True)
        except Exception:  # whatever a stream makes torch raise
            raise error from None


def _way(names: tuple[str, ...]) -> str:
    return f"allow the names by torch.serialization.add_safe_globals([{listed(list(names), most=5)}])"
