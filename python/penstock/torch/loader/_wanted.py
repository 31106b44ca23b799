"""What the sampler wants next: drawn so that no signal loses it, and turned into indices of the dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

import penstock
from penstock._core import _next_into, _plain_indices
from penstock._text import abbreviated
from penstock.torch.datasets._dataset import counted
from penstock.torch.loader._drawn import Drawn
from penstock.torch.loader._signals import cut_generator, is_of_signal


class Wanted:
    """Draws from the iterator of a sampler. `drawn` counts the batches that it gave, `ended` says that it has no more,
    and `sums` has their checksum. What it gave stays in `pulled` until it is asked for (`_signals.py`)."""

    def __init__(self, items: Iterator[Any], drawn: int, sums: Drawn) -> None:
        self.items, self.drawn, self.sums = items, drawn, sums
        self.pulled: list[Any] = []
        self.ended = False
        self.cut = False  # the sampler was, by a signal

    def pull(self) -> bool:
        """Has what the sampler gives next in `pulled`; False at its end."""
        if self.ended:  # which it is asked for once
            return False
        try:
            came = _next_into(self.items, self.pulled)
        except BaseException as error:
            self.note_cut(error)
            raise
        if not came and self.cut:
            raise penstock.InvalidArgumentError(
                "the sampler is a generator that a signal has interrupted, so that the rest of its epoch is lost; "
                "begin another epoch, or give a sampler whose iterator is an object of a class"
            )
        self.ended = not came
        return came

    def note_cut(self, error: BaseException) -> None:
        """`error` came through the sampler."""
        self.cut = is_of_signal(error) and cut_generator(error)


def indices_of(drawn: Any, alone: bool, samples: int) -> Sequence[int]:
    """The indices in what a sampler gave, which may be `alone`; negative ones are counted from the end."""
    if type(drawn) is range and drawn.step > 0 and drawn.start >= 0:
        return drawn
    indices = _plain_indices(drawn)
    if indices is not None:
        return indices
    if alone:
        drawn = [drawn]
    elif isinstance(drawn, torch.Tensor) and drawn.dim() == 1 and not drawn.is_floating_point():
        drawn = drawn.tolist()
    try:
        return counted(drawn, samples)
    except TypeError as error:
        raise TypeError(
            f"the sampler gave {abbreviated(repr(drawn))}, expected integers, by which Penstock knows samples "
            f"({error}); torch's own loader (pt.DataLoader of a Python dataset with workers='threads') hands on "
            "whatever it gives"
        ) from error
