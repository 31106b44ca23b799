"""Files read into memory that is there already."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from penstock._api.files import open as open_archive
from penstock._asked import attribute, has
from penstock._core import Archive, LazyTensor, Tensor, _load_into, _part, _SharedWalk, _span
from penstock._text import abbreviated, listed
from penstock._wrong_argument import names_arguments
from penstock.errors import DTypeMismatchError, KeyNotFoundError, ShapeMismatchError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_MOST_SHOWN = 20
_WAYS_IN_FILE = "load_into looks for a place for each: choose a part of the file with key=, or load it"


class Unmatched(NamedTuple):
    """What `load_into(strict=False)` left as it was.

    Parameters
    ----------
    missing_keys
        What the target has and the file has not, by its path.
    unexpected_keys
        What the file has and the target has no place for.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]


Unmatched.__module__ = "penstock"


@names_arguments
def load_into(
    target: Any,
    path: Any,
    *,
    strict: bool = True,
    verify: bool = True,
    key: str | int | Sequence[str | int] | None = None,
    prefix: str | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Unmatched:
    """Reads a file into tensors and arrays that are there already.

    Everything is checked before the first byte is read, so that an error about names or shapes leaves
    the target as it was. Values are converted where the types differ, as `Tensor.to` does it. Names
    with dots in a flat file ("layers.0.weight" in a `.safetensors`) fill nested dicts and lists too.

    Parameters
    ----------
    target
        What to fill: a penstock.Tensor, a NumPy array, a torch tensor or anything else with DLPack or a
        buffer that can be written, or dicts, lists and tuples of them at any depth. Numbers and strings
        in dicts and lists become the file's; None takes whatever the file has there.
    path
        The file: what `penstock.load` takes.
    strict
        Whether it is an error that the file lacks something, or has more than the target. Other
        shapes always are.
    verify
        Whether recorded checksums are checked.
    key, prefix
        Which part of the file to take, as in `penstock.load`.
    progress
        True for a bar on a terminal and in a notebook, or a function (bytes done, total), called in
        this thread. What it raises stops the load, and leaves the target half filled.

    Returns
    -------
    Unmatched
        `missing_keys` and `unexpected_keys`, by their paths ("layers.0.weight"); both are empty with
        `strict`.

    Raises
    ------
    penstock.KeyNotFoundError
        With `strict`, for what is missing or unexpected.
    penstock.ShapeMismatchError
        Where a shape in the file is another one than the target's.
    penstock.DTypeMismatchError
        Where one of the two has a tensor and the other has not, and for places that cannot be written.

    Examples
    --------
    >>> weights = {"w": np.empty((3, 4), "float32"), "b": np.empty(3, "float32")}
    >>> penstock.load_into(weights, "model.safetensors")
    Unmatched(missing_keys=[], unexpected_keys=[])
    """
    if not isinstance(target, (dict, list, tuple)) and not _is_array(target):
        raise DTypeMismatchError(
            f"found a target of type {type(target).__name__}, expected a tensor, an array, or a dict or list of them"
        )
    with open_archive(path, verify=verify) as whole, _part(whole, key, prefix) as archive:
        places = _leaves(target, "load_into fills a place for each: give a target that holds each part once")
        found = _matching(_leaves(archive.structure, _WAYS_IN_FILE), places)
        _check(places, found, strict, archive.path)
        _fill(archive, [(places[key], found[key]) for key in places if key in found], progress)
    missing = [_text(key) for key in places if key not in found and places[key].needs]
    return Unmatched(missing, [_text(key) for key in found if key not in places])


class _Leaf:
    """A value within dicts, lists and tuples, and its place. `needs`: whether the file must have it."""

    def __init__(self, value: Any, holder: Any, key: Any) -> None:
        self.value = value
        self.holder = holder
        self.key = key
        self.needs = value is not None

    def replace(self, value: Any) -> None:
        self.holder[self.key] = value


def _leaves(root: Any, advice: str) -> dict[Any, _Leaf]:
    """The leaves by their keys. A shared part is listed for each way to it; a part that leads back to itself, once.
    `advice` says what to do where there are too many ways."""
    out: dict[Any, _Leaf] = {}
    walk = _SharedWalk(advice)
    stack: list[tuple[Any, Any, Any, tuple[int, ...]]] = [((), root, None, ())]
    while stack:
        key, value, holder, above = stack.pop()
        if not isinstance(value, (dict, list, tuple)) or id(value) in above:
            out[key] = _Leaf(value, holder, key[-1] if key else None)
            continue
        walk.visit(value, len(value), len(value) * sum(map(_length, key)))
        inside = (*above, id(value))
        children = value.items() if isinstance(value, dict) else enumerate(value)
        stack.extend(((*key, name), child, value, inside) for name, child in reversed(list(children)))
    return out


def _matching(found: dict[Any, _Leaf], places: dict[Any, _Leaf]) -> dict[Any, _Leaf]:
    """What the file has, by the keys of the target.

    A file whose names are flat fills nested targets by names joined with dots, and a file of one tensor fills a bare
    one.
    """
    if set(places) == {()} and len(found) == 1:
        return {(): next(iter(found.values()))}
    if found.keys() <= places.keys() or any(len(key) != 1 or not isinstance(key[0], str) for key in found):
        return found
    names = {_text(key): key for key in places}
    return {names.get(key[0], key): leaf for key, leaf in found.items()}


def _length(step: Any) -> int:
    """How much a step of a key takes, in the text of messages and in memory."""
    return 16 + (len(step) if isinstance(step, str) else 0)


def _text(key: Any) -> str:
    return ".".join(str(part) for part in key)


def _called(key: Any) -> str:
    return abbreviated(_text(key)) if key else "the target"


def _check(places: dict[Any, _Leaf], found: dict[Any, _Leaf], strict: bool, path: str) -> None:
    if set(places) == {()} and () not in found:
        held = listed([_text(key) for key in found]) or "nothing"
        message = f"the target is one tensor, and the file holds {held}; choose one with key=, or give a dict"
        raise KeyNotFoundError(f"{path}: {message}", message, path)
    missing = [_text(key) for key, place in places.items() if key not in found and place.needs]
    unexpected = [_text(key) or "one value" for key in found if key not in places]
    shapes: list[str] = []
    kinds: list[str] = []
    for key, place in places.items():
        if key not in found:
            continue
        problem, is_shape = _misfit(place, found[key].value)
        if problem:
            (shapes if is_shape else kinds).append(f"{_called(key)}: {problem}")
    texts = []
    if strict and missing:
        texts.append(f"the file has no {listed(missing)}")
    if strict and unexpected:
        texts.append(f"the target has no place for {listed(unexpected)}")
    texts += (shapes + kinds)[:_MOST_SHOWN]
    if len(shapes + kinds) > _MOST_SHOWN:
        texts.append(f"and {len(shapes + kinds) - _MOST_SHOWN} more do not fit")
    if not texts:
        return
    message = "; ".join(texts) + ("; strict=False leaves out what has no counterpart" if not shapes + kinds else "")
    kind: Any = KeyNotFoundError
    if kinds or shapes:
        kind = DTypeMismatchError if kinds else ShapeMismatchError
    raise kind(f"{path}: {message}", message, path)


def _misfit(place: _Leaf, value: Any) -> tuple[str, bool]:
    """Why a value of the file cannot take the place, and whether only its shape is the reason; an empty text where it
    fits."""
    if not isinstance(value, LazyTensor):
        if _is_array(place.value):
            return f"the file has {_kind(value)} there, where the target has a tensor", False
        if isinstance(place.holder, (dict, list)) or value == place.value:
            return "", False
        return f"the file has {_kind(value)}, which a tuple cannot take; use a list", False
    if place.value is None and isinstance(place.holder, (dict, list)):
        return "", False
    if not _is_array(place.value):
        return f"the file has a tensor there, where the target has {_kind(place.value)}", False
    why = _unwritable(place.value)
    if why:
        return why, False
    shape = _shape_of(place.value)
    return ("" if shape == value.shape else f"found shape {value.shape} in the file, expected {shape}"), True


def _kind(value: Any) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _is_array(value: Any) -> bool:
    if value is None or isinstance(value, (str, bytes, int, float, complex, type)):
        return False
    return has(value, "__dlpack__") or has(value, "__array_interface__") or _has_buffer(value)


def _has_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def _is_numpy(value: Any) -> bool:
    return type(value).__module__ == "numpy" and has(value, "flags")


def _shape_of(value: Any) -> tuple[int, ...]:
    return tuple(value.shape) if has(value, "shape") else tuple(memoryview(value).shape or ())


def _unwritable(value: Any) -> str:
    read_only = value.read_only if isinstance(value, Tensor) else False
    if _is_numpy(value):
        read_only = not value.flags.writeable
    elif not has(value, "__dlpack__") and not has(value, "__array_interface__"):
        view = memoryview(value)
        if not view.contiguous:
            return "its elements do not lie one behind the other; give a contiguous view"
        read_only = view.readonly
    if any(_calls(value, name) for name in ("is_conj", "is_neg")):
        return "the target is a lazy conjugate or negative of other memory; give that memory, or a copy"
    steps = value.strides if isinstance(value, Tensor) else _calls(value, "stride")
    if steps and any(step == 0 and size > 1 for step, size in zip(steps, _shape_of(value), strict=True)):
        return "several elements of the target are one in memory, as after expand; give a copy"
    if read_only:
        return "the target's memory is read-only; give a copy that can be written"
    return ""


def _calls(value: Any, name: str) -> Any:
    """What a method of torch's tensors gives; None for what has none."""
    method = attribute(value, name)
    return method() if callable(method) else None


def _fill(archive: Archive, pairs: list[tuple[_Leaf, _Leaf]], progress: Any) -> None:
    names = {name: number for number, name in enumerate(archive.keys())}
    direct: list[tuple[int, Any]] = []
    apart: list[tuple[Any, Any]] = []
    for place, leaf in pairs:
        value = leaf.value
        if not isinstance(value, LazyTensor):
            continue
        if place.value is None:
            place.replace(value.load())
        elif _takes_bytes(place.value):
            direct.append((names[value.name], place.value))
        else:
            apart.append((place.value, value))
    # In the order of the target, where two places share memory: the last one counts.
    together = direct if not _overlap([value for _, value in direct]) else []
    if together or progress is not None:
        _load_into(archive, [number for number, _ in together], [value for _, value in together], progress)
    if not together:
        for number, value in direct:
            _load_into(archive, [number], [value])
    for array, entry in apart:
        tensor = entry.load()
        wanted = array.dtype.newbyteorder("=")
        # NumPy would convert in its own way.
        array[...] = (tensor.to(wanted) if tensor.dtype.is_numeric and wanted.kind in "biufc" else tensor).numpy()
    for place, leaf in pairs:
        if not isinstance(leaf.value, LazyTensor) and isinstance(place.holder, (dict, list)):
            place.replace(leaf.value)


def _takes_bytes(value: Any) -> bool:
    """Whether C++ can read into its memory as it lies. Otherwise NumPy copies into it (negative and broken strides,
    other byte orders, structures)."""
    if not _is_numpy(value):
        return True
    steps = zip(value.strides, value.shape, strict=True)
    return value.dtype.isnative and all(
        step >= 0 and step % max(value.itemsize, 1) == 0 and (step > 0 or size <= 1) for step, size in steps
    )


def _overlap(values: list[Any]) -> bool:
    """Whether two of them share memory, or may do so."""
    spans = [span for span in map(_span, values) if span[1] < span[2]]
    spans.sort()
    return any(one[0] == two[0] and two[1] < one[2] for one, two in itertools.pairwise(spans))
