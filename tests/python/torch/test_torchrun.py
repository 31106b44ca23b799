"""Ranks in real processes: torchrun with gloo, one process killed, and another number of them that go on."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed

import penstock.torch as pt

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without torch.distributed"
)
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "torchrun_elastic" / "train.py"


def torchrun(processes, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.Popen(
        [*command, EXAMPLE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def children(pid):
    """The processes that a process has started."""
    with contextlib.suppress(FileNotFoundError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def test_a_process_is_killed_and_half_as_many_go_on(tmp_path):
    with torchrun(4, tmp_path, "--epochs", "1000000") as run:
        for line in run.stdout:
            found = re.match(r"epoch 0, (\d+) samples", line)
            if found and int(found[1]) >= 5 * 24:
                os.kill(children(run.pid)[1], signal.SIGKILL)
                break
        run.stdout.read()
    assert run.returncode != 0
    state = pt.load(tmp_path / "checkpoint.pt")
    assert state["loader"]["num_replicas"] == 4
    assert state["seen"].sum() >= 4 * 24
    with torchrun(2, tmp_path, "--epochs", str(state["epoch"] + 2)) as run:
        told = run.stdout.read()
    assert run.returncode == 0, told
    assert f"goes on in epoch {state['epoch']}, {int(state['seen'].sum())} samples in" in told
    assert "source='torch.distributed'" in told
    assert told.count("each of 997 samples once") == 2


RANK = """
    import sys
    import torch.distributed as dist
    import penstock, penstock._batches.ranks
    import penstock.torch as pt

    rank = int(sys.argv[1])
    dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
    found = penstock.ranks()
    assert (found.rank, found.size, found.source) == (rank, 2, "torch.distributed"), found
    ten, nine = penstock.rows(list(range(10))), penstock.rows(list(range(9)))
    files = [penstock.files([f"{sys.argv[2]}.{name}"]) for name in ("a.npy", "b.npy")]

    def refused(make, *words):
        try:
            make()
        except ValueError as error:
            assert all(word in str(error) for word in words), error
        else:
            raise AssertionError(words)

    for gather in (None, penstock._batches.ranks._through_store):
        for kind in (penstock.DataLoader, pt.DataLoader):
            def loader(data, **options):
                return kind(data, batch_size=2, ranks="auto", gather=gather, **options)

            assert len(list(loader(ten))) == 3
            refused(lambda: loader([ten, nine][rank]), "number of samples: rank 0 has 10, and rank 1 has 9")
            refused(lambda: loader(ten, remainder=["pad", "drop"][rank]), "remainder", "'pad'", "'drop'")
            refused(lambda: loader(ten, shuffle=rank == 0), "the order")
            refused(lambda: loader(files[rank]), "what sample 0 is", "a.npy", "b.npy")
        told = dict(ranks="auto", gather=gather)
        refused(lambda: penstock.DataLoader(ten, seed=rank, **told), "the seed: rank 0 has 0, and rank 1 has 1")
        refused(
            lambda: penstock.DataLoader(ten, ranks=(0, 2), gather=gather or penstock._batches.ranks._all_gathered),
            "call themselves ranks [0, 0]",
        )
    penstock.DataLoader([ten, nine][rank], ranks="auto", gather=False)
    print("found", rank)
    dist.destroy_process_group()
"""


def test_ranks_that_were_told_otherwise_are_found(tmp_path):
    for name in ("a", "b"):
        np.save(tmp_path / f"store.{name}.npy", [1.0])
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(RANK), str(rank), str(tmp_path / "store")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for rank, run in enumerate(runs):
        out, error = run.communicate(timeout=120)
        assert out == f"found {rank}\n", error
