"""What the command prints where others read it, and where nobody can."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "penstock")


def output(*args: object) -> str:
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, check=True).stdout


def test_cat_gives_json_what_the_file_has(tmp_path):
    texts = [r"C:\new", "\x1b[31m", "é"]
    np.save(tmp_path / "t.npy", np.array(texts))
    assert json.loads(output("cat", tmp_path / "t.npy", "--json"))["values"] == texts
    assert "\x1b" not in output("cat", tmp_path / "t.npy")
    np.save(tmp_path / "c.npy", np.array([0.1j, -0.0], np.complex64))
    assert "[0,0.1],[-0.0,0]" in "".join(output("cat", tmp_path / "c.npy", "--json").split())


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">/dev/full 2>&1", "2>/dev/full >/dev/full"])
@pytest.mark.parametrize("words", ["ls nope", "cat x.npy nope", "info nope"])
def test_errors_that_nobody_can_read_are_still_1(tmp_path, words, redirection):
    np.save(tmp_path / "x.npy", np.arange(3))
    done = subprocess.run(f"{PROGRAM} {words} {redirection}", shell=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
