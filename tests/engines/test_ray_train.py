"""The loader inside Ray Train: ranks of Ray, and going on from Ray's checkpoints."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import penstock

ray = pytest.importorskip("ray")
pytest.importorskip("ray.train")

from ray.train import Checkpoint, RunConfig, ScalingConfig  # noqa: E402
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # noqa: E402

import penstock.ray  # noqa: E402

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/ray_train/train.py"


def test_outside_of_a_train_function(tmp_path):
    assert penstock.ranks().size == 1
    with pytest.raises(RuntimeError, match="train"):
        penstock.ray.loader(penstock.rows([1, 2]))
    loader = penstock.DataLoader(penstock.rows([1, 2]))
    for name in ("", "a/b"):
        with pytest.raises(ValueError, match="name="):
            penstock.ray.save_position(loader, tmp_path, name=name)


def train(config):
    context = ray.train.get_context()
    found = penstock.ranks()
    assert (found.rank, found.size) == (context.get_world_rank(), context.get_world_size())
    assert found.source == "ray.train", "not SLURM's, which is that of whoever started Ray"
    data = penstock.rows(list(range(24)))
    loader = penstock.ray.loader(data, 6 // found.size, shuffle=True, seed=5, num_workers=0, remainder="drop")
    for batch in loader:
        text = " ".join(map(str, batch.tolist()))
        with open(f"{config['folder']}/{config['run']}-{found.size}.{found.rank}", "a") as file:
            file.write(text + "\n")
        with tempfile.TemporaryDirectory() as folder:
            penstock.ray.save_position(loader, folder)
            ray.train.report({}, checkpoint=Checkpoint.from_directory(folder))
        if config["stop"]:
            return


def test_ranks_and_position_with_another_number_of_workers(cluster, tmp_path):
    of_slurm = {"env_vars": {"SLURM_PROCID": "0", "SLURM_NTASKS": "9"}}
    run_config = RunConfig(name="run", storage_path=str(tmp_path / "store"), worker_runtime_env=of_slurm)

    def fit(run, workers, stop):
        told = {"folder": str(tmp_path), "run": run, "stop": stop}
        scaling = ScalingConfig(num_workers=workers)
        DataParallelTrainer(train, train_loop_config=told, scaling_config=scaling, run_config=run_config).fit()

    fit("a", 2, True)
    fit("b", 1, False)
    rows = {
        path.name: [[*map(int, line.split())] for line in path.read_text().splitlines()]
        for path in tmp_path.glob("?-*")
    }
    begun = [value for pair in zip(*(rows[f"a-2.{rank}"][0] for rank in range(2)), strict=True) for value in pair]
    got = begun + [value for batch in rows["b-1.0"] for value in batch]
    assert got == penstock.RandomSampler(24).order(5, 0), "each sample once, in the order of a run without a stop"


def test_the_example_loses_a_worker_and_sees_each_sample_once(cluster, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLE, tmp_path, "--epochs", "1", "--lose-a-worker", "3"],
        env={**os.environ, "RAY_ADDRESS": cluster},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "epoch 0, step 5: 101 samples seen, each 1 time" in done.stdout
    assert "worker died" in done.stderr + done.stdout or "ActorDiedError" in done.stderr + done.stdout
