"""penstock/torch.h: programs with LibTorch, built against an installed Penstock and the torch wheel."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build" / "release"
DIGITS = ROOT / "examples" / "data" / "digits"


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Builds a CMake project of this repository against Penstock as installed, and LibTorch."""
    if not (BUILD / "src" / "libpenstock.a").is_file():
        pytest.skip("no library in build/release; run script/build")
    if torch.version.cuda and not (shutil.which("nvcc") or Path("/usr/local/cuda").exists()):
        pytest.skip("this torch is built for CUDA, and its CMake package wants the CUDA toolkit")
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--prefix", prefix, "--component", "development")

    def build(source):
        folder = tmp_path_factory.mktemp(source.name)
        prefixes = f"{prefix};{torch.utils.cmake_prefix_path}"
        options = (f"-DCMAKE_PREFIX_PATH={prefixes}", "-DCMAKE_BUILD_TYPE=Release", "-Wno-dev")
        launcher = ("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",)
        run("cmake", "-S", source, "-B", folder, "-G", "Ninja", *options, *launcher)
        run("cmake", "--build", folder)
        return folder

    return build


def test_the_example_trains_from_pythons_checkpoint(build, tmp_path):
    program = build(ROOT / "examples" / "libtorch") / "train_libtorch"
    layer = torch.nn.Linear(64, 10)
    torch.nn.init.zeros_(layer.weight)
    layer.bias.data = torch.arange(10.0)
    torch.save({f"layer.{k}": v for k, v in layer.state_dict().items()}, tmp_path / "start.pt")
    lines = run(program, DIGITS / "images.npy", DIGITS / "labels.npy", tmp_path / "start.pt").split()
    # With these weights every digit is taken for a nine.
    labels = torch.from_numpy(np.load(DIGITS / "labels.npy"))
    assert float(lines[1]) == pytest.approx((labels == 9).double().mean().item(), abs=5e-4)
    assert float(lines[3]) > 0.95
    broken = subprocess.run(
        [program, DIGITS / "images.npy", DIGITS / "labels.npy", DIGITS / "labels.npy"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert broken.returncode == 1
    assert "found a tensor by itself, expected a state dict" in broken.stderr


def test_the_adapter(build):
    run(build(ROOT / "tests" / "libtorch") / "adapter_test")
