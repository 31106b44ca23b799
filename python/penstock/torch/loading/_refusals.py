"""What `load` refuses: files that name what nobody may make of them, with the way around that.

Nothing of a file is run. So an error says what the file names, and which option or which call of torch's gives what of
it can be had.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

import penstock
from penstock._text import listed
from penstock.torch.loading._rebuild import Use


class UnknownGlobalsError(penstock.UnsafeError, pickle.UnpicklingError):
    """The file names classes or functions that torch.load(weights_only=True) does not know either.

    `names` has all of them; the text says the first twenty.
    """

    names: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return *super().__reduce__(), {"names": self.names}


def refuse_code(weights_only: object, pickle_module: object) -> None:
    if weights_only is not None and not weights_only and not _is_asked_by_torch():
        raise penstock.UnsafeError(
            "weights_only=False would run code found in the file, which Penstock never does; leave it out, and "
            "use unknown='keep' for objects of other classes"
        )
    if pickle_module is not None:
        raise penstock.UnsafeError(
            "pickle_module would run code found in the file, which Penstock never does; leave it out"
        )


def _is_asked_by_torch() -> bool:
    """Whether torch itself calls torch.load, which a program has set to `load`. torch asks for weights_only=False where
    it unpickles storages and reads its own distributed checkpoints, and needs it for neither."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        if module not in {"penstock", "contextlib"}:
            return module == "torch"
    return False


def unknown_globals(archive: penstock.Archive, unknown: dict[str, Use]) -> UnknownGlobalsError:
    found = sorted(unknown)
    if archive.metadata.get("kind") == "torchscript":  # whose classes are code in the file: nobody can allow them
        message = (
            "the file is a TorchScript archive, whose module only torch.jit.load makes, because it runs the file's "
            "code; nothing of it was run. Its tensors are there by penstock.open, under their names, and "
            "unknown='data' gives the module's attributes without its classes"
        )
    elif any(name.startswith("torch.nn.modules.") and use > Use.NAME for name, use in unknown.items()):
        message = (
            f"the file holds a whole module, of the classes {listed(found)}, which only running code could make; "
            "nothing of the file was run. Its tensors are there by penstock.open, under their names. Where you trust "
            "the file, load it once with torch.load(weights_only=False) and save module.state_dict() instead. To get "
            "the objects as inert penstock.Opaque ones, load it with unknown='keep'"
        )
    else:
        message = (
            f"the file names {listed(found)}, which torch.load(weights_only=True) does not know either; nothing of the "
            f"file was run. {_way(unknown)}Take a part of the file that is without them by key=, or load it with "
            "unknown='keep' to get them as inert penstock.Opaque objects"
        )
    return _error(archive, message, found)


def _way(unknown: dict[str, Use]) -> str:
    """How the names come to be read, where the file has no more of them than classes and their plain objects."""
    if max(unknown.values()) is Use.OBJECT:
        return ""
    names = listed([name.removeprefix("__main__.") for name in sorted(unknown)])
    way = f"If you know the classes, allow them: torch.serialization.add_safe_globals([{names}]). "
    if Use.DATA in unknown.values():
        way = "Their objects are plain ones: unknown='data' gives their attributes without the classes. " + way
    return way


def unfit_parts(archive: penstock.Archive, unfit: list[str]) -> penstock.UnsupportedError:
    message = (
        f"the file holds NumPy's objects of parts that do not make one: {listed(unfit, most_characters=400)}. Load it "
        "with unknown='keep' to get the parts as penstock.Opaque objects"
    )
    return penstock.UnsupportedError(f"{archive.path}: {message}", message, archive.path)


def refused_globals(archive: penstock.Archive, refused: dict[str, str]) -> UnknownGlobalsError:
    reasons = listed(sorted(set(refused.values())), separator="; ", most_characters=400)
    message = (
        f"the file names what add_safe_globals allows, but loading it would run code: {reasons}. "
        "Load it with unknown='keep' to get the parts as penstock.Opaque objects"
    )
    return _error(archive, message, sorted(refused))


def _error(archive: penstock.Archive, message: str, names: list[str]) -> UnknownGlobalsError:
    message += _about_distributed(names)
    error = UnknownGlobalsError(f"{archive.path}: {message}", message, archive.path)
    error.names = tuple(names)
    return error


def _about_distributed(names: list[str]) -> str:
    if not any(name.startswith("torch.distributed.") for name in names):
        return ""
    if "torch.distributed.tensor" not in sys.modules:
        return ", or import torch.distributed.tensor first, which distributed tensors (DTensor) are made by"
    return ", or save distributed tensors (DTensor) as plain ones: tensor.full_tensor()"
