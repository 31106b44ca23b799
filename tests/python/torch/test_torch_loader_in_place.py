"""`torch.utils.data.DataLoader = pt.DataLoader`, as people try things."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import torch, torch.utils.data
import penstock.torch as pt
theirs = torch.utils.data.DataLoader
torch.utils.data.DataLoader = torch.utils.data.dataloader.DataLoader = pt.DataLoader

class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(10))

def same(value):
    return value

workers = int(sys.argv[1])
torch.multiprocessing.set_start_method("fork")  # what `-c` defines cannot be pickled
rows = pt.Rows(np.arange(10))
mapped = rows.map(torch.neg).map(torch.neg, batched=True, processes=workers > 0)
for dataset in (rows, rows.map(same), mapped, list(range(10)), Stream()):
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=min(workers, 1))
    assert isinstance(loader, theirs) and isinstance(loader, torch.utils.data.DataLoader)
    for _ in range(2):
        assert torch.cat(list(loader)).tolist() == list(range(10)), dataset
    batches = iter(loader)
    next(batches)
    again = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=min(workers, 1))
    again.load_state_dict(loader.state_dict())
    assert torch.cat(list(again)).tolist() == list(range(4, 10)), dataset
    try:
        torch.utils.data.DataLoader(dataset, batch_size=0)
    except ValueError:
        pass
assert torch.utils.data.dataloader._SingleProcessDataLoaderIter.__module__.startswith("torch")
print("done")
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_in_the_place_of_torchs_loader(workers):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(workers)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("done", "")
