"""What Penstock needs of Python around the program's own functions: their generators, and where they raised."""

from __future__ import annotations

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["generator", "idle_generators", "lent_generator", "located", "named"]


def generator(seed: int, epoch: int, index: int, stage: int) -> Any:
    """NumPy's generator for one call of a seeded function.

    Philox under the key (seed, epoch), whose counter begins at (0, 0, stage, index): no two calls share a part of its
    stream.
    """
    from numpy import array
    from numpy.random import Generator, Philox

    counter = array([0, 0, stage, index], dtype="uint64")
    return Generator(Philox(key=array([seed, epoch], dtype="uint64"), counter=counter))


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
        return error
    out = named(error, where)
    if out is not error:
        out.__cause__ = error
    return out


def named(error: Exception, where: str) -> Exception:
    """The error of a user's function, of its own type, with the sample in its text.

    An error whose type takes more than a text stays as it is and gets a note (Python 3.10 has no
    notes).
    """
    text = f"{error} (at {where})"
    try:
        # Errors of the system say more than a text.
        out = error if isinstance(error, OSError) and error.errno is not None else type(error)(text)
    except Exception:
        out = error
    if str(out).endswith(text) or repr(text) in str(out):
        return out
    if hasattr(error, "add_note"):
        error.add_note(f"at {where}")
    return error
