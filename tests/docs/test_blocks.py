"""Every code block of the README and the guide, run as it stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
DIGITS = ROOT / "examples" / "data" / "digits"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list:
    found = []
    for page in (ROOT / "README.md", ROOT / "docs" / "guide.md", ROOT / "docs" / "coming-from-pytorch.md"):
        for number, match in enumerate(FENCE.finditer(page.read_text())):
            if match[1] == language:
                found.append(pytest.param(match[2], id=f"{page.stem}-{number}"))
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The folder that the blocks speak of."""
    import penstock

    folder = tmp_path_factory.mktemp("blocks")
    for name in ("images.npy", "labels.npy"):
        shutil.copy(DIGITS / name, folder)
    images = penstock.load(folder / "images.npy")
    weight = images.reshape([1797, 64])[:256].to("float32")
    penstock.save({"encoder": {"weight": weight, "bias": weight[:, 0].contiguous()}}, folder / "model.pt")
    for name in ("digits", "clips"):
        (folder / name).mkdir()
    for i in range(40):
        penstock.save({"x": images[i].clone(), "y": i % 10}, folder / "digits" / f"{i:02}.pt")
        penstock.save(images[i][: i % 5 + 3].clone(), folder / "clips" / f"{i:02}.pt")
    return folder


def run(command: list[str], folder: Path) -> str:
    path = f"{BUILD / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", blocks("python"))
def test_python(code, data):
    run([sys.executable, "-c", code], data)


@pytest.mark.parametrize("code", blocks("console"))
def test_console(code, data):
    for line in code.splitlines():
        assert run(["sh", "-c", line.removeprefix("$ ")], data).strip()


@pytest.mark.parametrize("code", blocks("cpp"))
def test_cpp(code, data):
    source, program = data / "block.cpp", data / "block"
    source.write_text(code)
    libraries = [str(BUILD / "src" / "libpenstock.a"), "-lz", "-ldeflate", "-pthread"]
    compiler = os.environ.get("CXX", "c++")
    run([compiler, "-std=c++20", f"-I{ROOT / 'include'}", str(source), "-o", str(program), *libraries], data)
    assert "encoder.weight float32(256, 64)" in run([str(program)], data)


def test_resumed_order_is_the_same(data):
    """The guide prints True for its own claim."""
    code = next(param.values[0] for param in blocks("python") if "state_dict" in param.values[0])
    assert run([sys.executable, "-c", code], data).strip() == "True"
