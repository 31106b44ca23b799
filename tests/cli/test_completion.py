"""Completion of commands, words, tensors' names and files' names, by the shells that read the scripts."""

from __future__ import annotations

import os
import shutil
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
        (["hash", *FILE, "encoder.w"], ["encoder.weight"]),
        (["show", *FILE, "encoder.b"], ["encoder.bias"]),
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


@pytest.fixture(scope="module")
def scripts(tmp_path_factory) -> dict[str, Path]:
    paths = {shell: tmp_path_factory.mktemp("scripts") / f"_penstock.{shell}" for shell in ("zsh", "fish")}
    for shell, path in paths.items():
        path.write_text(run("completion", shell).stdout)
    return paths


def offered_by(shell: str, scripts: dict[str, Path], folder: Path, line: str) -> list[str]:
    """What the shell offers when tab is pressed behind `line`."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = str(scripts[shell])
    programs = {
        "zsh": ["zsh", "-f", str(Path(__file__).with_name("complete.zsh")), script, line],
        "fish": ["fish", "--no-config", "-c", f"source '{script}'; complete -C \"$LINE\""],
    }
    home = scripts[shell].parent
    environment = os.environ | {
        "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}",
        "LINE": line,
        "HOME": str(home),
        "XDG_DATA_HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "TERM": "dumb",
    }
    done = subprocess.run(
        programs[shell], cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return sorted({offer.split("\t")[0].replace("\\", "") for offer in done.stdout.splitlines()})


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("penstock ver", ["verify", "version"]),
        ("penstock completion ", ["bash", "fish", "zsh"]),
        ("penstock ls --sort s", ["shape", "size"]),
        ("penstock ls --nam", ["--names"]),
        ("penstock report x.npz --output oth", ["other.npy"]),
        ("penstock ls oth", ["other.npy"]),
        ("penstock stats plain.npz encoder.", sorted(NAMES[:2])),
        ("penstock stats my\\ file:1.npz encoder.w", ["encoder.weight"]),
        ("penstock ls plain.npz --only encoder.b", ["encoder.bias"]),
        ("penstock cat other.npy enc", []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_shells_offer(shell, scripts, folder, line, found):
    shutil.copyfile(folder / "my file:1.npz", folder / "plain.npz")
    assert offered_by(shell, scripts, folder, line) == found


def test_every_shell_asks_for_names():
    for shell in ("bash", "zsh", "fish"):
        assert "ls --names -- " in run("completion", shell).stdout
