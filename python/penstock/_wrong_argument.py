"""Which argument of a call was of a wrong type, in a sentence.

Nothing here runs while arguments fit. What an argument may be is what the annotation of the called function says.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, TypeVar

from penstock import errors
from penstock._asked import has
from penstock._core import _without_secrets

Function = TypeVar("Function", bound=Callable[..., Any])

# Names of types that annotations have and modules do not, because only type checkers need them.
_ALIASES = {
    "FileLike": "str | os.PathLike[str] | IO[bytes]",
    "File": "str | os.PathLike[str] | IO[bytes]",
    "Keys": "str | Iterable[str] | None",
    "MapLocation": "str | torch.device | dict | Callable | None",
    "Path": "str | os.PathLike[str]",
    "Sizes": "int | Iterable[int]",
}


def sentence(text: str, frame: FrameType | None, by: str) -> str:
    """What is wrong with a call that ended in an error of this text, or the text where no argument is of a wrong type.

    `frame`: the innermost of Python. `by`: who made the error. "nanobind" took none of the arguments; otherwise a
    compiled function looked at them, which may take more than annotations say: the error is its own ("penstock"), or
    Python's, which it called ("python").
    """
    function = None if frame is None else _function_in(frame)
    found = None
    if frame is not None and function is not None:
        arguments = list(_arguments(function, frame.f_locals))
        found = _first_wrong(arguments, text, by)
        if found is None and by == "penstock":
            found = _of_loose(arguments, text)
    return found or (_without_cpp(text) if by == "nanobind" else text)


def _of_loose(arguments: list[tuple[str, Any, str, Any]], text: str) -> str | None:
    """The text with the name of the one argument whose annotation says nothing and whose type the text is about."""
    loose = [one for one in arguments if one[2] in _LOOSE and f"an object of type {type(one[1]).__name__}" in text]
    loose = [one for one in loose if one[3] is _NONE] or loose
    if len(loose) != 1 or any(re.search(rf"\b{one[0]}\b", text) for one in arguments):
        return None
    return f"{loose[0][0]}: {text}"


def names_arguments(function: Function) -> Function:
    """A function of Python whose errors name the argument that was of a wrong type."""

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, AttributeError) as error:
            if not _may_be_of_argument(error):
                raise
            import inspect  # which takes long to import

            try:
                values = inspect.signature(function).bind(*args, **kwargs).arguments
            except TypeError:
                raise error from None
            found = _first_wrong(list(_arguments(inspect.unwrap(function), values)), str(error), "python")
            if found is None:
                raise
            # torch raises AttributeError where a file is none, and programs may look for it.
            is_own = isinstance(error, errors.Error) or type(error) not in (ValueError, AttributeError)
            raise (errors.DTypeMismatchError(found, found) if is_own else type(error)(found)) from error

    return named  # type: ignore[return-value]


def _may_be_of_argument(error: Exception) -> bool:
    if isinstance(error, errors.Error):
        return isinstance(error, (errors.DTypeMismatchError, errors.InvalidArgumentError))
    return type(error) in {TypeError, ValueError, AttributeError}


def _first_wrong(arguments: list[tuple[str, Any, str, Any]], text: str, by: str) -> str | None:
    refused = by == "nanobind"
    for name, value, annotation, _ in arguments:
        if not _fits(value, annotation, refused):
            if not refused and re.search(rf"\b{name}\b", text):
                return None  # it is said
            if by == "penstock" and (type(value).__name__ in text or _shown(value) in text):
                return f"{name}: {text}"
            return f"found {name}={_shown(value)}, expected {_expected(annotation)}"
    for name, value, annotation, default in arguments if refused else ():
        parts = _split(annotation, "|")
        if "int" in parts and isinstance(value, int) and value.bit_length() > 63:
            return f"found {name} of {value.bit_length()} bits, expected a number of at most 63 bits"
        if "bool" in parts and not isinstance(value, bool) and _TESTS["bool"](value):
            return f"found {name}={_shown(value)}, expected True or False"
        if value is None and default is not None and annotation in _LOOSE:
            advice = "a value" if default is _NONE else f"a value; leave it out for its default, {default!r}"
            return f"found {name}=None, expected {advice}"
    return None


_NONE = object()
_LOOSE = {"Any", "object"}


def _arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> Iterator[tuple[str, Any, str, Any]]:
    """Of each argument name, value, annotation and default, in order."""
    code: CodeType = function.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    defaults = dict(zip(reversed(names[:count]), reversed(function.__defaults__ or ()), strict=False))
    defaults.update(function.__kwdefaults__ or {})
    for name in names:
        annotation = function.__annotations__.get(name)
        if isinstance(annotation, str) and name in values and name != "self":
            yield name, values[name], annotation, defaults.get(name, _NONE)


def _function_in(frame: FrameType) -> Callable[..., Any] | None:
    """The function of ours that runs in the frame: one of its module, also around it, or a method of its first
    argument."""
    if not str(frame.f_globals.get("__name__", "")).startswith("penstock"):
        return None
    code = frame.f_code
    candidates = [frame.f_globals.get(code.co_name)]
    if code.co_argcount:
        kind = type(frame.f_locals.get(code.co_varnames[0]))
        candidates += [vars(base).get(code.co_name) for base in kind.__mro__]
    functions = [getattr(one, "__wrapped__", one) for one in [*candidates, *frame.f_globals.values()]]
    return next((one for one in functions if _holds(getattr(one, "__code__", None), code)), None)


def _holds(of_function: Any, code: CodeType) -> bool:
    """Whether this is the code of that function, or of one in it."""
    return isinstance(of_function, CodeType) and (
        of_function is code or any(part is code for part in of_function.co_consts)
    )


def _fits(value: Any, annotation: str, strictly: bool) -> bool:
    """Whether the value is of a type that the annotation names; True for names that are not known here. Unless
    `strictly`, also what functions of ours take beside it: 0 and 1 for a bool, bytes for a path, a list for a tuple."""
    parts = _split(annotation, "|")
    if len(parts) > 1:
        return any(_fits(value, part, strictly) for part in parts)
    name, _, inside = annotation.partition("[")
    name = name.strip()
    if name in _ALIASES:
        return _fits(value, _ALIASES[name], strictly)
    if name == "Literal":
        return any(repr(value) == one.strip().replace('"', "'") for one in _split(inside.rstrip("]"), ","))
    test = _TESTS.get(name)
    return test is None or bool(test(value)) or (not strictly and isinstance(value, _ALSO.get(name, ())))


def _split(text: str, mark: str) -> list[str]:
    """The parts of an annotation between marks that are not in brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _is(*names: str) -> Callable[[Any], bool]:
    return lambda value: any(f"{kind.__module__}.{kind.__qualname__}" in names for kind in type(value).__mro__)


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: any(hasattr(type(value), name) for name in names)


