"""`dcp.save` and `dcp.load` by several ranks in real processes: 4 ranks save, and 2, 3 and 8 load."""

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


def test_ranks_save_and_other_numbers_of_ranks_load(tmp_path):
    program = Path(__file__).with_name("dcp_ranks.py")
    done = subprocess.run([sys.executable, program, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.split("\n")
    loads = ("resharded", "once", "boxes")
    expected = [f"4 {word}" for word in ("saved", "boxes", "refused", "kept")]
    more = {2: ["disagree"], 3: ["group"], 8: []}
    expected += [f"{size} {word}" for size, words in more.items() for word in (*loads, *words)]
    assert [line for line in told if line] == expected
