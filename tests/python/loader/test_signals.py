"""What a signal's handler raises loses no batch, wherever it comes between the calls of penstock.DataLoader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from signals_pairs import InTurn, interrupted_everywhere

import penstock

WHOLE = [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17], [18, 19, 20, 21, 22, 23]]


@pytest.mark.parametrize("within", [f"{Path(penstock.__file__).parent}/", "test_signals.py"], ids=["ours", "theirs"])
@pytest.mark.parametrize("workers", [0, 1])
def test_no_batch_is_lost_wherever_a_handler_raises(workers, within):
    rows = penstock.rows(np.arange(24)).map(lambda row: row.numpy() + 0)
    found = interrupted_everywhere(lambda: InTurn(penstock.DataLoader(rows, 6, num_workers=workers)), within)
    assert [number for number, got in enumerate(found) if got != WHOLE] == []
