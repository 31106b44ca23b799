"""The command on files of tokens: llm.c's, and Megatron's, whose index stands for its tokens too."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import penstock

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
TOKENS = np.arange(12, dtype="<u2")


def run(*args: object, code: int = 0) -> str:
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture
def folder(tmp_path) -> Path:
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(TOKENS)
    (tmp_path / "llmc.bin").write_bytes(header.tobytes() + TOKENS.tobytes())
    numbers = np.array([5, 7], "<i4").tobytes() + np.array([0, 10, 0, 1, 2], "<i8").tobytes()
    (tmp_path / "corpus.idx").write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 2, 3) + numbers)
    (tmp_path / "corpus.bin").write_bytes(TOKENS.tobytes())
    return tmp_path


def test_what_is_in_them(folder):
    assert json.loads(run("info", folder / "llmc.bin", "--json"))["format"] == "llmc"
    listed = run("ls", folder / "corpus.idx")
    assert [line.split()[0] for line in listed.splitlines()[1:5]] == ["tokens", "lengths", "offsets", "documents"]
    assert run("cat", folder / "corpus.idx", "lengths").split() == ["5", "7"]


def test_what_is_damaged(folder):
    assert "3 files, 5 tensors" in run("verify", folder)
    index = folder / "corpus.idx"
    whole = index.read_bytes()
    index.write_bytes(whole[:34] + struct.pack("<i", 13) + whole[38:])
    assert "of another index" in run("verify", folder, code=1)
    index.write_bytes(whole)
    (folder / "corpus.bin").unlink()
    assert "corpus.bin" in run("verify", index, code=1)


def test_they_are_converted(folder, tmp_path):
    run("convert", folder / "llmc.bin", tmp_path / "x.npy")
    assert np.array_equal(np.load(tmp_path / "x.npy"), TOKENS)
    run("convert", folder / "corpus.idx", tmp_path / "x.safetensors")
    assert penstock.load(tmp_path / "x.safetensors")["tokens"].tolist() == TOKENS.tolist()
