"""Programs of frameworks that drive or take apart our loader, run in an environment beside .venv (script/bootstrap)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / "build/frameworks/bin/python"
PROGRAMS = Path(__file__).parent / "frameworks"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    for i in range(16):
        torch.save({"x": torch.full((4,), float(i)), "y": i}, folder / f"{i:02d}.pt")
    return folder


def installed(package):
    if not PYTHON.exists():
        return False
    found = subprocess.run(
        [PYTHON, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"],
        check=False,
    )
    return found.returncode == 0


@pytest.mark.parametrize(
    ("package", "program", "part"),
    [
        ("pytorch_lightning", "lightning", "fit"),
        ("pytorch_lightning", "lightning", "processes"),
        pytest.param("pytorch_lightning", "lightning", "resume", marks=pytest.mark.nightly),
        pytest.param("pytorch_lightning", "lightning", "ddp", marks=pytest.mark.nightly),
        ("accelerate", "accelerate", "one"),
        ("accelerate", "accelerate", "processes"),
        pytest.param("accelerate", "accelerate", "two", marks=pytest.mark.nightly),
        ("transformers", "transformers", "train"),
        ("transformers", "transformers", "processes"),
        ("transformers", "from_pretrained", "inside"),
        ("transformers", "from_pretrained", "given"),
        ("datasets", "datasets", "load"),
    ],
)
def test_a_program_of(package, program, part, folder, tmp_path):
    if not installed(package):
        pytest.skip(f"{package} is not installed in {PYTHON.parents[1]} (script/bootstrap --tests puts it there)")
    done = subprocess.run(
        [PYTHON, PROGRAMS / f"{program}_program.py", part, folder],
        env={**os.environ, **OFFLINE, "HF_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
