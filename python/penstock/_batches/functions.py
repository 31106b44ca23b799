"""What Penstock needs of Python around the program's own functions: their generators, and where they raised."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any


def generator(seed: int, epoch: int, index: int, stage: int) -> Any:
    """NumPy's generator for one call of a seeded function.

    Philox under the key (seed, epoch), whose counter begins at (0, 0, stage, index): no two calls share a part of its
    stream.
    """
    from numpy import array
    from numpy.random import Generator, Philox

    counter = array([0, 0, stage, index], dtype="uint64")
    return Generator(Philox(key=array([seed, epoch], dtype="uint64"), counter=counter))


def random_states() -> dict[str, Any]:
    """The states of the generators that all threads share, of the modules that the program has imported. Empty where
    the program has threads of its own: nobody can tell whether these draw, or a function of the dataset."""
    out: dict[str, Any] = {}
    modules = sys.modules
    if _has_other_threads():
        return out
    if "random" in modules:
        out["random"] = modules["random"].getstate()
    # NumPy imports it now, else it would at the first draw.
    drawing: Any = getattr(modules.get("numpy"), "random", None)
    if hasattr(drawing, "get_state"):
        state = drawing.get_state()
        out["numpy.random"] = state[1].tobytes(), *state[2:]
    if hasattr(modules.get("torch"), "get_rng_state"):  # else it is being imported
        out["torch"] = modules["torch"].get_rng_state().numpy().tobytes()
    return out


# Whose threads draw nothing: progress bars, notebooks, debuggers, logs of runs. Most programs have one of them.
_DRAW_NOTHING = frozenset(
    "tqdm IPython ipykernel zmq tornado debugpy _pydevd_bundle tensorboard tensorboardX wandb mlflow comet_ml".split()
)


def _draws_nothing(thread: Any) -> bool:
    run: Any = getattr(thread, "_target", None) or type(thread)
    root = str(getattr(run, "__module__", "")).partition(".")[0]
    return thread.name.startswith(("penstock", "Dummy-")) or root in _DRAW_NOTHING


def _has_other_threads() -> bool:
    """Whether there are more of Python's threads than the main one, those of loaders, which may be "Dummy" ones, and
    those that draw nothing."""
    threading = sys.modules.get("threading")
    if threading is None:
        return False
    here = threading.current_thread()
    others = (thread for thread in threading.enumerate() if thread is not here)
    return here is not threading.main_thread() or not all(map(_draws_nothing, others))


def drawn_since(states: dict[str, Any]) -> list[str]:
    """Whose generators have drawn since `random_states` gave that."""
    now = random_states()
    return [name for name, state in states.items() if now.get(name, state) != state]


def shared_generators(drawn: list[str], other: str = "") -> str:
    """What a warning says of functions that draw from them in worker threads."""
    return (
        f"a function of the dataset draws from {' and '.join(drawn)}, whose generator all worker threads share, so "
        "that batches differ from run to run whatever the seed is; draw from the generator that map(..., seeded=True) "
        f"gives it, or use num_workers=0{f', or {other}' if other else ''}"
    )


# Those that no call has now, each with its bit generator. Making one takes ten times as long as to seed one anew.
idle_generators: list[tuple[Any, Any]] = []


def lent_generator(seed: int, epoch: int, index: int, stage: int) -> tuple[Any, Any]:
    """A generator with the numbers of `generator`, and its bit generator.

    Whoever has it gives both back to `idle_generators` once nobody else holds one of them.
    """
    try:
        lent = idle_generators.pop()
    except IndexError:
        made = generator(seed, epoch, index, stage)
        return made, made.bit_generator
    lent[1].state = {
        "bit_generator": "Philox",
        "state": {"counter": (0, 0, stage, index), "key": (seed, epoch)},
        "buffer": (0, 0, 0, 0),
        "buffer_pos": 4,  # behind its end: the next number is drawn anew
        "has_uint32": 0,
        "uinteger": 0,
    }
    return lent


def located(error: BaseException, message: str, text: str, path: str | None) -> BaseException:
    """What a function of the program raised, with the sample in its text. `message` is Penstock's, which ends with
    `text`, that of the exception."""
    if not isinstance(error, Exception):  # Ctrl-C, and whatever ends a program
        return error
    if path is not None and getattr(error, "path", None) == path:  # an error of ours that says where already
        return error
    where = message.removesuffix(text).removesuffix(": ")
    if path is not None and path not in where:
        where = f"{where} ({path})" if where else path
    if not where:
        return not_an_end(error)
    out = named(error, where)
    if out is not error:
        out.__cause__ = error
    return out


def not_an_end(error: Exception, where: str = "") -> Exception:
    """StopIteration of a user's function as a RuntimeError, as PEP 479 has it for generators: it would end whoever asks
    for samples. Other errors as they are."""
    if not isinstance(error, StopIteration):
        return error
    text = f"a function raised StopIteration: {error}".removesuffix(": ")
    out = RuntimeError(f"{text} (at {where})" if where else text)
    out.__cause__ = error
    return out


def _renewed(error: Exception, text: str) -> Exception:
    """An error of the same type with another text. One of ours keeps what else it knows."""
    from penstock.errors import Error

    if isinstance(error, Error):
        return type(error)(text, None, error.path, error.offset, error.tensor, http_status=error.http_status)
    return type(error)(text)


def named(error: Exception, where: str) -> Exception:
    """The error of a user's function, of its own type, with the sample in its text. StopIteration is not an end.

    An error whose type takes more than a text, or that has none, stays as it is and gets a note (Python 3.10 has no
    notes).
    """
    from penstock._processes._worker import here

    if isinstance(error, StopIteration):
        return not_an_end(error, where)
    if here.is_preparing:  # a worker that imports the main module: the program's loader, whose batch it is, says where
        return error
    try:
        text = f"{error} (at {where})"
        # Errors of the system say more than a text.
        out = error if isinstance(error, OSError) and error.errno is not None else _renewed(error, text)
        if str(out).endswith(text) or repr(text) in str(out):
            return out
    except Exception:  # of the program's own class
        pass
    if hasattr(error, "add_note"):
        error.add_note(f"at {where}")
    return error