def _is_iterable(value: Any) -> bool:
    return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")


def _is_dataset(value: Any) -> bool:
    return has(value, "__penstock_dataset__") or _is("penstock.Dataset", "penstock._core.Dataset")(value)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "None": lambda value: value is None,
    "bool": lambda value: isinstance(value, bool) or type(value).__name__.startswith("bool"),
    "int": _has("__index__"),
    "float": _has("__float__", "__index__"),
    "complex": _has("__complex__", "__float__", "__index__"),
    "str": lambda value: isinstance(value, str),
    "bytes": lambda value: isinstance(value, bytes),
    "os.PathLike": _has("__fspath__"),
    "Callable": callable,
    "Iterable": lambda value: _is_iterable(value) and not isinstance(value, str),
    "Sequence": lambda value: _is_iterable(value) and not isinstance(value, str),
    "Sized": _has("__len__"),
    "dict": lambda value: isinstance(value, Mapping),
    "Mapping": lambda value: isinstance(value, Mapping),
    "list": lambda value: isinstance(value, list),
    "tuple": lambda value: isinstance(value, tuple),
    "re.Pattern": lambda value: isinstance(value, re.Pattern),
    "IO": lambda value: has(value, "read") or has(value, "write"),
    "BatchSampler": _is("penstock.BatchSampler"),
    "Collate": _is("penstock.Collate"),
    "Dataset": _is_dataset,
    "EllipsisType": lambda value: value is ...,
    "Generator": _is("penstock.Generator"),
    "LazyTensor": _is("penstock.LazyTensor"),
    "SampleStream": lambda value: has(value, "_native"),
    "Sampler": _is("penstock.Sampler"),
    "Tensor": _is("penstock.Tensor"),
    "torch.Tensor": _is("torch.Tensor"),
    "torch.device": _is("torch.device"),
    "torch.dtype": _is("torch.dtype"),
    "torch.nn.Module": _is("torch.nn.modules.module.Module"),
}


# What is taken for these types beside them.
_ALSO: dict[str, type | tuple[type, ...]] = {"bool": int, "os.PathLike": bytes, "tuple": list}


def _expected(annotation: str) -> str:
    """The annotation for people."""
    words = [_ALIASES.get(part, part) for part in _split(annotation, "|")]
    parts = [_WORDS.get(part, part) for word in words for part in _split(word, "|")]
    return " or ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


_WORDS = {
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "complex": "a number",
    "str": "a text",
    "os.PathLike[str]": "a path",
    "Iterable[int]": "several whole numbers",
    "Sequence[int]": "several whole numbers",
    "Iterable[float]": "several numbers",
    "Iterable[str]": "several texts",
    "Iterable[str | os.PathLike[str]]": "several paths",
}


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        text = _without_secrets(repr(value))
        return text if len(text) <= 60 else f"{text[:57]}..."
    return f"an object of type {type(value).__name__}"


def _without_cpp(text: str) -> str:
    """nanobind's text in words: the function, what it was given, and what it takes."""
    if "(" not in text:  # of a part of an argument, such as an item of a dict
        return "found a part of an argument that is of a wrong type"
    name = text.partition("(")[0]
    overloads = [line.split(". ", 1)[1] for line in text.splitlines() if re.match(r"\s+\d+\. ", line)]
    given = text.rpartition("Invoked with types: ")[2]
    takes = " or ".join(one.partition(" -> ")[0] for one in overloads)
    return f"found {name}() called with ({given}), expected {takes}"
