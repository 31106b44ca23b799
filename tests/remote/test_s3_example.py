"""examples/s3_training, with a bucket of SeaweedFS."""

import os
import re
import subprocess
import sys

import numpy as np
from servers import ROOT

import penstock


def test_it_learns(store, tmp_path):
    for number in range(160):
        label = number % 10
        x = np.random.default_rng(number).standard_normal((4, 5), dtype="f4")
        x[label % 4, label % 5] += 5
        penstock.save({"x": x, "y": np.int64(label)}, tmp_path / "sample.pt", sync=False)
        store.put(f"learn/{number:03}.pt", (tmp_path / "sample.pt").read_bytes())
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "s3_training" / "train.py", "s3://bucket/learn/*.pt", "--epochs", "4"],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"160 samples, loss ([\d.]+)", done.stdout)]
    assert len(losses) == 4
    assert losses[-1] < losses[0] / 2
