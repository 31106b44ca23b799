"""How functions get to worker processes: by pickle where that does it, and else by cloudpickle where that is there."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

__all__ = ["pickled"]


class _Pickler(pickle.Pickler):
    """Notes whether something is the program's main module's, which other processes do not have."""

    is_of_main = False

    def reducer_override(self, given: Any) -> Any:
        if getattr(given, "__module__", None) == "__main__" and hasattr(given, "__qualname__"):
            self.is_of_main = True
        return NotImplemented


def pickled(function: Any, runs_main: bool = True) -> bytes:
    """The function for `_worker.unpickled`.

    TypeError says what does not pickle, and the way out; unless `runs_main` also of what a worker would have to run the
    program's main module for.
    """
    why: Exception | None = None
    content, is_of_main = b"", False
    try:
        content, is_of_main = _by_pickle(function)
    except Exception as error:
        why = error
    if why is None and not is_of_main:
        return pickle.dumps((None, content))
    try:
        import cloudpickle
    except ImportError:
        pass
    else:
        try:
            return pickle.dumps((None, cloudpickle.dumps(function)))
        except Exception as error:
            raise _refused(function, error, "") from error
    if why is not None:
        raise _refused(function, why, ", or install cloudpickle") from why
    if not runs_main:
        why_not = "it is of the program's main module, which each worker would have to run"
        raise _refused(function, why_not, ", install cloudpickle, or ask for workers='processes'")
    return pickle.dumps((_main(function), content))


def _by_pickle(function: Any) -> tuple[bytes, bool]:
    file = io.BytesIO()
    pickler = _Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dump(function)
    return file.getvalue(), pickler.is_of_main


def _main(function: Any) -> tuple[str, str]:
    """How a worker imports the program's main module."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return "name", spec.name
    path = getattr(main, "__file__", None)
    if path is None:
        raise _refused(function, "it is defined where no module is (a prompt, a notebook)", ", or install cloudpickle")
    return "path", path


def _refused(function: Any, why: Any, way: str) -> TypeError:
    name = getattr(function, "__qualname__", None) or repr(function)
    message = (
        f"{name} cannot be sent to a worker process: {why}; define it at the top of a module{way}, or call it in "
        "threads (workers='threads')"
    )
    return TypeError(message)
