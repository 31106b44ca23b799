"""examples/webdataset_shards: a run that was stopped in mid-epoch ends with the weights of one that was not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "webdataset_shards" / "train.py"


def run(folder, *words):
    command = [sys.executable, EXAMPLE, *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    run(folder, "--write", "shards")
    assert len(list((folder / "shards").glob("train-00[0-3].tar"))) == 4
    return folder


def test_it_learns_and_goes_on_exactly(folder):
    shards = "shards/train-{000..003}.tar"
    whole = run(folder, shards, "whole.pt")
    losses = [float(line.split()[-1]) for line in whole.splitlines()]
    assert len(losses) == 3
    assert losses[-1] < losses[0] / 3

    assert "stopped in epoch 1, at batch 24" in run(folder, shards, "stopped.pt", "--steps", 57 + 24)
    again = run(folder, shards, "stopped.pt")
    assert again.startswith("goes on in epoch 1\n")
    expected, found = (torch.load(folder / f"{name}.trained.pt") for name in ("whole", "stopped"))
    assert list(expected) == list(found)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
