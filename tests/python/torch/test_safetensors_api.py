"""penstock.torch's safetensors API against the package safetensors: values, order, sharing and errors."""

from __future__ import annotations

import json
import math
import os
import struct

import pytest

torch = pytest.importorskip("torch")
peer = pytest.importorskip("safetensors.torch")
import safetensors  # noqa: E402

import penstock  # noqa: E402
import penstock.torch as pt  # noqa: E402
from penstock.torch import safetensors as ours  # noqa: E402

DTYPES = list(peer._SIZE)


def filled(dtype, *shape):
    count = 1
    for size in shape:
        count *= size
    raw = torch.arange(count * dtype.itemsize, dtype=torch.int64).to(torch.uint8) % (2 if dtype == torch.bool else 120)
    return raw.view(dtype).reshape(shape)


def same(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.stride() == b.stride()
    assert a.device == b.device
    assert bits(a) == bits(b)


def bits(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist() if tensor.numel() else []


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    tensors = {
        "w": torch.arange(24.0).reshape(2, 3, 4),
        "scalar": torch.tensor(1.5),
        "empty": torch.zeros(0, 3),
        "half": torch.arange(6).to(torch.bfloat16),
        "bytes": torch.arange(5, dtype=torch.uint8),
    }
    peer.save_file(tensors, path, metadata={"made": "here"})
    return path


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)], ids=str)
def test_every_dtype_both_ways(tmp_path, dtype, shape):
    if shape == () and dtype == torch.float4_e2m1fn_x2:
        pytest.skip("a float4 tensor has a dimension for the two elements of a byte")
    tensors = {"x": filled(dtype, *shape), "y": filled(dtype, 4)}
    theirs, mine = tmp_path / "theirs.safetensors", tmp_path / "mine.safetensors"
    peer.save_file(tensors, theirs, {"k": "v"})
    pt.save_file(tensors, mine, {"k": "v"})
    assert mine.read_bytes() == theirs.read_bytes()
    assert ours.save(tensors, {"k": "v"}) == peer.save(tensors, {"k": "v"})
    expected = peer.load_file(theirs)
    for loaded in (pt.load_file(theirs), ours.load(theirs.read_bytes())):
        assert list(loaded) == list(expected)
        for name in expected:
            same(loaded[name], expected[name])
            assert isinstance(loaded[name], torch.Tensor)


def test_loaded_tensors_may_be_written_and_leave_the_file_alone(model):
    before = model.read_bytes()
    loaded = pt.load_file(model)
    for tensor in loaded.values():
        tensor.zero_()
    with pt.safe_open(model, "pt") as f:
        f.get_slice("w")[0].zero_()
        f.get_slice("w")[torch.tensor([1])].zero_()
        f.get_slice("w")[None].zero_()
    assert model.read_bytes() == before


def mapped_as(path):
    """How this process has the file mapped."""
    with open("/proc/self/maps") as maps:
        return {line.split()[1] for line in maps if line.rstrip().endswith(str(path))}


@pytest.fixture
def pages(tmp_path):
    """A file of whole pages, and what is in it."""
    path = tmp_path / "pages.safetensors"
    tensors = {name: torch.full((2048,), float(number)) for number, name in enumerate("abc")}
    peer.save_file(tensors, path)
    return path, tensors


def test_the_backend_says_whether_tensors_lie_in_the_file(pages):
    path, _ = pages
    kept = ours.load_file(path, backend="pread")
    assert mapped_as(path) == set()
    del kept
    for load in (ours.load_file, lambda path: ours.safe_open(path, "pt").get_tensor("b")):
        kept = load(path)
        assert mapped_as(path) == {"rw-p"}, "private to the process"
        del kept
        assert mapped_as(path) == set()


def test_mapped_tensors_are_those_of_the_file_that_was_opened(pages):
    """Not of one that took its name since."""
    path, tensors = pages
    with ours.safe_open(path, "pt") as file:
        ours.save_file({name: tensor + 7 for name, tensor in tensors.items()}, path)
        for name, tensor in tensors.items():
            same(file.get_tensor(name), tensor)


def test_a_file_that_was_replaced_while_it_was_opened_is_read(pages, monkeypatch):
    path, tensors = pages
    seen = iter(range(100))
    monkeypatch.setattr("penstock._weights.safetensors.identity", lambda path: (next(seen),))
    loaded = ours.load_file(path)
    assert mapped_as(path) == set()
    for name, tensor in tensors.items():
        same(loaded[name], tensor)


