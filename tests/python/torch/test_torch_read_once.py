"""`penstock.torch.load(ranks=)` and its like by several ranks in real processes: each byte is read once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch.distributed

import penstock
from penstock.torch.loading._ranks import Ranks

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="torch was built without gloo",
)

WORLDS = {
    "in_memory": ["private", "shared", "converted"],
    "by_messages": ["sent", "some", "first"],
    "faults": ["missing", "version", "plan", "cut memory", "cut messages", "unmappable", "after"],
    "arguments": ["arguments"],
    "shards": ["shards"],
    "into": ["filled", "mismatch"],
    "taken": ["taken memory", "stopped memory", "taken messages", "stopped messages", "refused"],
    "parts": ["parts memory", "parts messages", "parts refused"],
    "killed": ["killed"],
}
MORE = {"absent": ["timed out"], "killed_in_the_middle": ["killed"], "killed_while_sending": ["killed"]}


def test_a_group_without_a_backend_for_the_memory_is_told_so():
    """One of NCCL alone, which no machine of these tests has."""
    ranks = object.__new__(Ranks)
    ranks.group = SimpleNamespace(_device_types=[torch.device("cuda")])
    ranks.require_backend(torch.device("cuda", 1))
    with pytest.raises(penstock.UnsupportedError, match=r"no memory of 'cpu'.*cpu:gloo,cuda:nccl"):
        ranks.require_backend(torch.device("cpu"))


@pytest.mark.parametrize("worlds", [WORLDS, pytest.param(MORE, marks=pytest.mark.nightly)], ids=["usual", "more"])
def test_ranks_read_once_or_say_why_not(worlds, tmp_path):
    program = Path(__file__).with_name("once_ranks.py")
    done = subprocess.run([sys.executable, program, tmp_path, *worlds], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [word for words in worlds.values() for word in words]
