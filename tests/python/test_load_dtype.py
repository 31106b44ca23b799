"""`dtype=` and `strict=` of load: what torch's Module.to(dtype) converts, while it is read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import penstock

STATE = {
    "half": np.array([1.5, -2], np.float16),
    "double": np.array([[0.1, 2], [3, 1e300]]),
    "complex": np.array([1 + 2j], np.complex64),
    "int": np.arange(3),
    "bool": np.array([True]),
}


@pytest.mark.parametrize("name", ["a.npz", "a.pt", "a.safetensors"])
def test_floats_become_the_type_and_others_stay(name, tmp_path):
    saved = STATE if name != "a.pt" else {"model": dict(STATE), "list": [STATE["double"], 3], "epoch": 7}
    penstock.save(saved, tmp_path / name)
    loaded = penstock.load(tmp_path / name, dtype="float32")
    state = loaded if name != "a.pt" else loaded["model"]
    for key, value in STATE.items():
        converts = value.dtype.kind in "fc"
        assert state[key].dtype == ("float32" if converts else value.dtype), key
        with np.errstate(over="ignore"):
            wanted = value.real.astype(np.float32) if converts else value
        np.testing.assert_array_equal(np.asarray(state[key]), wanted)
    if name == "a.pt":
        assert loaded["epoch"] == 7
        assert loaded["list"][0].dtype == "float32"


def test_every_way_of_loading_takes_it(tmp_path):
    penstock.save(STATE, tmp_path / "a.npz")
    archive = penstock.open(tmp_path / "a.npz")
    assert archive.load(dtype=np.float32)["double"].dtype == "float32"
    assert archive["double"].load(dtype="bfloat16").dtype == "bfloat16"
    assert archive["double"][0].load(dtype=np.dtype("float32")).tolist() == pytest.approx([0.1, 2])
    assert penstock.load_async(tmp_path / "a.npz", dtype="float32").result()["half"].dtype == "float32"
    assert penstock.load((tmp_path / "a.npz").read_bytes(), dtype="float64")["half"].dtype == "float64"


def test_strict_names_the_tensor_and_the_value(tmp_path):
    penstock.save({"a": STATE["half"], "b": STATE["double"]}, tmp_path / "a.safetensors")
    assert np.isinf(np.asarray(penstock.load(tmp_path / "a.safetensors", dtype="float32")["b"])[1, 1])
    with pytest.raises(penstock.InvalidArgumentError, match=r"1e\+300, which float32 cannot hold") as caught:
        penstock.load(tmp_path / "a.safetensors", dtype="float32", strict=True)
    assert caught.value.tensor == "b"
    archive = penstock.open(tmp_path / "a.safetensors")
    assert archive["b"][0].load(dtype="float32", strict=True).shape == (2,)
    with pytest.raises(penstock.InvalidArgumentError, match="cannot hold"):
        archive["b"].load(dtype="float32", strict=True)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"dtype": "int32"}, penstock.InvalidArgumentError, "converts floating-point and complex tensors"),
        ({"dtype": "float32", "mmap": True}, penstock.UnsupportedError, "leave out one of mmap and dtype"),
        ({"strict": True}, penstock.InvalidArgumentError, "without a dtype"),
    ],
)
def test_what_cannot_be_is_refused(options, error, match, tmp_path):
    penstock.save(STATE, tmp_path / "a.npz")
    for load in (lambda **o: penstock.load(tmp_path / "a.npz", **o), penstock.open(tmp_path / "a.npz").load):
        with pytest.raises(error, match=match):
            load(**options)


PEAK = """
import resource, sys
import penstock
penstock.load(sys.argv[1])  # a small file: what a load needs by itself
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
state = penstock.load(sys.argv[2], dtype="float16")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_the_file_does_not_lie_in_memory_beside_the_result(tmp_path):
    penstock.save({"a": np.zeros(10, np.float32)}, tmp_path / "small.pt")
    tensors = {str(i): np.ones((8, 1 << 20), np.float32) for i in range(6)}
    penstock.save({**tensors, "large": np.ones(48 << 20, np.float32)}, tmp_path / "large.pt", sync=False)
    command = [sys.executable, "-c", PEAK, tmp_path / "small.pt", tmp_path / "large.pt"]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert peak < 192 + 128, "192 MB of result, and 64 MB of the file at a time"
