"""Every code block of the README and the guide, run as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = ("README.md", "docs/guide.md", "docs/coming-from-pytorch.md")


def blocks(language: str, pages: tuple[str, ...] = PAGES) -> list:
    found = []
    for page in (ROOT / name for name in pages):
        for number, match in enumerate(FENCE.finditer(page.read_text())):
            if match[1] == language:
                found.append(pytest.param(match[2], id=f"{page.stem}-{number}"))
    return found


@pytest.fixture
def data(tmp_path) -> Path:
    """The folder that the blocks speak of. Each block gets its own, because none may need what another wrote."""
    folder = tmp_path / "try"
    subprocess.run([BUILD / "bin" / "penstock", "sample", folder], check=True)
    return folder


def run(command: list[str], folder: Path) -> str:
    path = f"{BUILD / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", blocks("python", (*PAGES, "docs/devices.md")))
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
    printed = run([str(program)], data)
    assert printed.strip()
    said = re.search(r"// prints (.+)", code)
    if said:
        assert said[1] in printed
    if "model.entries()" in code:
        assert "encoder.weight float32(256, 64)" in printed


def test_resumed_order_is_the_same(data):
    """The guide prints True for its own claim."""
    code = next(param.values[0] for param in blocks("python") if "state_dict" in param.values[0])
    assert run([sys.executable, "-c", code], data).strip() == "True"
