"""The signatures of the compiled functions, as `inspect.signature` gives them."""

from __future__ import annotations

# Only type checkers need `typing`, which takes a third of the module's import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import inspect
    from collections.abc import Sequence
    from typing import Any

__all__ = ["signature_of"]


def signature_of(overloads: Sequence[tuple[str, str | None, Any]], is_bound: bool) -> inspect.Signature:
    """The signature of a compiled function. `overloads` is what nanobind knows of each overload;
    the first part of it is the text of a definition.

    Of several overloads the longest one counts; parameters that another one lacks have `...` as
    their default.
    """
    found = [_parsed(text, is_bound) for text, _, _ in overloads]
    longest = max(found, key=lambda signature: len(signature.parameters))
    if len(found) == 1:
        return longest
    least = min(len(_required(signature)) for signature in found)
    parameters = list(longest.parameters.values())
    for position, parameter in enumerate(parameters):
        kinds = [list(each.parameters.values())[position] for each in found if len(each.parameters) > position]
        annotation = _joined([kind.annotation for kind in kinds])
        default = ... if parameter.default is parameter.empty and position >= least else parameter.default
        parameters[position] = parameter.replace(annotation=annotation, default=default)
    returned = _joined([signature.return_annotation for signature in found])
    return longest.replace(parameters=parameters, return_annotation=returned)


def _parsed(text: str, is_bound: bool) -> inspect.Signature:
    import inspect

    defined: dict[str, Any] = {}
    # The text is one of our own, compiled into the module.
    for module in ("penstock._core.", "penstock.device.", "penstock."):
        text = text.replace(module, "")
    # The function behind a property has no name.
    text = text.replace("def (", "def getter(", 1)
    exec(f"from __future__ import annotations\n{text.rstrip().rstrip(':')}: ...", defined)
    function = next(value for name, value in defined.items() if inspect.isfunction(value))
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:]) if is_bound else signature


def _required(signature: inspect.Signature) -> list[str]:
    return [name for name, one in signature.parameters.items() if one.default is one.empty]


def _joined(annotations: list[Any]) -> Any:
    texts = list(dict.fromkeys(annotations))
    return texts[0] if len(texts) == 1 else " | ".join(str(text) for text in texts)
