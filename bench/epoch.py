"""Prints the MB that an epoch over a folder of .pt adds to the peak of a process with torch in it.

    bench/epoch.py (penstock|torch) FOLDER

torch's loader reads in the process itself, since its workers' memory would be that of other processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from small import TorchFiles
from torch.utils.data import DataLoader

import penstock.torch as pt


def held(name: str) -> int:
    """KB of VmRSS or VmHWM."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(row for row in status if row.startswith(name)).split()[1])


def main(whose: str, folder: Path) -> None:
    if whose == "penstock":
        loader = pt.DataLoader(pt.Files(folder), batch_size=32, shuffle=True, num_workers=2)
    else:
        files = TorchFiles(sorted(folder.iterdir()), lambda path: torch.load(path, weights_only=True))
        loader = DataLoader(files, batch_size=32, shuffle=True)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = held("VmRSS")
    for _ in loader:
        pass
    print((held("VmHWM") - before) / 1024)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
