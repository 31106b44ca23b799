"""What type checkers make of a user's program: `script/lint` has mypy check it, strictly. Nothing runs it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch.utils.data as td
from typing_extensions import assert_type

import penstock
import penstock.torch as pt


class Squares(td.Dataset[int]):
    def __getitem__(self, index: int) -> int:
        return index * index


def loaders() -> None:
    """A variable needs no annotation, whatever the dataset is."""
    squares = pt.DataLoader(Squares(), batch_size=4)
    assert_type(squares, pt.DataLoader[int])
    numbers = pt.DataLoader([1, 2, 3])
    assert_type(numbers, pt.DataLoader[int])
    pairs = pt.DataLoader(pt.Rows("x.npy", "y.npy"), batch_size=32, shuffle=True, collate_fn=pt.pad_to(8))
    assert_type(pairs, pt.DataLoader[Any])
    files = pt.DataLoader(penstock.files("clips/*.pt"), on_error="skip", memory_budget=1 << 20)
    assert_type(files, pt.DataLoader[Any])
    masked = pt.DataLoader(pt.Files("clips/*.pt"), collate_fn=pt.pad(), on_error="mask")
    assert_type(masked, pt.DataLoader[Any])
    mapped = pt.DataLoader(pt.Files("clips/*.pt").map(lambda sample: sample))
    assert_type(mapped, pt.DataLoader[Any])
    dataset = pt.Dataset(penstock.subset(penstock.files("clips/*.pt"), [0, 1]))
    assert_type(dataset, pt.Dataset[Any])


def arrays() -> None:
    tensor = penstock.zeros(2, 3)
    assert_type(1 - tensor / 2 @ tensor, penstock.Tensor)
    assert_type(tensor[0, :2], penstock.Tensor)
    np.from_dlpack(tensor)
    np.asarray(tensor)


def streams() -> None:
    stream = penstock.stream(lambda: iter([1, 2, 3]))
    assert_type(penstock.mix([stream, stream], [1, 2]), penstock.SampleStream)
    assert_type(stream.take(5), penstock.SampleStream)
    rows = penstock.rows("x.npy")
    assert_type(penstock.mix([rows, rows], [1, 2]), penstock.Dataset)
    assert_type(rows.repeat(2).concat(rows), penstock.Dataset)
