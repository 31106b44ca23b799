"""How an exception of a worker process gets to its parent: with its type, where that pickles, and its traceback."""

from __future__ import annotations

import contextlib
import io
import pickle
import sys
import traceback
from typing import Any

from penstock.errors import UserCodeError


class WorkerTraceback(Exception):  # noqa: N818 - it is the cause of an error
    """Where in a worker process an exception was raised, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def packed(error: BaseException) -> bytes:
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    where = f'in worker process:\n"""\n{text}"""'
    for dumps in (pickle.dumps, _by_cloudpickle):
        try:
            content = dumps(error)
            pickle.loads(content)
        except Exception:
            continue
        return pickle.dumps((content, "", where))
    try:
        said = str(error)
    except Exception:  # of the program's own class
        said = "an exception without a text"
    return pickle.dumps((b"", f"{type(error).__qualname__}: {said}", where))


def _by_cloudpickle(error: BaseException) -> bytes:
    import cloudpickle

    return cloudpickle.dumps(error)  # type: ignore[no-any-return]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Workers have the program's main module under another name."""
        return super().find_class("__main__" if module == "__mp_main__" else module, name)


def unpacked(data: bytes) -> BaseException:
    content, text, where = pickle.loads(data)
    try:
        error: BaseException = (
            _of_here(_Unpickler(io.BytesIO(content)).load()) if content else UserCodeError(text, text)
        )
    except Exception as failure:
        text = f"{failure} (while the exception of a worker process was read)"
        error = UserCodeError(text, text)
    error.__cause__ = WorkerTraceback(where)
    return error


def _of_here(error: BaseException) -> BaseException:
    """With the main module's own class, where cloudpickle made a copy of that."""
    kind = type(error)
    own = getattr(sys.modules["__main__"], kind.__qualname__, None) if kind.__module__ == "__main__" else None
    if isinstance(own, type) and own is not kind:
        with contextlib.suppress(TypeError):
            error.__class__ = own
    return error