def test_tensors_that_lie_where_their_type_cannot_be_used_are_read(tmp_path):
    """The data begins wherever the header ends."""
    path = tmp_path / "odd.safetensors"
    header = json.dumps({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}).encode()
    header += b" " * ((1 - len(header)) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<3f", 1, 2, 3))
    assert ours.load_file(path)["x"].tolist() == [1, 2, 3]
    assert ours.load_file(path)["x"].data_ptr() % 4 == 0


def test_a_mapped_tensor_is_saved_without_the_rest_of_its_file(pages, tmp_path):
    path, tensors = pages
    torch.save(ours.load_file(path)["a"], tmp_path / "a.pt")
    assert (tmp_path / "a.pt").stat().st_size < 2 * tensors["a"].nbytes


def test_safe_open_lists_what_the_peer_lists(model):
    with safetensors.safe_open(model, "pt") as theirs, pt.safe_open(model, framework="pt", device="cpu") as mine:
        assert mine.keys() == theirs.keys()
        assert mine.offset_keys() == theirs.offset_keys()
        assert mine.metadata() == theirs.metadata()
        expected = theirs.get_tensors()
        loaded = mine.get_tensors()
        assert list(loaded) == list(expected)
        for name in theirs.keys():  # noqa: SIM118 - no mapping
            same(mine.get_tensor(name), expected[name])
            same(loaded[name], expected[name])
            assert mine.get_slice(name).get_shape() == theirs.get_slice(name).get_shape()
            assert mine.get_slice(name).get_dtype() == theirs.get_slice(name).get_dtype()


@pytest.mark.parametrize("metadata", [None, {}, {"made": "here"}], ids=str)
def test_metadata_are_those_of_the_peer(metadata, tmp_path):
    """Empty metadata are not the same as none."""
    assert ours.save({"a": X}, metadata) == peer.save({"a": X}, metadata)
    ours.save_file({"a": X}, tmp_path / "a.safetensors", metadata)
    with pt.safe_open(tmp_path / "a.safetensors", framework="pt") as mine:
        assert mine.metadata() == metadata


KEYS = """0 | 1, 2 | -1 | ... | ..., 0 | 0, ... | 0:1 | 0:2:2 | ::2 | :, ::2 | ::-1 | None | None, 0 | True | False |
[0, 1] | :, [2, 0] | torch.tensor([0, 1]) | :, torch.tensor([1]) | 5 | -3 | 0, 0, 0 | 0, 0, 0, 0 | 0:100 | -1: | 1:0 |
:-1 | "a" | 1.0 | [0, 1], [1, 2] | [5] | [-1] | [] | () | (slice(None), [0, 1], 0) | :, :, [True, False, True, False] |
0:2:0 | [True, False] | torch.tensor([True, False]) | torch.tensor(1) | (0,) | ..., ... | :, ..., 0 | :, :, :, ... |
:, :, :, : | range(2) | slice(torch.tensor(0), torch.tensor(1)) | slice("a", 2) | slice(-100, 1) | 1::, ::3, 1:3"""


@pytest.mark.parametrize("name", ["w", "scalar", "empty"])
@pytest.mark.parametrize("key", [key.strip() for key in KEYS.split("|")])
def test_slices_are_those_of_the_peer(model, name, key):
    with safetensors.safe_open(model, "pt") as theirs, pt.safe_open(model, "pt") as mine:
        outcomes = []
        for view in (theirs.get_slice(name), mine.get_slice(name)):
            try:
                outcomes.append(eval(f"view[{key}]", {"view": view, "torch": torch}))
            except Exception as error:
                outcomes.append(type(error))
        expected, found = outcomes
        if isinstance(expected, type):
            assert isinstance(found, type)
            assert issubclass(found, expected)
        else:
            assert found.shape == expected.shape
            assert found.dtype == expected.dtype
            assert torch.equal(found, expected)


def test_a_slice_outlives_its_file_object_and_the_file_object_is_closed(model):
    with pt.safe_open(model, "pt") as f:
        part = f.get_slice("w")
    assert part[1, 2].tolist() == [20, 21, 22, 23]
    for call in (f.keys, f.offset_keys, f.metadata, f.get_tensors, lambda: f.get_tensor("w"), lambda: f.get_slice("w")):
        with pytest.raises(pt.SafetensorError, match="closed"):
            call()


def header(fields, data=b""):
    text = json.dumps(fields).encode()
    return struct.pack("<Q", len(text)) + text + data


BAD = {
    "nothing": b"",
    "three bytes": b"abc",
    "cut header": struct.pack("<Q", 5) + b"{}",
    "no JSON": struct.pack("<Q", 4) + b"{ab}",
    "huge header": struct.pack("<Q", 1 << 40) + b"{}",
    "cut tensor": header({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, b"123"),
    "hole": header({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"12"),
    "metadata": header({"__metadata__": {"a": 1}}),
    "size": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 2]}}, b"12"),
    "float6": header({"a": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}, b"123"),
}


