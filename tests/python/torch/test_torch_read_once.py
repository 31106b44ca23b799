"""`penstock.torch.load(ranks=)` and its like by several ranks in real processes: each byte is read once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(),
    reason="torch was built without gloo",
)

WORLDS = {
    "in_memory": ["private", "shared"],
    "by_messages": ["sent", "first"],
    "faults": ["missing", "version", "plan", "cut memory", "cut messages", "after"],
    "into": ["filled", "mismatch"],
    "taken": ["taken memory", "stopped memory", "taken messages", "stopped messages", "refused"],
    "killed": ["killed"],
    "killed_in_the_middle": ["killed"],
    "killed_while_sending": ["killed"],
}


def test_ranks_read_once_or_say_why_not(tmp_path):
    program = Path(__file__).with_name("once_ranks.py")
    done = subprocess.run([sys.executable, program, tmp_path, *WORLDS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [word for words in WORLDS.values() for word in words]
