"""What a worker process does: it makes itself like its parent, and serves calls."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import sys
import traceback

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any, NoReturn


class _Here:
    """What this process is, where it is a worker: one of `count`, with this number."""

    number: int | None = None
    count = 0
    is_preparing = False
    main: str | None = None
    torch_is_set_up = False
    held: Any = None  # what a fork has of the program's functions (`_functions.Held`)


here = _Here()


def run(link: int, content: bytes) -> NoReturn:
    """Makes calls until the parent closes its end. The process ends with that."""
    status = 1
    try:
        from penstock._core import _serve_calls
        from penstock._processes import _errors, _functions  # noqa: F401 - a function may leave no descriptor to read them

        _prepare(pickle.loads(content))
        _serve_calls(link)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        flush()
        os._exit(status)


def _prepare(setup: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    here.number, here.count = setup["number"], setup["count"]
    if dict(os.environ) != setup["environ"]:
        os.environ.clear()
        os.environ.update(setup["environ"])
    os.chdir(setup["folder"])
    sys.path[:], sys.argv[:] = setup["path"], setup["argv"]
    # Processes that were forked from one would all draw the same.
    if "random" in sys.modules:
        sys.modules["random"].seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def unpickled(data: bytes) -> Any:
    """The function that `_functions.pickled` wrote. Of the program's main module where it has to be."""
    main, content = pickle.loads(data)
    if main is not None and here.main != main[1]:
        _import_main(*main)
    from penstock._processes import _functions

    function = _functions.unpickled(content, here.held)
    if "torch" in sys.modules and not here.torch_is_set_up:
        here.torch_is_set_up = True
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)  # the other processors have workers of their own
        torch.seed()
    return function


def _import_main(kind: str, name: str) -> None:
    """Runs the program's main module, under a name for which its `if __name__ == "__main__":` does nothing."""
    from multiprocessing import process, spawn

    current: Any = process.current_process()
    here.is_preparing = current._inheriting = True
    try:
        spawn.prepare({f"init_main_from_{kind}": name})
    finally:
        del current._inheriting
        here.is_preparing = False
    here.main = name


def require_prepared() -> None:
    """RuntimeError where a worker just runs the program's main module, and not its own part of the program."""
    if here.is_preparing:
        raise RuntimeError(
            "the program starts worker processes while one of them imports its main module, which would never end; put "
            'what the program does under `if __name__ == "__main__":`, or install cloudpickle, with which workers '
            "need no main module"
        )


def flush() -> None:
    """What functions have printed is seen before their results are."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
