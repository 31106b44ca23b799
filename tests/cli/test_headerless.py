"""Files without a header: what --dtype, --shape, --offset and --order say of them, in each command."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
TOKENS = np.arange(0, 6000, 5, dtype="<u2")


def run(*args: object, code: int = 0, stdin: bytes | None = None) -> str:
    done = subprocess.run([PROGRAM, *map(str, args)], capture_output=True, input=stdin, timeout=120, check=False)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return (done.stdout if code == 0 else done.stdout + done.stderr).decode()


@pytest.fixture
def folder(tmp_path) -> Path:
    TOKENS.tofile(tmp_path / "train.bin")
    np.save(tmp_path / "train.npy", TOKENS.reshape(-1, 100))
    return tmp_path


SAID = ("--dtype", "uint16", "--shape", "-1,100")


def test_each_command_takes_them(folder, tmp_path):
    tokens = folder / "train.bin"
    array = TOKENS.reshape(-1, 100)
    (listed,) = json.loads(run("ls", tokens, *SAID, "--json"))["tensors"]
    assert (listed["dtype"], listed["shape"]) == ("uint16", [12, 100])
    assert json.loads(run("info", tokens, *SAID, "--json"))["elements"] == 1200
    assert run("cat", tokens, *SAID, "--slice", "3,:4").split() == [str(n) for n in array[3, :4]]
    (stats,) = json.loads(run("stats", tokens, *SAID, "--json"))["tensors"]
    assert (stats["min"], stats["max"]) == (0, 5995)
    assert (
        run("hash", tokens, *SAID, "--content").split()[0] == run("hash", folder / "train.npy", "--content").split()[0]
    )
    assert "equal" in run("diff", tokens, folder / "train.npy", *SAID)
    assert "1 file, 1 tensor" in run("verify", tokens, *SAID)
    assert json.loads(run("show", tokens, *SAID, "--json"))["shape"] == [12, 100]
    run("report", tokens, *SAID, "-o", tmp_path / "page.html")
    run("convert", tokens, tmp_path / "x.npy", *SAID)
    assert np.array_equal(np.load(tmp_path / "x.npy"), array)
    run("convert", tokens, tmp_path / "x.safetensors", *SAID, "--merge", folder / "train.npy")


def test_offset_order_and_byte_order(folder):
    path = folder / "train.bin"
    words = ("--dtype", ">u2", "--shape", "3,20", "--offset", "10", "--order", "F")
    found = np.array([line.split() for line in run("cat", path, *words).splitlines()], int)
    assert np.array_equal(found, np.fromfile(path, ">u2", 60, offset=10).reshape(3, 20, order="F"))
    assert run("cat", path, "--dtype", "uint16", "--slice", ":3").split() == ["0", "5", "10"]
    assert run("cat", "-", "--dtype", "uint16", "--slice", ":3", stdin=path.read_bytes()).split() == ["0", "5", "10"]
    for shape in ("(2, 3)", " [2,3] ", "2, 3,"):
        assert run("cat", path, "--dtype", "uint16", "--shape", shape).split() == ["0", "5", "10", "15", "20", "25"]


def test_several_files_by_a_pattern(folder):
    TOKENS[:300].tofile(folder / "other.bin")
    both = json.loads(run("ls", folder / "*.bin", "--dtype", "uint16", "--json"))
    assert [one["tensors"][0]["shape"] for one in both] == [[300], [1200]]


def test_a_loader_takes_the_rows_of_a_file_and_several_files_as_a_sample_each(folder, tmp_path):
    measured = json.loads(run("bench", folder / "train.bin", *SAID, "--epochs", 1, "--json"))
    assert measured["samples"] == "rows"
    packed = json.loads(run("pack", folder / "train.bin", tmp_path / "rows", *SAID, "--json"))
    assert packed["samples"] == 12
    (shard,) = (tmp_path / "rows").glob("*.safetensors")
    assert run("cat", shard, "--slice", "3,:3").split()[-3:] == ["1500", "1505", "1510"]
    for i in range(3):
        TOKENS[i : i + 60].tofile(folder / f"{i}.raw")
    words = ("--dtype", "uint16", "--shape", "3,20")
    measured = json.loads(run("bench", folder / "*.raw", *words, "--epochs", 1, "--json"))
    assert measured["samples"] == "files"
    assert "cannot open" in run("bench", folder / "*.raw", *words, "--rows", code=1)
    run("pack", folder / "*.raw", tmp_path / "files", "--format", "tar", *words)
    (shard,) = (tmp_path / "files").glob("*.tar")
    listed = json.loads(run("ls", shard, "--json"))["tensors"]
    assert [tensor["shape"] for tensor in listed] == [[3, 20]] * 3
    assert "left over" in run("pack", folder / "*.raw", tmp_path / "no", "--dtype", "uint16", "--shape", "-1,7", code=1)
    assert not (tmp_path / "no").exists()
    assert "a file of the format npy" in run("bench", folder / "train.npy", *SAID, code=1)
    for command in (("pack", tmp_path / "out"), ("bench",)):
        assert "--key" in run(command[0], folder / "train.bin", *command[1:], *SAID, "--key", "x", code=2)


def test_what_is_wrong_is_said(folder):
    path = folder / "train.bin"
    assert "left over" in run("ls", path, "--dtype", "uint16", "--shape", "-1,7", code=1)
    assert "a file of the format npy" in run("ls", folder / "train.npy", *SAID, code=1)
    for words, said in (
        (("--shape", "-1"), "--dtype: is missing"),
        (("--dtype", "uint17"), "a type such as uint16"),
        ((*SAID[:3], "1,,2"), "sizes of 0 or more"),
        *(((*SAID[:3], text), "sizes of 0 or more") for text in ("-2", "28 28", "2)(8", "(2,3]", "()", ",", "", "x")),
        ((*SAID, "--order", "K"), "C, F"),
        ((*SAID, "--offset", "-1"), "--offset"),
    ):
        done = subprocess.run([PROGRAM, "ls", str(path), *words], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert said in done.stderr, (words, done.stderr)


def test_convert_has_a_dtype_of_its_own(folder, tmp_path):
    np.arange(6, dtype="f4").tofile(folder / "floats.bin")
    run("convert", folder / "floats.bin", tmp_path / "x.npy", "--dtype", "float32", "--shape", "2,3")
    assert np.load(tmp_path / "x.npy").dtype == np.float32
    run("convert", tmp_path / "x.npy", tmp_path / "y.npy", "--dtype", "float16")
    assert np.load(tmp_path / "y.npy").dtype == np.float16
    assert "--shape, --offset or --order" in run(
        "convert", folder / "train.bin", tmp_path / "z.npy", "--dtype", "uint16", code=2
    )


def test_tokens_in_a_folder_are_listed(tmp_path):
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, len(TOKENS)
    (tmp_path / "fineweb_train_000001.bin").write_bytes(header.tobytes() + TOKENS.tobytes())
    numbers = np.array([1200], "<i4").tobytes() + np.array([0, 0, 1], "<i8").tobytes()
    (tmp_path / "wiki.idx").write_bytes(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2) + numbers)
    TOKENS.tofile(tmp_path / "wiki.bin")
    (tmp_path / "weights.bin").write_bytes(bytes(100))
    listed = json.loads(run("ls", tmp_path, "--json"))
    assert [Path(one["path"]).name for one in listed] == ["fineweb_train_000001.bin", "wiki.idx"]
    assert not any("error" in one for one in listed)
    assert len(json.loads(run("hash", tmp_path, "--json"))) == 2
