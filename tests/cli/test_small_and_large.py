"""Small files of which a command could make very much: what is shared, repeated or empty costs what the file costs."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")
LIMIT = 1 << 30


def limited(*args: object) -> subprocess.CompletedProcess:
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))

    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, preexec_fn=limit, timeout=60)


def pt(path: Path, pickled: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + pickled + b".")
        archive.writestr("a/version", "3\n")
    return path


def npy(path: Path, header: bytes, payload: bytes = b"") -> Path:
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + payload)
    return path


NESTED = {
    "a list twice in itself": b"]q\0(h\0h\0e",
    "lists of the last one twice": b"]q\0" + b"".join(b"0]q%c(h%ch%ce" % (i, i - 1, i - 1) for i in range(1, 40)),
    "tuples of the last one twice": b"K\1\x85q\0"
    + b"".join(b"0h%ch%c\x86q%c" % (i - 1, i - 1, i) for i in range(1, 40)),
    "objects of the last one twice": b"cfoo\nbar\nK\1\x85Rq\0"
    + b"".join(b"0cfoo\nbar\nh%ch%c\x86Rq%c" % (i - 1, i - 1, i) for i in range(1, 40)),
}


@pytest.mark.parametrize("name", NESTED)
def test_shared_content_is_told_once(tmp_path, name):
    path = pt(tmp_path / "x.pt", NESTED[name])
    for args in [("info", path, "--json"), ("info", path), ("ls", path)]:
        done = limited(*args)
        assert done.returncode == 0, done.stderr
    printed = limited("info", path, "--json").stdout
    assert json.loads(printed)["structure"]
    assert len(printed) < 30_000


@pytest.mark.parametrize("shape", ["(1099511627776, 0)", "(0, 1099511627776)", "(3, 0, 2)"])
def test_no_elements_are_an_empty_list(tmp_path, shape):
    path = npy(tmp_path / "x.npy", f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}".encode())
    done = limited("cat", path, "--json")
    assert json.loads(done.stdout)["values"] == []
    assert limited("cat", path).returncode == 0


def test_elements_come_as_they_are_printed(tmp_path):
    """Repeated ones take no memory, and neither does the wide form in which numbers are printed."""
    torch = pytest.importorskip("torch")
    torch.save(torch.ones(1).expand(1 << 29), tmp_path / "x.pt")
    with subprocess.Popen([PROGRAM, "cat", "--json", tmp_path / "x.pt"], stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline().strip() for _ in range(200_000)]
        peak = int(Path(f"/proc/{process.pid}/status").read_text().split("VmHWM:")[1].split()[0])
        process.kill()
    assert lines[-1] == "1,"
    assert peak < 100_000  # kB


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("shape", [(300_000,), (2, 100, 1000), (70_000, 3), (3, 70_000)], ids=str)
def test_large_tensors_are_printed_in_order(tmp_path, shape, layout):
    array = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    np.save(tmp_path / "x.npy", np.asarray(array, order=layout))
    assert np.array_equal(json.loads(limited("cat", tmp_path / "x.npy", "--json").stdout)["values"], array)
    assert np.array_equal(np.array(limited("cat", tmp_path / "x.npy").stdout.split(), "i4"), array.ravel())
