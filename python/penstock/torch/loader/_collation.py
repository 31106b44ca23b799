"""Who makes a batch of its samples: a rule in C++, or Python of the samples as they were read."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils.data as torch_data

import penstock
from penstock._core import _stack_in_order
from penstock._text import plural
from penstock.torch._private import default_collate_fn_map
from penstock.torch.collate import Rule, Stack
from penstock.torch.loader._settings import Settings


def native_rule(settings: Settings) -> penstock.Collate | None:
    """The rule by which C++ makes batches; None where it leaves their samples apart."""
    if not settings.batches or (settings.functions is not None and settings.functions.make is not None):
        return None
    collate = settings.collate_fn
    if isinstance(collate, Stack) or is_default(collate):
        # As `default_collate` stacks: channels-last samples so, but in worker processes, into memory in C order.
        return penstock.stack() if settings.num_workers else _stack_in_order()
    if isinstance(collate, Rule):
        return collate.native
    return collate if isinstance(collate, penstock.Collate) else None


def is_default(collate: Any) -> bool:
    """Whether this is torch's default_collate without additions: programs may teach it other types."""
    if collate is not torch_data.default_collate:
        return False
    return all(part.__module__ == torch_data.default_collate.__module__ for part in default_collate_fn_map.values())


def arrives_on_device(device: torch.device | None) -> bool:
    """Whether batches are copied to the device while the next ones are read. Otherwise torch moves
    them when they are taken."""
    return device is not None and device.type == "cuda" and torch.cuda.is_available() and penstock.device.is_available()


def explained(settings: Settings, in_processes: bool) -> str:
    """A sentence for people about who reads and who collates a dataset that is read natively."""
    functions = settings.functions
    workers = "the caller's thread reads"
    if settings.num_workers:
        workers = f"{plural(settings.num_workers, 'thread')} read{'s' if settings.num_workers == 1 else ''}"
    calls, s = "the caller's thread calls", "s"
    if in_processes:
        calls, s = "worker processes call", ""
    elif settings.num_workers and functions is not None:
        calls, s = "these threads call", ""
    if functions is not None and functions.make is not None:
        made = f"{calls} the dataset's functions and collate{s}"
    elif not settings.batches:
        made = "samples come one by one"
    elif native_rule(settings) is not None:
        made = "batches are collated natively"
    else:
        made = f"{calls} collate_fn with the samples"
    behind = "" if functions is None or functions.batch is None else f", and {calls} the function of batches"
    return f"native: {workers} the samples; {made}{behind}"
