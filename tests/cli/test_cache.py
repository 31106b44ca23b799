"""`penstock cache` where there is nothing to show. What it says of one in use: tests/remote/test_cache.py."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from test_cli import PROGRAM, run, run_json


def test_without_a_cache_it_says_what_to_set():
    environment = {name: value for name, value in os.environ.items() if name != "PENSTOCK_CACHE"}
    done = subprocess.run([PROGRAM, "cache"], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert "PENSTOCK_CACHE" in done.stderr
    assert "--folder" in done.stderr


def test_an_empty_cache(tmp_path):
    folder = tmp_path / "none"
    assert run_json("cache", "--folder", folder) == {
        "path": str(folder),
        "objects": 0,
        "blocks": 0,
        "bytes": 0,
        "limit": 50_000_000_000,
        "cleared": False,
    }
    assert run("cache", "--folder", folder, "--clear").stdout.startswith(f"{folder}: cleared of 0 objects")
    assert not folder.exists()


def test_files_of_others_stay(tmp_path):
    other = Path(tmp_path / "penstock-blocks-1" / "aa")
    other.mkdir(parents=True)
    (other / "mine.object").write_text("x")
    run("cache", "--folder", tmp_path, "--clear")
    assert (other / "mine.object").exists()
