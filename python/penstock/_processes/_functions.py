"""How functions get to worker processes: by pickle where that does it, and else by cloudpickle where that is there.

A fork has the program's functions already. Those that have no name to be found by (`Held`) travel as numbers there, and
those of the main module by their names.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import sys
import types
import weakref
from typing import Any

from penstock import _core


class _Pickler(pickle.Pickler):
    """Notes whether something is the program's main module's, which other processes do not have: by the name of that
    module, which is `_COPY` in a process that multiprocessing spawned, from when it has been run there."""

    main = ""

    def reducer_override(self, given: Any) -> Any:
        module = getattr(given, "__module__", None)
        if (module == "__main__" or (module == _COPY and _is_copy())) and hasattr(given, "__qualname__"):
            self.main = module
        return NotImplemented


_COPY = "__mp_main__"


def _is_copy() -> bool:
    return getattr(sys.modules["__main__"], "__name__", None) == _COPY


def pickled(function: Any, runs_main: bool = True) -> bytes:
    """The function for `_worker.unpickled`.

    TypeError says what does not pickle, and the way out; unless `runs_main` also of what a worker would have to run the
    program's main module for.
    """
    why: Exception | None = None
    content, main = b"", ""
    try:
        content, main = _by_pickle(function)
    except Exception as error:
        why = error
    if why is None and not main:
        return pickle.dumps((None, content))
    try:
        import cloudpickle
    except ImportError:
        pass
    else:
        if main == _COPY and runs_main:  # which cloudpickle takes for a module that every process can import
            return pickle.dumps((_main(function), content))
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


class Held:
    """Functions and classes without a name, and whatever a dataset or loader calls, as they are at this moment.

    A fork that is made now keeps them. The program lets go of them, and knows them again as long as they live.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = _nameless()
        self._numbers = {id(one): number for number, one in enumerate(self._kept)}
        self._alive: list[Any] = []

    def let_go(self) -> None:
        self._alive = [_weakly(one) for one in self._kept]
        self._kept = []

    def number_of(self, given: Any) -> int | None:
        number = self._numbers.get(id(given))
        return number if number is not None and self._alive[number]() is given else None

    def pickled(self, function: Any) -> bytes:
        """For `_worker.unpickled` in a fork."""
        file = io.BytesIO()
        _PicklerOfHeld(file, self).dump(function)
        return pickle.dumps((None, file.getvalue()))

    def __getitem__(self, number: int) -> Any:
        """In a fork."""
        return self._kept[number]


# Whatever a metaclass says.
_name_of_class = type.__dict__["__qualname__"].__get__


def _nameless() -> list[Any]:
    out = []
    for one in gc.get_objects():
        kind = type(one)
        if kind is types.FunctionType or issubclass(kind, type):
            name = one.__qualname__ if kind is types.FunctionType else _name_of_class(one)
            if "<" in name:  # <locals>, <lambda>
                out.append(one)
        elif kind is _core._FunctionKeeper:
            out.extend(held for held in gc.get_referents(one) if held is not kind)
    return out


def _weakly(one: Any) -> Any:
    try:
        return weakref.ref(one)
    except TypeError:  # one that may be gone unnoticed is not known again
        return lambda: None


class _PicklerOfHeld(pickle.Pickler):
    def __init__(self, file: io.BytesIO, held: Held) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._held = held

    def persistent_id(self, given: Any) -> int | None:
        return self._held.number_of(given)


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, held: Held | None) -> None:
        super().__init__(io.BytesIO(content))
        self._held = held

    def persistent_load(self, number: int) -> Any:
        assert self._held is not None
        return self._held[number]


def unpickled(content: bytes, held: Held | None) -> Any:
    """What was pickled, in a worker. RuntimeError for what is not in its module there."""
    try:
        return _Unpickler(content, held).load()
    except (AttributeError, ImportError) as error:
        raise RuntimeError(
            f"a worker process does not find a function or class that it is to call: {error}; define it at the top of "
            'a module that workers can import, and not under `if __name__ == "__main__":`, or install cloudpickle, or '
            "call it in threads (workers='threads')"
        ) from error


def _by_pickle(function: Any) -> tuple[bytes, str]:
    file = io.BytesIO()
    pickler = _Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dump(function)
    return file.getvalue(), pickler.main


def _main(function: Any) -> tuple[str, str]:
    """How a worker imports the program's main module."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return "name", spec.name
    path = getattr(main, "__file__", None)
    if path is None or not os.path.exists(path):  # "<stdin>"
        why = "it is defined where no module is (a prompt, a notebook, standard input)"
        raise _refused(function, why, ", or install cloudpickle")
    return "path", path


def _refused(function: Any, why: Any, way: str) -> TypeError:
    name = getattr(function, "__qualname__", None) or repr(function)
    message = (
        f"{name} cannot be sent to a worker process: {why}; define it at the top of a module{way}, or call it in "
        "threads (workers='threads')"
    )
    return TypeError(message)
