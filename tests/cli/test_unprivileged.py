"""The command as an ordinary user, and with more rights than its user has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def folder():
    """One that every user may reach, with the command in it."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        shutil.copy(BUILD / "bin" / "penstock", name)
        yield Path(name)


def run(folder: Path, *args: object, **options) -> subprocess.CompletedProcess:
    command = [folder / "penstock", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, user=NOBODY, group=NOBODY, **options)


@pytest.fixture
def tree(folder) -> Path:
    data = folder / "data"
    for name in ("a", "lost+found", "b/deep", "b/closed"):
        (data / name).mkdir(parents=True)
    for name in ("x", "a/1", "b/2", "b/deep/3", "lost+found/4"):
        np.save(data / f"{name}.npy", np.arange(4))
    for name in ("lost+found", "b/closed"):
        (data / name).chmod(0o700)
    return data


def test_verify_reads_the_rest_and_names_folders_that_it_cannot_list(folder, tree):
    done = run(folder, "verify", tree, "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 1
    assert result["files"] == 4
    assert [(bad["path"], bad["code"]) for bad in result["bad"]] == [
        (f"{tree}/b/closed", "permission"),
        (f"{tree}/lost+found", "permission"),
    ]
    told = run(folder, "verify", tree).stdout
    assert f"bad: {tree}/lost+found: cannot list the folder" in told


def test_verify_leaves_folders_out(folder, tree):
    done = run(folder, "verify", tree, "--exclude", "lost+found", "--exclude", "b/clos*", "--json")
    assert (done.returncode, json.loads(done.stdout)["files"]) == (0, 4)
    done = run(folder, "verify", tree, "--exclude", "lost+found", "--exclude", "b", "--json")
    assert json.loads(done.stdout)["files"] == 2


def test_verify_of_a_folder_that_cannot_be_listed(folder, tree):
    done = run(folder, "verify", tree / "lost+found", "--json")
    assert done.returncode == 1
    assert [bad["path"] for bad in json.loads(done.stdout)["bad"]] == [f"{tree}/lost+found"]


def test_diff_says_in_json_which_folders_it_cannot_list(folder, tree):
    done = run(folder, "diff", tree, tree, "--json")
    assert done.returncode == 2
    told = json.loads(done.stdout)
    assert {each["path"] for each in told["files"] if "path" in each} == {f"{tree}/b/closed", f"{tree}/lost+found"}
    assert sum(each.get("equal", False) for each in told["files"]) == 4


@pytest.mark.parametrize("command", ["pack", "bench"])
def test_samples_are_never_left_out_without_being_asked(folder, tree, command):
    (folder / "out").mkdir()
    os.chown(folder / "out", NOBODY, NOBODY)
    target = [folder / "out" / "shards"] if command == "pack" else ["--epochs", "1"]
    done = run(folder, command, f"{tree}/**/*.npy", *target)
    assert done.returncode == 1
    assert "or leave the folder out with exclude" in done.stderr
    assert f"{tree}/" in done.stderr
    done = run(folder, command, f"{tree}/**/*.npy", *target, "--exclude", "lost+found", "--exclude", "closed")
    assert done.returncode == 0, done.stderr


def test_a_setuid_program_does_not_load_what_its_user_names(folder):
    chosen = {"PENSTOCK_LIBCUDA": str(folder / "mine.so"), "PENSTOCK_RING": "nonsense", "TERM": "dumb"}
    plain = run(folder, "doctor", "--json", env=chosen).stdout
    assert "mine.so" in plain
    (folder / "penstock").chmod(0o4755)
    raised = run(folder, "doctor", "--json", env=chosen)
    if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text() or os.statvfs(folder).f_flag & os.ST_NOSUID:
        pytest.skip("programs get no other rights here")
    assert "mine.so" not in raised.stdout + raised.stderr
