"""Looking into a file takes little memory, however large the file is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("large") / "a.npy"
    with path.open("wb") as file:
        shape = {"descr": "<f4", "fortran_order": False, "shape": (100_000_000,)}
        np.lib.format.write_array_header_1_0(file, shape)
        file.truncate(file.tell() + 400_000_000)
    return path


@pytest.mark.parametrize("command", ["stats", "hash", "diff", "report", "verify"])
def test_looking_takes_less_than_100_mb(command, large, tmp_path):
    more = {"diff": [large], "report": ["-o", tmp_path / "page.html"]}.get(command, [])
    words = [str(word) for word in (PROGRAM, command, large, *more)]
    done = subprocess.run([sys.executable, "-c", PEAK, *words], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100_000_000
