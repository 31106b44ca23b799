"""Notebooks of examples/notebooks run, show something, and are pages of the site."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
RUNNER = ROOT / "docs/_ext/notebook_cells.py"


@pytest.fixture(scope="module")
def cells():
    """The builder's module, which needs no Sphinx."""
    spec = importlib.util.spec_from_file_location("notebook_cells", RUNNER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(path: Path, folder: Path) -> subprocess.CompletedProcess:
    search = os.pathsep.join([str(BUILD / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "TMPDIR": str(folder)}
    return subprocess.run([sys.executable, RUNNER, path], env=environment, capture_output=True, text=True, check=False)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_cell_runs_and_shows_something(cells, path, tmp_path):
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert len(shown) == sum(kind == "code" for kind, _ in cells.cells_of(path))
    assert all(each.get("printed") or each.get("html") or each.get("text") for each in shown)
    assert any("html" in each for each in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_is_a_notebook_without_outputs_and_a_page(path):
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert set(cell) >= {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    page = ROOT / "docs/notebooks" / f"{path.stem.replace('_', '-')}.md"
    text = page.read_text()
    assert text.startswith("".join(notebook["cells"][0]["source"]).splitlines()[0] + "\n")
    assert f"```{{notebook}} examples/notebooks/{path.name}\n" in text
    assert f"notebooks/{page.stem}\n" in (ROOT / "docs/index.md").read_text()


def test_a_cell_that_fails_is_named(tmp_path):
    cells = [{"cell_type": "markdown", "source": "x"}, {"cell_type": "code", "source": "1 / 0"}]
    (tmp_path / "x.ipynb").write_text(json.dumps({"nbformat": 4, "cells": cells}))
    done = run(tmp_path / "x.ipynb", tmp_path)
    assert done.returncode != 0
    assert "cell 1 failed" in done.stderr


def test_what_a_cell_shows(cells):
    names: dict = {}
    assert cells.shown_by("x = 3", names) == {}
    assert cells.shown_by("print('a')\nx + 1", names) == {"printed": "a\n", "text": "4"}
    assert cells.shown_by("print(x)", names) == {"printed": "3\n"}
    assert cells.shown_by("class Y:\n  _repr_html_ = lambda _: '<b>'\nY()", names) == {"html": "<b>"}