@pytest.mark.parametrize("kind", BAD)
def test_damaged_files_raise_what_the_peer_raises(tmp_path, kind):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(BAD[kind])
    with pytest.raises(safetensors.SafetensorError):
        peer.load_file(path)
    with pytest.raises(safetensors.SafetensorError) as caught:
        pt.load_file(path)
    assert isinstance(caught.value, pt.SafetensorError)
    assert isinstance(caught.value, penstock.Error)
    with pytest.raises(pt.SafetensorError):
        ours.load(BAD[kind])


X = torch.arange(6.0)
OPENED = {
    "missing file": lambda m, path: m.load_file(path.with_name("no")),
    "bytes path": lambda m, path: m.load_file(os.fsencode(path)),
    "no path": lambda m, path: m.load_file(3),
    "no bytes": lambda m, path: m.load("abc"),
    "bytearray": lambda m, path: m.load(bytearray(path.read_bytes())),
    "framework": lambda m, path: m.safe_open(path, "caffe"),
    "device": lambda m, path: m.safe_open(path, "pt", device="teapot"),
    "negative device": lambda m, path: m.safe_open(path, "pt", device=-1),
    "meta device": lambda m, path: m.safe_open(path, "pt", device="meta"),
    "framework of another type": lambda m, path: m.safe_open(path, None),
    "backend of another type": lambda m, path: m.load_file(path, backend=None),
    "backend": lambda m, path: m.safe_open(path, "pt", backend="carrier pigeon"),
    "no such tensor": lambda m, path: m.safe_open(path, "pt").get_tensor("zz"),
    "no such slice": lambda m, path: m.safe_open(path, "pt").get_slice("zz"),
    "no name": lambda m, path: m.safe_open(path, "pt").get_tensor(None),
    "shared": lambda m, path: m.save_file({"a": X, "b": X[:3]}, path),
    "same": lambda m, path: m.save({"a": X, "b": X}),
    "not contiguous": lambda m, path: m.save_file({"a": X.reshape(2, 3).T}, path),
    "metadata of numbers": lambda m, path: m.save_file({"a": X}, path, {"a": 1}),
    "metadata keys": lambda m, path: m.save_file({"a": X}, path, {1: "a"}),
    "no metadata": lambda m, path: m.save_file({"a": X}, path, 3),
    "list": lambda m, path: m.save_file([X], path),
    "no tensor": lambda m, path: m.save_file({"a": [1.0]}, path),
    "sparse": lambda m, path: m.save_file({"a": X.to_sparse()}, path),
    "number as name": lambda m, path: m.save_file({1: X}, path),
    "complex128": lambda m, path: m.save_file({"a": X.to(torch.complex128)}, path),
    "meta": lambda m, path: m.save_file({"a": torch.zeros(2, device="meta")}, path),
    "no folder": lambda m, path: m.save_file({"a": X}, path / "no" / "no"),
    "folder": lambda m, path: m.save_file({"a": X}, path.parent),
}
peer.safe_open = safetensors.safe_open


@pytest.mark.parametrize("case", OPENED)
def test_refusals_are_those_of_the_peer(model, case):
    before = model.read_bytes()
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever the peer raises
        OPENED[case](peer, model)
    with pytest.raises(expected.type):
        OPENED[case](ours, model)
    assert model.read_bytes() == before


def test_views_that_do_not_overlap_may_be_saved(tmp_path):
    path = tmp_path / "x.safetensors"
    pt.save_file({"a": X[:3], "b": X[3:]}, path)
    assert peer.load_file(path)["b"].tolist() == [3, 4, 5]


def test_parameters_and_lazy_conjugates_are_saved_by_value(tmp_path):
    path = tmp_path / "x.safetensors"
    pt.save_file({"p": torch.nn.Parameter(X.clone()), "c": torch.tensor([1 + 2j]).conj()}, path)
    assert peer.load_file(path)["p"].tolist() == X.tolist()
    assert peer.load_file(path)["c"].tolist() == [1 - 2j]


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Linear(3, 3)
        self.two = torch.nn.Linear(3, 3)
        self.two.weight = self.one.weight


