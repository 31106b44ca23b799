"""`load_into`: checkpoints read straight into the memory of modules, tensors and nested containers of them.

`_content.py` gives the file without its tensors, and `_targets.py` finds for each part of the target what it takes.
Only when everything fits does `_filling.py` read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

import penstock
from penstock._text import abbreviated
from penstock._wrong_argument import names_arguments
from penstock.torch._errors import torch_errors
from penstock.torch.loading._checkpoint import load_archive
from penstock.torch.loading._content import Content, Made, kind_of
from penstock.torch.loading._filling import fill
from penstock.torch.loading._hints import hint
from penstock.torch.loading._opening import FileLike, opened_by_all
from penstock.torch.loading._ranks import telling
from penstock.torch.loading._storages import MapLocation, check_map_location
from penstock.torch.loading._targets import Plan
from penstock.torch.loading._together import kind_of_place, together_of
from penstock.torch.loading._typed import conversion_of

_MOST_SHOWN, _MOST_OF_A_KEY = 40, 1000


class IncompatibleKeys(NamedTuple):
    """What `load_into(strict=False)` did not find in the file, and what it found there and did not need."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"{type(self).__name__}(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"


@names_arguments
@torch_errors()
def load_into(
    target: Any,
    path: FileLike,
    *,
    key: str | int | Sequence[str | int] | None = None,
    prefix: str | None = None,
    strict: bool = True,
    assign: bool = False,
    device: MapLocation = None,
    dtype: torch.dtype | None = None,
    ranks: Any = None,
) -> IncompatibleKeys:
    """`module.load_state_dict(torch.load(path))`, without a second copy of the parameters in memory.

    Tensors are read from the file into the memory of the target's, on the CPU and on CUDA devices, and
    converted on the way where their types differ. Keys, shapes and kinds are checked first: where those
    are at fault, nothing has been touched. Modules that load in a way of their own (hooks, extra state,
    old versions), and other objects, get `load_state_dict` itself, before the rest is filled; what they
    raise comes with their path.

    Parameters
    ----------
    target
        What to fill:

        - a module: its parameters and buffers are filled by their names;
        - a tensor, or an array of NumPy's or Penstock's;
        - an object with `load_state_dict`, such as an optimizer, a scheduler or a GradScaler, which
          gets its state;
        - a dict, list or tuple of targets, at any depth: `{"model": model, "opt": opt, "epoch": 0}`.
          Numbers and strings in it, and lists and tuples of nothing else, become the file's; None takes
          whatever the file has. Names with dots in a flat file ("model.weight" in a `.safetensors`)
          fill nested targets too.
    path
        The file: what `load` takes.
    key
        Which part of the file to take: a key, several with dots between them, or a list of keys and
        positions (`key="model_state_dict"`). Nothing else is read.
    prefix
        Takes the keys that begin with it, without it: `prefix="module."` for a module that was saved
        within DistributedDataParallel, `key="state_dict", prefix="model."` for one within a
        LightningModule.
    strict
        Whether it is an error that the file lacks something, or has more than the target. Without it
        such parts are left as they are, and returned.
    assign
        The target takes the file's tensors instead of filling its own.
    device
        Where these go, as `map_location` of `load`; only with `assign`.
    dtype
        Which type the floating-point ones of these get; only with `assign`.
    ranks
        Read the file once for several processes, as `load` does: a process group, or "auto". What is
        read lies in host memory, once for a machine, until the targets of all its ranks are filled.

    Returns
    -------
    IncompatibleKeys
        `missing_keys` and `unexpected_keys`, by their paths ("optimizer.state.0.exp_avg").

    Raises
    ------
    RuntimeError
        For what is missing, unexpected, of another shape or of another kind, by its path, as
        `load_state_dict` reports it.
    penstock.Error
        For files that are damaged, cut or no tensor files.
    """
    with telling(ranks):
        if not assign and (device is not None or dtype is not None):
            raise ValueError("device and dtype are those of the tensors that the target has; they need assign=True")
        check_map_location(device)
        conversion = conversion_of(dtype, keeps_complex=True)
        place = device if assign else "cpu"
        together = together_of(ranks, alike=f"{conversion} {kind_of_place(place, ranks)}")
    with opened_by_all(path, key, prefix, together, verify=True) as archive:
        if assign or together is not None:
            loaded = load_archive(archive, place, conversion=conversion, together=together)
            content = Content(archive, loaded, is_loaded=True)
        else:
            content = Content(archive)
        plan = Plan(content, assign)
        _require_target(target)
        _require_state(target, plan.content)
        plan.make(target)
        _require_fit(target, plan, strict)
        keys = _called(target, plan, strict)
        fill(archive, plan.places)
        plan.settle()
    return IncompatibleKeys(plan.missing + keys.missing_keys, plan.unexpected + keys.unexpected_keys)


def _require_target(target: Any) -> None:
    if isinstance(target, (torch.nn.Module, torch.Tensor, penstock.Tensor, Mapping, list, tuple)):
        return
    if callable(getattr(type(target), "load_state_dict", None)) or type(target).__name__ == "ndarray":
        return
    raise penstock.DTypeMismatchError(
        f"found {kind_of(target)} to load into, expected a module, a tensor, an object with load_state_dict, or a "
        "dict, list or tuple of these"
    )


def _require_state(target: Any, content: Content) -> None:
    """TypeError where the content is no state for a module, as torch's load_state_dict has it."""
    if isinstance(target, torch.nn.Module) and not isinstance(content.root, Mapping):
        if isinstance(content.root, Made):
            load_archive(content.archive, "meta")  # says it of whole modules, which only running code could make
        message = (
            f"the file holds {kind_of(content.root)}, where {type(target).__name__} needs a state dict: a dict of "
            "tensors by name. Name the part of the file that is one with key=, or give a target that is like the file"
        )
        raise penstock.DTypeMismatchError(f"{content.archive.path}: {message}", message, content.archive.path)


def _require_fit(target: Any, plan: Plan, strict: bool) -> None:
    messages = []
    if strict and plan.missing:
        messages.append(f"Missing key(s) in state_dict: {_quoted(target, plan.missing)}. ")
    if strict and plan.unexpected:
        messages.append(f"Unexpected key(s) in state_dict: {_quoted(target, plan.unexpected)}. ")
    messages += plan.problems
    if messages:
        message = "Error(s) in loading state_dict for {}:\n\t{}".format(type(target).__name__, "\n\t".join(messages))
        advice = hint(target, plan.content.root, plan.missing)
        if strict and plan.unexpected and not (plan.missing or plan.problems or isinstance(target, torch.nn.Module)):
            advice = "\n\tstrict=False fills the target and passes over what else the file has."
        raise RuntimeError(message + advice)


def _quoted(target: Any, keys: list[str]) -> str:
    most = len(keys) if isinstance(target, torch.nn.Module) else _MOST_SHOWN
    shown = ", ".join(f'"{abbreviated(key, _MOST_OF_A_KEY)}"' for key in keys[:most])
    return shown if len(keys) <= most else f"{shown} and {len(keys) - most} more"


def _called(target: Any, plan: Plan, strict: bool) -> IncompatibleKeys:
    """Calls `load_state_dict` of the objects that load themselves."""
    keys = IncompatibleKeys([], [])
    for node in plan.calls:
        state = plan.content.at(node.steps)
        options: dict[str, Any] = {}
        if isinstance(node.target, torch.nn.Module):
            options = {"strict": strict, "assign": plan.assign}
        try:
            result = node.target.load_state_dict(state, **options)
        except Exception as error:
            other = _failed(target, node, error, plan)
            if other is None:
                raise
            raise other from error
        if isinstance(node.target, torch.nn.Module):
            start = f"{node.path}." if node.path else ""
            keys.missing_keys.extend(start + name for name in result.missing_keys)
            keys.unexpected_keys.extend(start + name for name in result.unexpected_keys)
    return keys


def _failed(target: Any, node: Any, error: Exception, plan: Plan) -> Exception | None:
    """The error with the path of the object that raised it; None where it already says everything."""
    if node.steps:
        return RuntimeError(f"loading {type(node.target).__name__} at {node.path}: {type(error).__name__}: {error}")
    if not isinstance(target, torch.nn.Module) or not isinstance(error, RuntimeError):
        return None
    content = plan.content.root
    text = hint(target, content, [key for key in target.state_dict() if key not in content])
    return RuntimeError(f"{error}{text}") if text else None
