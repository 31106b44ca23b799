"""What a signal's handler raises loses no batch, wherever it comes between the calls of penstock.torch.DataLoader."""

from __future__ import annotations

import signal

import pytest
import torch
from signals_pairs import InTurn, interrupted_everywhere

import penstock.torch as pt
from penstock.torch.loader import _iteration

LOADER = "penstock/torch/loader/"
ROWS = torch.arange(24)
WHOLE = [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17], [18, 19, 20, 21, 22, 23]]


class Order:
    """A sampler of the program's own."""

    def __iter__(self):
        return iter(range(len(ROWS)))

    def __len__(self):
        return len(ROWS)


KINDS = {
    "read": lambda workers: pt.DataLoader(pt.Rows(ROWS), 6, num_workers=workers),
    "collate_fn": lambda workers: pt.DataLoader(pt.Rows(ROWS), 6, num_workers=workers, collate_fn=torch.stack),
    "map": lambda workers: pt.DataLoader(pt.Rows(ROWS).map(lambda row: row + 0), 6, num_workers=workers),
    "pinned": lambda workers: pt.DataLoader(pt.Rows(ROWS), 6, num_workers=workers, pin_memory=True),
    "sampler": lambda workers: pt.DataLoader(pt.Rows(ROWS), 6, num_workers=workers, sampler=Order()),
    "skip": lambda workers: pt.DataLoader(
        pt.Rows(ROWS).map(lambda row: row + 0), 6, num_workers=workers, on_error="skip"
    ),
}


def pins_nothing(monkeypatch):
    """Pinned memory that is none, so that pinning is calls of Python."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(_iteration, "pin_memory", lambda value: value)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_no_batch_is_lost_wherever_a_handler_raises(monkeypatch, kind, workers):
    if kind == "pinned":
        pins_nothing(monkeypatch)
    found = interrupted_everywhere(lambda: InTurn(KINDS[kind](workers)), LOADER, step=1 if workers == 0 else 7)
    assert len(found) > 10
    assert [number for number, got in enumerate(found) if got != WHOLE] == []


@pytest.mark.parametrize("options", [{}, {"on_error": "skip"}])
def test_an_exception_of_a_handler_is_no_error_of_the_function_that_it_comes_through(options):
    """A handler may raise any Exception; the batch is made again, and no sample set aside."""

    class StopError(Exception):
        pass

    def stop(number, frame):
        raise StopError

    calls = []

    def function(row):
        calls.append(int(row))
        if len(calls) == 9:
            signal.raise_signal(signal.SIGALRM)
        return row

    loader = pt.DataLoader(pt.Rows(ROWS).map(function), 6, **options)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        batches, got = iter(loader), []
        got.append(next(batches).tolist())
        with pytest.raises(StopError):
            next(batches)
        got += [batch.tolist() for batch in batches]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert got == WHOLE
    assert calls == [*range(9), *range(6, 24)]


def test_an_error_of_a_function_belongs_to_its_batch():
    def function(row):
        if row == 7:
            raise ValueError("no sample")
        return row

    for workers in (0, 1):
        batches = iter(pt.DataLoader(pt.Rows(ROWS).map(function), 6, num_workers=workers))
        assert next(batches).tolist() == WHOLE[0]
        with pytest.raises(ValueError, match="no sample"):
            next(batches)
        assert [batch.tolist() for batch in batches] == WHOLE[2:]
