"""Completion of tensors' names and of files' names, by the shell that reads the script."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_cli import PROGRAM, run

COMPLETE = """
source <(penstock completion bash)
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_penstock
printf '%s\\n' "${COMPREPLY[@]}"
"""
NAMES = ["encoder.weight", "encoder.bias", "a b:c"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("complete")
    np.savez(path / "my file:1.npz", **{name: np.zeros(1) for name in NAMES})
    (path / "other.npy").write_bytes(b"no array")
    return path


def complete(folder: Path, *words: str) -> list[str]:
    path = f"{Path(PROGRAM).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", "penstock", *words],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [line for line in done.stdout.split("\n") if line]


# As bash cuts the words: a colon is one of its own, unless it stands behind a backslash.
FILE = ["my\\ file", ":", "1.npz"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["cat", *FILE, "enc"], NAMES[:2]),
        (["cat", "my\\ file\\:1.npz", "encoder.b"], ["encoder.bias"]),
        (["cat", '"my file:1.npz"', "encoder.b"], ["encoder.bias"]),
        (["cat", *FILE, ""], NAMES),
        (["cat", *FILE, "a\\ b", ":"], ["c"]),
        (["stats", *FILE, "encoder.w"], ["encoder.weight"]),
        (["ls", *FILE, "--only", "encoder.w"], ["encoder.weight"]),
        (["convert", *FILE, "x.pt", "--only", "encoder.w"], ["encoder.weight"]),
        (["convert", *FILE, "x.pt", "--key", "=", "encoder.w"], ["encoder.weight"]),
        (["ls", *FILE, "--sort", "s"], ["size", "shape"]),
    ],
    ids=lambda value: " ".join(value) if value and value[0] in ("cat", "stats", "ls", "convert") else "",
)
def test_names_of_tensors_are_offered(folder, words, found):
    assert complete(folder, *words) == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["ls", "my"], ["my file:1.npz"]),
        (["ls", "my\\ f"], ["my file:1.npz"]),
        (["ls", '"my f'], ["my file:1.npz"]),
        (["ls", "my\\ file", ":"], ["1.npz"]),
        (["ls", "my\\ file", ":", "1"], ["1.npz"]),
        (["ls", "my\\ file\\:1"], ["my file:1.npz"]),
        (["convert", *FILE, "oth"], ["other.npy"]),
        # A file without tensors offers no names and says nothing.
        (["cat", "other.npy", "ot"], []),
        (["cat", "missing.npy", "ot"], []),
    ],
    ids=lambda value: " ".join(value) if value and value[0] in ("cat", "ls", "convert") else "",
)
def test_names_of_files_are_whole(folder, words, found):
    offered = complete(folder, *words)
    assert offered == found or (found == [] and offered == ["other.npy"])


def test_every_shell_asks_for_names():
    for shell in ("bash", "zsh", "fish"):
        assert "ls --names -- " in run("completion", shell).stdout
