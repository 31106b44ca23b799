"""examples/gpt_tokens learns, and goes on exactly where it was stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "gpt_tokens" / "train.py"


def lines_of(folder, steps):
    # Small products: several threads would wait for one another where other tests run beside this one.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, EXAMPLE, folder, "--steps", str(steps)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_it_learns_and_goes_on_where_it_stood(tmp_path):
    # An epoch has 76 batches, so that the second run goes on in the second epoch.
    whole = lines_of(tmp_path / "whole", 90)
    first, last = (float(whole[i].split()[-1]) for i in (0, -2))
    assert last < first - 1
    assert float(whole[-1].split()[-1]) < first - 1
    parts = lines_of(tmp_path / "parts", 80) + lines_of(tmp_path / "parts", 90)
    assert parts[81] == "goes on behind step 80"
    assert parts[:80] + parts[82:] == whole
