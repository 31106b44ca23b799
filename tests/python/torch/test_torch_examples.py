"""examples/torch: each program of a PyTorch user, before and after; both give the same."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from load_pairs import same

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "torch"
EXAMPLES = sorted(FOLDER.glob("[a-z]*.py"))


def program(name):
    """The module, found by its name, as by the workers that get its functions."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    program("_show").make_files(folder)
    return folder


def plain(value):
    """Storages aside: a padded batch of ours lies in the block of its loader."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_before_and_after_give_the_same(path, folder):
    example = program(path.stem)
    same(plain(example.after(folder)), plain(example.before(folder)))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_program_prints_what_it_did(path, folder):
    done = subprocess.run([sys.executable, path, folder], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["torch", "penstock.torch"]
