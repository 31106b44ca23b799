"""DLIO's UNet3D in a tiny configuration, with its own readers and with Penstock's."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

for needed in ("dlio_benchmark", "mpi4py", "hydra"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

PROGRAM = Path(__file__).with_name("dlio_program.py")
READER = ["++workload.reader.reader_classname=penstock.dlio.Reader"]
LOADER = [
    "++workload.reader.data_loader_classname=penstock.dlio.DataLoader",
    "++workload.reader.data_loader_sampler=index",
]


def run(folder, *options):
    command = [
        sys.executable, PROGRAM, "workload=unet3d_h100", f"++workload.dataset.data_folder={folder}/data",
        "++workload.dataset.num_files_train=8", "++workload.dataset.record_length=4096",
        "++workload.dataset.record_length_stdev=0", "++workload.dataset.record_length_resize=1024",
        "++workload.reader.batch_size=2", "++workload.reader.read_threads=1", "++workload.train.epochs=2",
        "++workload.train.computation_time=0", "++workload.workflow.checkpoint=False", "hydra.run.dir=out", *options,
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data/train").mkdir(parents=True)
    (tmp_path / "data/valid").mkdir()
    for i in range(8):  # names and keys are those that DLIO's generator gives
        np.savez(tmp_path / f"data/train/img_{i}_of_8.npz", x=np.full((60 + i, 64, 1), i, np.uint8), y=[0])
    return tmp_path


@pytest.mark.parametrize("options", [READER, LOADER], ids=["reader", "loader"])
def test_unet3d(folder, options):
    done = run(folder, *options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = json.loads((folder / "out/summary.json").read_text())
    assert told["epochs"] == 2
    assert len(told["metric"]["train_throughput_samples_per_second"]) == 2
    log = (folder / "out/dlio.log").read_text() + done.stderr + done.stdout
    assert re.search(r"Discovered custom data (reader Reader|loader DataLoader)", log)


@pytest.mark.parametrize("options", [READER, LOADER], ids=["reader", "loader"])
@pytest.mark.parametrize("form", ["npz", "npy"])
def test_files_with_several_samples(folder, options, form):
    for i in range(8):
        (folder / f"data/train/img_{i}_of_8.npz").unlink()
        array = np.full((60, 64, 3), i, np.uint8)
        path = folder / f"data/train/img_{i}_of_8.{form}"
        np.save(path, array) if form == "npy" else np.savez(path, x=array, y=[0] * 3)
    more = ["++workload.dataset.num_samples_per_file=3", f"++workload.dataset.format={form}"]
    done = run(folder, *options, *more)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "12 steps completed" in done.stderr + done.stdout + (folder / "out/dlio.log").read_text()


def test_the_page_runs_as_it_stands(tmp_path):
    """Without TensorFlow: the how-to's commands, behind its pip lines."""
    page = (Path(__file__).parents[2] / "docs/howto/dlio.md").read_text()
    commands = re.findall(r"^```sh\n(python .*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(commands) == 1
    # By its folder: an environment is found beside the name that Python is started by, which a link elsewhere is not.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", commands[0]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(list((tmp_path / "data").rglob("*.npz"))) == 32


def test_a_damaged_file_is_named(folder):
    path = folder / "data/train/img_3_of_8.npz"
    path.write_bytes(path.read_bytes()[:-100])
    done = run(folder, *LOADER)
    assert done.returncode != 0
    assert "img_3_of_8.npz" in done.stderr + done.stdout
