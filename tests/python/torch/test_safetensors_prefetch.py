"""`safe_open.prefetch` and `get_tensor_meta` against safetensors 0.9, and against what its contract says.

safetensors loads to CUDA devices alone, so the tensors are compared with those that are in the file.
"""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch")
peer = pytest.importorskip("safetensors.torch")
import safetensors  # noqa: E402

from penstock._weights.prefetch import PrefetchLoader  # noqa: E402
from penstock.torch.safetensors import SafetensorError, safe_open, save_file  # noqa: E402

TENSORS = {
    "w": torch.arange(24.0).reshape(4, 6),
    "scalar": torch.tensor(2.0),
    "bytes": torch.arange(3, dtype=torch.int8),
    "none": torch.zeros(0, 3),
    "half": torch.arange(5000, dtype=torch.bfloat16).reshape(1000, 5),
}


@pytest.fixture
def path(tmp_path):
    peer.save_file(TENSORS, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


@pytest.fixture
def theirs(path):
    opened = safetensors.safe_open(path, "pt")
    if not hasattr(opened, "prefetch"):
        pytest.skip(f"safetensors {safetensors.__version__} has no prefetch; 0.9 has")
    return opened


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_each_tensor_comes_once(path, backend):
    with safe_open(path, "pt", backend=backend) as opened, opened.prefetch() as loader:
        assert loader.names() == opened.offset_keys()
        assert len(loader) == len(TENSORS)
        assert torch.equal(loader.take("w"), TENSORS["w"])
        found = dict(loader)
        assert found.keys() == TENSORS.keys() - {"w"}
        for name, tensor in found.items():
            assert tensor.dtype == TENSORS[name].dtype
            assert torch.equal(tensor, TENSORS[name])
        for name, text in (("w", "already delivered"), ("half", "already delivered"), ("x", "not in the prefetch")):
            with pytest.raises(SafetensorError, match=text):
                loader.take(name)
        assert list(loader) == []
    with pytest.raises(SafetensorError, match="closed"):
        loader.take("w")


ROWS = [slice(1, 3), slice(None, 2), slice(-3, None), slice(2, 2), slice(None), slice(0, 4, 1), slice(3, 1)]


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_rows(path, rows):
    plan = {"w": rows, "bytes": None}
    with safe_open(path, "pt") as opened, opened.prefetch(plan, device="cpu", threads=1) as loader:
        assert loader.names() == [name for name in opened.offset_keys() if name in ("w", "bytes")]
        assert torch.equal(loader.take("w"), TENSORS["w"][rows])
        assert torch.equal(loader.take("bytes"), TENSORS["bytes"])


WRONG = {
    "no tensor": ({"x": None}, "File does not contain tensor x"),
    "step": ({"w": slice(0, 4, 2)}, "prefetch plan slices must have step 1, got 2 for w"),
    "scalar": ({"scalar": slice(0, 1)}, "cannot slice rows of the 0-d tensor scalar"),
    "number": ({"w": 3}, "prefetch plan values must be None or a slice, got <class 'int'> for w"),
    "beyond": ({"w": slice(0, 9)}, "prefetch plan slice stop 9 for w is out of range for 4 rows"),
    "nothing": ({}, "prefetch plan selects no tensors"),
}


def text_of(call):
    with pytest.raises((SafetensorError, safetensors.SafetensorError)) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("case", WRONG)
def test_plans_that_do_not_fit(path, case):
    plan, text = WRONG[case]
    assert text_of(lambda: safe_open(path, "pt").prefetch(plan)) == text


@pytest.mark.parametrize("case", WRONG)
def test_plans_that_do_not_fit_as_safetensors_says(path, theirs, case):
    plan, _ = WRONG[case]
    assert text_of(lambda: theirs.prefetch(plan, device=0)) == text_of(lambda: safe_open(path, "pt").prefetch(plan))


def test_wrong_arguments(path):
    with pytest.raises(TypeError):
        safe_open(path, "pt").prefetch(["w"])
    for call in (
        lambda: safe_open(path, "np").prefetch(),
        lambda: safe_open(path, "pt").prefetch(threads=0),
        lambda: safe_open(path, "pt").prefetch(device="nowhere"),
    ):
        text_of(call)


def test_meta(path):
    with safe_open(path, "pt") as opened:
        begin = 0
        for name in opened.offset_keys():
            meta = opened.get_tensor_meta(name)
            assert meta.shape == list(TENSORS[name].shape)
            assert meta.data_offsets == (begin, begin + TENSORS[name].nbytes)
            begin = meta.data_offsets[1]
        assert opened.get_tensor_meta("half").dtype == "BF16"
        assert text_of(lambda: opened.get_tensor_meta("x")) == "File does not contain tensor x"


def test_meta_is_that_of_safetensors(path, theirs):
    with safe_open(path, "pt") as opened:
        for name in TENSORS:
            ours, other = opened.get_tensor_meta(name), theirs.get_tensor_meta(name)
            assert (ours.dtype, ours.shape, ours.data_offsets) == (other.dtype, other.shape, other.data_offsets)


def test_meta_of_packed_elements(tmp_path):
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("this torch has no float4")
    tensor = torch.arange(12, dtype=torch.uint8).reshape(3, 4).view(torch.float4_e2m1fn_x2)
    save_file({"f4": tensor}, tmp_path / "x.safetensors")
    with safe_open(tmp_path / "x.safetensors", "pt") as opened:
        meta = opened.get_tensor_meta("f4")
        assert (meta.dtype, meta.shape, meta.data_offsets) == ("F4", [3, 8], (0, 12))


def test_a_take_waits_and_close_lets_go():
    go = threading.Event()
    begun = threading.Event()
    read = []

    def slow(name):
        begun.set()
        go.wait()
        read.append(name)
        if name == "b":
            raise ValueError("b is broken")
        return name.upper()

    loader = PrefetchLoader(["a", "b", "c"], slow, 1, lambda text, _: KeyError(text))
    taken = []
    thread = threading.Thread(target=lambda: taken.append(loader.take("a")))
    thread.start()
    begun.wait()
    go.set()
    thread.join()
    assert taken == ["A"]
    with pytest.raises(ValueError, match="b is broken"):
        loader.take("b")
    assert list(loader) == [("c", "C")]
    go.clear()
    begun.clear()
    loader = PrefetchLoader(["a", "b", "c"], slow, 1, lambda text, _: KeyError(text))
    begun.wait()
    loader.close()
    go.set()
    with pytest.raises(KeyError, match="closed"):
        loader.take("c")
    assert "c" not in read[3:]
