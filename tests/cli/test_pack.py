"""penstock pack: what it says, what it refuses, and that nothing is left where it does."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

PROGRAM = Path(__file__).resolve().parents[2] / "build/release/bin/penstock"


def pack(*args: object, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([PROGRAM, "pack", *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def clips(tmp_path):
    folder = tmp_path / "clips"
    folder.mkdir()
    for i in range(20):
        torch.save({"x": torch.full((1 + i % 3, 1000), float(i)), "label": i}, folder / f"{i:02d}.pt")
    return folder


def test_verify_says_what_is_missing_and_what_is_of_another_packing(tmp_path):
    def verify(*paths, code):
        done = subprocess.run([PROGRAM, "verify", *paths], capture_output=True, text=True)
        assert done.returncode == code, done.stdout
        return done.stdout

    for name, first in ("a", 0.0), ("b", 1.0):
        data = np.arange(3 * 250_000, dtype=np.float32).reshape(3, -1) + first
        np.save(tmp_path / f"{name}.npy", data)
        files = tmp_path / f"files-{name}"
        files.mkdir()
        for i, row in enumerate(data):
            np.save(files / f"{i}.npy", row)
        pack(files, tmp_path / name, "--shard-mb", 1)
    shards = sorted((tmp_path / "a").iterdir())
    assert len(shards) == 3
    assert "all good" in verify(tmp_path / "a", code=0)
    shutil.copy(tmp_path / "b/00001.safetensors", shards[1])
    assert "'00001.safetensors' (the file of that name is of another packing than '00000" in verify(
        tmp_path / "a", code=1
    )
    assert "all good" in verify(shards[1], code=0)
    shards[1].unlink()
    assert "'00001.safetensors' is missing" in verify(*shards[::2], code=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing(tmp_path, number):
    folder = tmp_path / "large"
    folder.mkdir()
    for i in range(200):
        np.save(folder / f"{i:03}.npy", np.full(250_000, i, np.float32))
    # Where the signal comes too late, on a busy machine, the folder is there and the next attempt begins anew.
    for attempt in range(10):
        target = tmp_path / f"shards{attempt}"
        command = [PROGRAM, "pack", folder, target, "--shard-mb", "1"]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # else as nohup leaves it
        )
        while process.poll() is None and not list(tmp_path.glob("shards*.tmp")):
            time.sleep(0.001)
        process.send_signal(number)
        process.communicate(timeout=60)
        if process.returncode != 0:
            break
        shutil.rmtree(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large"]
    assert process.returncode == -number


def test_a_pattern_that_the_shell_wrote_out_is_told(clips, tmp_path):
    told = pack(*sorted(clips.iterdir()), tmp_path / "shards", code=2).stderr
    assert told.startswith("penstock: pack takes one pattern, and found 19 words more than it takes")
    assert "quotes" in told


def test_writes_and_tells(clips, tmp_path):
    done = pack(clips, tmp_path / "shards")
    assert done.stdout.startswith(f"{tmp_path / 'shards'}: 20 samples in 1 shard, ")
    assert done.stderr == ""
    arrays = load_file(tmp_path / "shards" / "00000.safetensors")
    assert arrays["label"].tolist() == list(range(20))
    assert arrays["x"][arrays["x.offsets"][7], 0] == 7


def test_a_shard_that_cannot_be_written_is_named_as_it_would_be(clips, tmp_path):
    limited = ["bash", "-c", 'ulimit -f 1; exec "$0" pack "$1" "$2"']
    done = subprocess.run([*limited, PROGRAM, clips, tmp_path / "shards"], capture_output=True, text=True)
    assert done.returncode == 1, done
    assert f"{tmp_path / 'shards'}/00000.safetensors: cannot write the file" in done.stderr
    assert not list(tmp_path.glob("shards*"))


def test_shards_of_some_size_and_json(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    for i in range(10):
        np.save(folder / f"{i}.npy", np.full(62_500, i))
    told = json.loads(pack(folder / "*.npy", tmp_path / "shards", "--shard-mb", 2, "--json", "--workers", 1).stdout)
    assert told == {"path": str(tmp_path / "shards"), "samples": 10, "shards": 3, "bytes": told["bytes"]}
    shapes = [load_file(path)["tensor"].shape for path in sorted((tmp_path / "shards").iterdir())]
    assert shapes == [(4, 62_500), (4, 62_500), (2, 62_500)]


def test_keys(clips, tmp_path):
    pack(clips, tmp_path / "shards", "--key", "label")
    assert set(load_file(tmp_path / "shards" / "00000.safetensors")) == {"label"}
    pack(clips, tmp_path / "both", "--key", "label", "--key", "x")
    assert "no key 'nope'" in pack(clips, tmp_path / "none", "--key", "nope", code=1).stderr


def test_leaves_nothing_where_it_fails(clips, tmp_path):
    (clips / "13.pt").write_bytes((clips / "13.pt").read_bytes()[:500])
    assert "13.pt" in pack(clips, tmp_path / "shards", code=1).stderr
    torch.save({"x": torch.ones(1, 1000), "label": "text"}, clips / "13.pt")
    assert "13.pt" in pack(clips, tmp_path / "shards", code=1).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["clips"]


def test_replaces_nothing(clips, tmp_path):
    before = sorted(path.name for path in clips.iterdir())
    assert "new folder" in pack(clips, clips, code=1).stderr
    assert "new folder" in pack(clips, clips / "00.pt", code=1).stderr
    assert sorted(path.name for path in clips.iterdir()) == before
    (tmp_path / "empty").mkdir()
    pack(clips, tmp_path / "empty")
    assert pack(clips, tmp_path / "other", "--shard-mb", 0, code=2).stdout == ""
