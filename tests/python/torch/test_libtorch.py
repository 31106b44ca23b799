"""penstock/torch.h: programs with LibTorch, built against an installed Penstock and the torch wheel."""

from __future__ import annotations

import os
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


def has_cuda_toolkit():
    """Whether there is all that torch's package links: the compiler and some libraries may come alone."""
    folders = ("/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu")
    return any((Path(folder) / "libnvrtc.so").exists() for folder in folders)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Builds a CMake project of this repository against Penstock as installed, and LibTorch."""
    if not (BUILD / "src" / "libpenstock.a").is_file():
        pytest.skip("no library in build/release; run script/build")
    if torch.version.cuda and not has_cuda_toolkit():
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


def test_the_headers_compile_with_torch():
    """What every change sees of the programs below: all that they use compiles, without code for it."""
    wheel = Path(torch.__file__).parent / "include"
    includes = ("-I", ROOT / "include", "-isystem", wheel, "-isystem", wheel / "torch" / "csrc" / "api" / "include")
    compiler = os.environ.get("CXX", "g++")
    run(compiler, "-std=c++20", "-fsyntax-only", *includes, ROOT / "tests" / "libtorch" / "optimizer_program.cpp")


@pytest.mark.nightly
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


@pytest.fixture(scope="module")
def tests(build):
    return build(ROOT / "tests" / "libtorch")


@pytest.mark.nightly
def test_the_adapter(tests):
    run(tests / "adapter_test")


@pytest.mark.nightly
def test_states_of_optimizers(tests):
    run(tests / "optimizer_test")


OPTIMIZERS = {
    "Adam": {"lr": 0.05, "betas": (0.8, 0.95), "amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"lr": 0.05, "weight_decay": 0.2},
    "SGD": {"lr": 0.05, "momentum": 0.9, "nesterov": True},
    "RMSprop": {"lr": 0.05, "momentum": 0.5, "centered": True, "alpha": 0.9},
    "Adagrad": {"lr": 0.05, "lr_decay": 0.1},
    "LBFGS": {"lr": 0.5, "max_iter": 2, "history_size": 3, "line_search_fn": "strong_wolfe"},
}


def optimize(optimizer, parameters, steps):
    def loss():
        optimizer.zero_grad()
        out = sum((parameter + 1).pow(4).sum() for parameter in parameters)
        out.backward()
        return out

    for _ in range(steps):
        if isinstance(optimizer, torch.optim.LBFGS):
            optimizer.step(loss)
            continue
        for parameter in parameters:
            parameter.grad = parameter.detach() + 1
        optimizer.step()


@pytest.mark.nightly
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_go_on_where_the_other_language_stopped(name, tests, tmp_path):
    # The steps of LBFGS depend on all before them, and so would the last digits of float32.
    dtype = torch.float64 if name == "LBFGS" else torch.float32
    start = [torch.arange(6, dtype=dtype).reshape(2, 3), torch.linspace(-1, 1, 5, dtype=dtype)]
    parameters = [torch.nn.Parameter(one.clone()) for one in start]
    optimizer = getattr(torch.optim, name)(parameters, **OPTIMIZERS[name])
    optimize(optimizer, parameters, 3)
    torch.save(
        {"parameters": [p.data for p in parameters], "optimizer": optimizer.state_dict()}, tmp_path / "python.pt"
    )
    run(tests / "optimizer_program", name, tmp_path / "python.pt", tmp_path / "cpp.pt", 4)
    found = torch.load(tmp_path / "cpp.pt")
    optimize(optimizer, parameters, 4)
    torch.testing.assert_close(found["parameters"], [p.data for p in parameters])
    ours, theirs = found["optimizer"], optimizer.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert ours["state"].keys() == theirs["state"].keys()
    for number, state in theirs["state"].items():
        torch.testing.assert_close(ours["state"][number], state)
    # And back: Python goes on from what C++ wrote.
    again = [torch.nn.Parameter(one) for one in found["parameters"]]
    resumed = getattr(torch.optim, name)(again)
    resumed.load_state_dict(ours)
    optimize(resumed, again, 2)
    optimize(optimizer, parameters, 2)
    torch.testing.assert_close([p.data for p in again], [p.data for p in parameters])


@pytest.mark.nightly
def test_a_checkpoint_of_another_optimizer_is_refused(tests, tmp_path):
    parameters = [torch.nn.Parameter(torch.ones(3))]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    optimize(optimizer, parameters, 1)
    torch.save({"parameters": [p.data for p in parameters], "optimizer": optimizer.state_dict()}, tmp_path / "sgd.pt")
    done = subprocess.run(
        [tests / "optimizer_program", "Adam", tmp_path / "sgd.pt", tmp_path / "out.pt", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert 'lacks "betas", which Adam has' in done.stderr
    assert "sgd.pt" in done.stderr