def test_models_with_tied_weights_go_both_ways(tmp_path):
    model, path, theirs = Tied(), tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    pt.save_model(model, path)
    peer.save_model(model, theirs)
    assert path.read_bytes() == theirs.read_bytes()
    fresh = Tied()
    assert pt.load_model(fresh, path) == (set(), [])
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), fresh.parameters(), strict=True))
    with pytest.raises(RuntimeError, match=r"Missing key.*weight"):
        pt.load_model(torch.nn.ModuleDict({"three": torch.nn.Linear(3, 3)}), path)


def test_the_way_out_of_a_refusal_is_named(tmp_path):
    model = torch.nn.Linear(2, 3)
    model.weight = torch.nn.Parameter(torch.zeros(2, 3).T)
    for module in (peer, pt):
        with pytest.raises(ValueError, match=r"use save_model\(\.\.\., force_contiguous=True\)"):
            module.save_model(model, tmp_path / "x.safetensors", force_contiguous=False)


@pytest.fixture
def sharded(tmp_path):
    pt.save_file({"b": X, "a": X + 1}, tmp_path / "model-1.safetensors", {"of": "one"})
    pt.save_file({"c": X + 2}, tmp_path / "model-2.safetensors")
    index = {"metadata": {"total_size": 72}, "weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}}
    index["weight_map"]["c"] = "model-2.safetensors"
    return tmp_path / "model.safetensors.index.json", index


def test_a_sharded_model_is_one_mapping(sharded):
    path, index = sharded
    path.write_text(json.dumps(index))
    with pt.safe_open(path, "pt") as f:
        assert f.keys() == ["a", "b", "c"]
        assert f.metadata() == {"total_size": "72"}
        assert torch.equal(f.get_tensor("c"), X + 2)
        assert torch.equal(f.get_slice("a")[2:], (X + 1)[2:])
    assert {name: tensor[0].item() for name, tensor in pt.load_file(path).items()} == {"a": 1, "b": 0, "c": 2}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"weight_map": {"a": "../model-1.safetensors"}}, "plain file name"),
        ({"weight_map": {"a": "/etc/passwd"}}, "plain file name"),
        ({"weight_map": {"a": ".."}}, "plain file name"),
        ({"weight_map": {"zz": "model-1.safetensors"}}, "zz"),
        ({"weight_map": [1]}, "weight_map"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(sharded, change, error):
    path, index = sharded
    path.write_text(json.dumps(index | change))
    with pytest.raises(pt.SafetensorError, match=error):
        pt.load_file(path)


def test_a_missing_shard_is_a_missing_file(sharded):
    path, index = sharded
    path.write_text(json.dumps(index))
    path.with_name("model-2.safetensors").unlink()
    with pytest.raises(FileNotFoundError):
        pt.load_file(path)


@pytest.mark.parametrize("shape", [[4], [0], [2, 8], [3, 0, 4]], ids=str)
@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F6_E3M2"])
def test_packed_types_are_described_by_their_elements(tmp_path, dtype, shape):
    count = math.prod(shape) * int(dtype[1]) // 8
    path = tmp_path / "x.safetensors"
    path.write_bytes(header({"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, count]}}, bytes(count)))
    with safetensors.safe_open(path, "pt") as theirs, pt.safe_open(path, "pt") as mine:
        for view in (theirs.get_slice("a"), mine.get_slice("a")):
            assert (view.get_dtype(), view.get_shape()) == (dtype, shape)


def test_long_names_of_types_are_not_repeated(tmp_path):
    header = json.dumps({"a": {"dtype": "Q" * 10**6, "shape": [1], "data_offsets": [0, 1]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0")
    for load in (pt.load_file, pt.load, penstock.load):
        with pytest.raises(penstock.Error, match=r"dtype is 'QQQ") as caught:
            load(tmp_path / "x.safetensors")
        assert len(str(caught.value)) < 500


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this torch has no packed type")
def test_packed_tensors_without_dimensions_are_refused(tmp_path):
    packed = torch.zeros(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    for save in (peer.save_file, pt.save_file):
        with pytest.raises(safetensors.SafetensorError):
            save({"a": packed[0]}, tmp_path / "x.safetensors")
        save({"a": packed[:1]}, tmp_path / "x.safetensors")


def test_a_backend_that_is_none_is_refused_whoever_reads(model):
    for options in ({}, {"shared": True}):
        with pytest.raises(ours.SafetensorError, match="carrier pigeon"):
            ours.load_file(model, backend="carrier pigeon", **options)
        for backend in ("mmap", "pread"):
            same(ours.load_file(model, backend=backend, **options)["w"], peer.load_file(model)["w"])
