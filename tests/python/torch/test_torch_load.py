"""penstock.torch.load beside torch.load(weights_only=True): values, types, order, strides, sharing, flags, refusals."""

from __future__ import annotations

import collections
import gc
import io
import mmap
import pickle
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
import penstock.torch as pt

FLOATS = ["float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"]
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


def same_tensor(a, b, whole=True):
    """`whole`: over equal storages; what Penstock saves leaves out the parts of storages that no tensor reaches."""
    assert type(a) is type(b)
    if a.layout == torch.jagged:
        return same_jagged(a, b)
    assert (a.dtype, a.layout, a.device) == (b.dtype, b.layout, b.device)
    assert a.is_nested or a.shape == b.shape
    assert (a.requires_grad, a.is_leaf) == (b.requires_grad, b.is_leaf)
    assert (a.is_conj(), a.is_neg(), a.is_quantized, a.is_nested) == (
        b.is_conj(),
        b.is_neg(),
        b.is_quantized,
        b.is_nested,
    )
    same_attributes(a, b, whole)
    if a.device.type == "meta":
        assert a.stride() == b.stride()
    elif a.is_nested:
        for x, y in zip(a.unbind(), b.unbind(), strict=True):
            same_tensor(x, y, whole)
    elif a.is_quantized:
        assert a.qscheme() == b.qscheme()
        if "channel" in str(a.qscheme()):
            assert a.q_per_channel_axis() == b.q_per_channel_axis()
            assert torch.equal(a.q_per_channel_scales(), b.q_per_channel_scales())
            assert torch.equal(a.q_per_channel_zero_points(), b.q_per_channel_zero_points())
        else:
            assert (a.q_scale(), a.q_zero_point()) == (b.q_scale(), b.q_zero_point())
        assert a.stride() == b.stride()
        assert torch.equal(a.int_repr(), b.int_repr())
    elif a.layout == torch.sparse_coo:
        assert a.is_coalesced() == b.is_coalesced()
        same_tensor(a._indices(), b._indices(), whole)
        same_tensor(a._values(), b._values(), whole)
    elif a.layout != torch.strided:
        same_tensor(a.values(), b.values(), whole)
        assert torch.equal(a.to_dense(), b.to_dense())
    else:
        assert a.stride() == b.stride()
        if whole:
            assert a.numel() == 0 or a.storage_offset() == b.storage_offset()
            assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes()
        assert bytes_of(a) == bytes_of(b)


def same_jagged(a, b):
    assert (a.requires_grad, a.is_leaf, a._ragged_idx) == (b.requires_grad, b.is_leaf, b._ragged_idx)
    assert getattr(a, "tag", None) == getattr(b, "tag", None)
    for x, y in zip((a.values(), a.offsets(), *a.unbind()), (b.values(), b.offsets(), *b.unbind()), strict=True):
        assert torch.equal(x, y)


def same_attributes(a, b, whole):
    mine, yours = ({k: v for k, v in vars(x).items() if k != "_backward_hooks"} for x in (a, b))
    if mine or yours:
        same(mine, yours, whole=whole)


def bytes_of(tensor):
    return bytes(tensor.detach().resolve_conj().resolve_neg().clone().contiguous().view(-1).untyped_storage())


def same(a, b, seen=None, *, whole=True):
    """Equal in every respect, and shared where the other is."""
    seen = {} if seen is None else seen
    if id(a) in seen:
        assert seen[id(a)] == id(b)
        return
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        seen[id(a)] = id(b)
        same_tensor(a, b, whole)
        if a.layout == torch.strided and a.device.type == "cpu" and a.numel() and not a.is_nested:
            key = ("storage", a.untyped_storage().data_ptr())
            assert seen.setdefault(key, b.untyped_storage().data_ptr()) == b.untyped_storage().data_ptr()
    elif isinstance(a, torch.storage.TypedStorage):
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()
    elif isinstance(a, dict):
        seen[id(a)] = id(b)
        if hasattr(a, "__dict__"):
            same_attributes(a, b, whole)
        for (k, x), (m, y) in zip(a.items(), b.items(), strict=True):
            same(k, m, seen, whole=whole)
            same(x, y, seen, whole=whole)
    elif isinstance(a, (list, tuple)):
        if isinstance(a, list):
            seen[id(a)] = id(b)
        for x, y in zip(a, b, strict=True):
            same(x, y, seen, whole=whole)
    elif isinstance(a, float):
        assert np.float64(a).tobytes() == np.float64(b).tobytes()
    else:
        assert a == b


def check(value, path, **options):
    torch.save(value, path, **options)
    same(pt.load(path), torch.load(path))
    return pt.load(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


def of_dtype(name):
    return torch.arange(24, dtype=torch.float64).to(getattr(torch, name)).reshape(2, 3, 4)


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", FLOATS + FLOAT8 + INTEGERS)
def test_dtypes(path, name, zipped):
    if not zipped and name in {*FLOAT8, "complex32", "uint16", "uint32", "uint64"}:
        pytest.skip("torch itself cannot write this type in the old format")
    x = of_dtype(name)
    check([x, x[1], x[:, 1:], x.transpose(0, 2), x[0, 0, 0], x[:0]], path, _use_new_zipfile_serialization=zipped)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 4)
        self.b = torch.nn.Linear(4, 3, bias=False)
        self.b.weight = torch.nn.Parameter(self.a.weight.t())
        self.norm = torch.nn.BatchNorm1d(3)


VALUES = {
    "state dict": lambda: Model().state_dict(),
    "module's parameters": lambda: dict(Model().named_parameters()),
    "optimizer": lambda: trained_optimizer().state_dict(),
    "shared": lambda: (lambda x: {"x": x, "again": x, "view": x[1:], "flat": x.view(-1)})(torch.randn(3, 4)),
    "requires grad": lambda: [torch.randn(2, requires_grad=True), torch.randn(2)],
    "parameter": lambda: torch.nn.Parameter(torch.randn(2, 3), requires_grad=False),
    "attributes": lambda: with_attribute(torch.randn(3)),
    "parameter with attributes": lambda: with_attribute(torch.nn.Parameter(torch.randn(3))),
    "expanded": lambda: torch.randn(3, 1).expand(3, 5),
    "empty parts of one": lambda: (lambda x: {"x": x, "none": x[5:5], "end": x[10:]})(torch.arange(10)),
    "empty": lambda: [torch.empty(0), torch.empty(2, 0, 3), torch.tensor(1.5)],
    "conj": lambda: [torch.randn(3, dtype=torch.complex64).conj(), torch.randn(3, dtype=torch.complex128).conj().imag],
    "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "meta": lambda: torch.empty(3, 4, device="meta", dtype=torch.float16).t(),
    "sparse coo": lambda: torch.eye(4).to_sparse(),
    "sparse coo not coalesced": lambda: torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3)),
    "sparse hybrid": lambda: torch.sparse_coo_tensor([[0, 2]], torch.randn(2, 3), (4, 3)),
    "csr": lambda: torch.eye(4).to_sparse_csr(),
    "csc": lambda: torch.eye(4).to_sparse_csc(),
    "bsr": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "bsc": lambda: torch.eye(4).to_sparse_bsc((2, 2)),
    "quantized": lambda: torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 3, torch.quint8),
    "quantized view": lambda: torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 3, torch.qint8)[1:],
    "quantized 32": lambda: torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 0, torch.qint32),
    "quantized per channel": lambda: torch.quantize_per_channel(
        torch.randn(3, 4), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2]), 0, torch.qint8
    ),
    "quantized float parameters": lambda: torch.quantize_per_channel(
        torch.randn(3, 4), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 1, 2]), 0, torch.quint8
    ),
    "nested": lambda: torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged),
    "jagged with lengths": lambda: with_attribute(
        torch.nested.nested_tensor_from_jagged(
            torch.randn(6, 2), torch.tensor([0, 2, 6]), torch.tensor([1, 3])
        ).requires_grad_()
    ),
    "storage": lambda: torch.randn(5).storage(),
    "untyped storage": lambda: torch.randn(5).untyped_storage(),
    "storage of a tensor": lambda: (lambda x: [x.storage(), x, x.storage(), x[1:]])(torch.randn(3)),
    "quantized 4 bit": lambda: torch.quantize_per_channel(
        torch.randn(3, 5), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 1, 2]), 0, torch.quint4x2
    ),
    "conj that requires grad": lambda: torch.randn(3, dtype=torch.complex64, requires_grad=True).conj(),
    "neg": lambda: torch._neg_view(torch.randn(2, 3)),
    "conj and neg": lambda: torch._neg_view(torch.randn(2, 3, dtype=torch.complex64).conj()),
    "conj parameter": lambda: torch.nn.Parameter(torch.randn(3, dtype=torch.complex64).conj()),
    "sparse parameters": lambda: [torch.nn.Parameter(torch.eye(3).to_sparse()), sparse_parameter_with_attribute()],
    "meta parameter": lambda: torch.nn.Parameter(torch.empty(3, 2, device="meta")),
    "attributes of all kinds": lambda: [
        with_attribute(torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 3, torch.quint8)),
        with_attribute(torch.eye(3).to_sparse()),
        with_attribute(torch.empty(2, device="meta")),
        with_attribute(torch.randn(3, dtype=torch.complex64).conj()),
    ],
    "tensors as attributes": lambda: with_shared_attribute(),
    "buffer": lambda: torch.nn.Buffer(torch.ones(2)),
    "constants": lambda: [torch.per_tensor_affine, torch.strided, torch.sparse_coo],
    "attributes of an OrderedDict": lambda: with_attribute(collections.OrderedDict(a=torch.ones(1))),
    "containers": lambda: {
        "list": [1, 2.5, "x", None, True, b"\x00\xff", bytearray(b"ab"), 1j, 2**70, -(2**64)],
        "tuple": (1, (2, ()), torch.Size([2, 3])),
        "set": {1, 2},
        "ordered": collections.OrderedDict(b=1, a=torch.ones(2)),
        "counter": collections.Counter("hello"),
        ("tuple", 1): "key",
        3: "integer",
        None: "none",
        "dtype": [torch.float32, torch.bfloat16, torch.float8_e5m2],
        "device": [torch.device("cpu"), torch.device("cuda:1")],
        "layout": torch.sparse_csr,
        "unicode": ["\u00e4\U0001f600", "\ud800 alone"],
        "special": [float("nan"), float("inf"), -0.0],
    },
    "list in itself": lambda: (lambda x: (x.append(x), x)[1])([1]),
    "one object twice": lambda: (lambda x: [x, x, {"x": x}])([torch.ones(1)]),
}


def with_attribute(tensor):
    tensor.tag = {"a": [1, 2]}
    return tensor


def sparse_parameter_with_attribute():
    return with_attribute(torch.nn.Parameter(torch.eye(3).to_sparse_csr(), requires_grad=False))


def with_shared_attribute():
    tensor = torch.randn(4)
    tensor.front = tensor[:2]
    return [tensor, tensor.front]


def trained_optimizer():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.filterwarnings("ignore")
def test_values(path, name, zipped):
    torch.manual_seed(1)
    value = VALUES[name]()
    if name == "nested" and not zipped:
        torch.save(value, path, _use_new_zipfile_serialization=False)
        same(pt.load(path), value)  # torch builds it before it has read the sizes
        return
    if name == "untyped storage" and not zipped:
        pytest.skip("torch itself cannot read these in the old format")
    if name == "list in itself":
        torch.save(value, path)
        loaded = pt.load(path)
        assert loaded[0] == 1
        assert loaded[1] is loaded
        return
    check(value, path, _use_new_zipfile_serialization=zipped)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_protocols(path, protocol):
    value = {"x": torch.randn(3), "n": [1, "a"]}
    torch.save(value, path, pickle_protocol=protocol)
    same(pt.load(path)["x"], value["x"])
    assert pt.load(path)["n"] == value["n"]


def test_metadata_of_state_dicts(path):
    state = Model().state_dict()
    loaded = check(state, path)
    assert loaded._metadata == state._metadata
    Model().load_state_dict(loaded)


def test_memory_is_read_once_and_writable(path):
    torch.save({"a": torch.zeros(4), "b": torch.zeros(4)}, path)
    loaded = pt.load(path)
    loaded["a"].add_(1)
    assert loaded["b"].sum() == 0
    kept = loaded["a"]
    del loaded
    gc.collect()
    assert kept.tolist() == [1.0] * 4
    assert kept.data_ptr() % 64 == 0


class Fake:
    """Map locations as torch calls them."""

    def __init__(self):
        self.calls = []

    def __call__(self, storage, location):
        self.calls.append((type(storage), location, storage.nbytes()))
        return storage


class TestMapLocation:
    @pytest.fixture
    def value(self):
        x = torch.randn(3, 4)
        return {"x": x, "row": x[1], "y": torch.ones(2, dtype=torch.int16)}

    @pytest.mark.parametrize("where", ["cpu", torch.device("cpu"), "meta", torch.device("meta"), {"cpu": "cpu"}, None])
    def test_places(self, path, value, where):
        torch.save(value, path)
        same(pt.load(path, where), torch.load(path, where))

    def test_functions(self, path, value):
        torch.save(value, path)
        ours, theirs = Fake(), Fake()
        same(pt.load(path, map_location=ours), torch.load(path, map_location=theirs))
        assert sorted(ours.calls, key=str) == sorted(theirs.calls, key=str)
        same(pt.load(path, map_location=lambda s, _: None), torch.load(path))

    @pytest.mark.parametrize("where", ["nowhere", {"cpu": "nowhere"}, "cuda:17"])
    def test_refusals_are_torchs(self, path, value, where):
        torch.save(value, path)
        errors = []
        for load in (torch.load, pt.load):
            with pytest.raises(RuntimeError) as caught:
                load(path, map_location=where)
            errors.append(str(caught.value))
        assert errors[0] == errors[1]

    def test_a_recorded_device_is_torchs_to_find(self, path, value):
        torch.save(value, path)
        moved = path.with_name("cuda.pt")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(moved, "w") as new:
            for item in old.infolist():
                data = old.read(item)
                if item.filename.endswith("data.pkl"):
                    data = data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
                new.writestr(item.filename, data)
        if not torch.cuda.is_available():
            with pytest.raises(RuntimeError, match="CUDA") as theirs:
                torch.load(moved)
            with pytest.raises(RuntimeError, match="CUDA") as ours:
                pt.load(moved)
            assert str(ours.value) == str(theirs.value)
        same(pt.load(moved, "cpu"), torch.load(moved, "cpu"))
        same(pt.load(moved, {"cuda:0": "cpu"}), torch.load(moved, {"cuda:0": "cpu"}))
        locations = []
        pt.load(moved, lambda storage, location: (locations.append(location), storage)[1])
        assert set(locations) == {"cuda:0"}


class TestMmap:
    def test_equals_torch(self, path):
        x = torch.randn(50, 4)
        torch.save({"x": x, "row": x[1], "y": torch.ones(2, dtype=torch.int16)}, path)
        same(pt.load(path, mmap=True), torch.load(path, mmap=True))

    @pytest.mark.parametrize("shift", range(16))
    def test_what_is_not_aligned_is_copied(self, tmp_path, shift):
        value = {"c": torch.randn(3, dtype=torch.complex128), "f": torch.randn(5), "b": torch.tensor([True])}
        saved, packed, legacy = (tmp_path / f"{'x' * shift}{name}.pt" for name in ("saved", "packed", "legacy"))
        torch.save(value, legacy, _use_new_zipfile_serialization=False)
        torch.save(value, saved)
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(packed, "w") as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        for path in (legacy, packed):
            loaded = pt.load(path, mmap=True)
            same(loaded, value)
            assert all(tensor.data_ptr() % tensor.itemsize == 0 for tensor in loaded.values())

    @pytest.mark.parametrize("shared", [False, True])
    def test_the_other_byte_order_is_swapped_in_a_copy(self, path, shared):
        torch.save(
            {"a": torch.arange(3.0), "c": torch.randn(3, dtype=torch.complex64), "b": torch.ones(5).bool()}, path
        )
        other = path.with_name("other.pt")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
            for name in old.namelist():
                new.writestr(name, b"big" if name.endswith("byteorder") else old.read(name))
        before = other.read_bytes()
        expected = torch.load(other)
        same(pt.load(other), expected)
        flag = mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE
        with torch.serialization.set_default_mmap_options(flag):
            loaded = pt.load(other, mmap=True)
        same(loaded, expected)
        loaded["a"].add_(1)
        loaded["c"].add_(1)
        assert other.read_bytes() == before

    def test_what_is_compressed_is_refused(self, path):
        torch.save({"a": torch.zeros(300)}, path)
        packed = path.with_name("packed.pt")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        with pytest.raises(penstock.UnsupportedError, match=r"packed\.pt: mmap can only .* compressed"):
            pt.load(packed, mmap=True)

    def test_writes_stay_in_this_process(self, path):
        torch.save(torch.zeros(4), path)
        before = path.read_bytes()
        pt.load(path, mmap=True).add_(1)
        assert path.read_bytes() == before

    def test_needs_a_path(self, path):
        torch.save(torch.zeros(4), path)
        with path.open("rb") as file, pytest.raises(ValueError, match="must be a file path"):
            pt.load(file, mmap=True)


class TestSurroundings:
    """What torch.load takes from settings of the process and from contexts."""

    @pytest.fixture(params=[True, False], ids=["zip", "legacy"])
    def saved(self, request, path):
        x = torch.randn(4, 3)
        torch.save(
            {"x": x, "row": x[1], "y": torch.arange(3, dtype=torch.int16)},
            path,
            _use_new_zipfile_serialization=request.param,
        )
        return path

    def test_mapped_by_default(self, path):
        torch.save(torch.ones(1000), path)
        with torch.utils.serialization.config.patch({"load.mmap": True}):
            mapped = pt.load(path)
            with pytest.raises(ValueError, match="must be a file path"):
                pt.load(io.BytesIO(path.read_bytes()))
            read = pt.load(path, mmap=False)
        assert str(path) in Path("/proc/self/maps").read_text()
        same(mapped, read)

    def test_shared_mappings(self, path):
        torch.save({"x": torch.zeros(4), "y": torch.ones(3)}, path)
        with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
            pt.load(path, mmap=True)["x"].fill_(7)
        assert pt.load(path, verify=False)["x"].tolist() == [7] * 4

    @pytest.mark.parametrize("default", [None, *torch.serialization.LoadEndianness])
    @pytest.mark.parametrize("recorded", [None, "little", "big"])
    def test_byte_orders_that_are_not_recorded(self, path, default, recorded):
        torch.save({"a": torch.arange(3.0), "b": torch.arange(3)}, path)
        other = path.with_name("other.pt")
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
            for name in old.namelist():
                if not name.endswith("byteorder"):
                    new.writestr(name, old.read(name))
                elif recorded:
                    new.writestr(name, recorded)
        torch.serialization.set_default_load_endianness(default)
        try:
            same(pt.load(other), torch.load(other))
            target = {"a": torch.zeros(3), "b": torch.zeros(3, dtype=torch.int64)}
            pt.load_into(target, other)
            same(target, torch.load(other))
        finally:
            torch.serialization.set_default_load_endianness(None)

    def test_data_that_is_skipped(self, saved):
        with torch.serialization.skip_data():
            ours, theirs = pt.load(saved, verify=False), torch.load(saved)
        for key, tensor in theirs.items():
            assert (ours[key].shape, ours[key].dtype, ours[key].stride()) == (
                tensor.shape,
                tensor.dtype,
                tensor.stride(),
            )
        ours["x"].fill_(3)
        assert ours["row"].tolist() == [3] * 3

    @pytest.mark.parametrize("device", ["cpu", "cuda:1"])
    def test_fake_tensors(self, path, device):
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        torch.save({"x": torch.ones(4, 3), "p": torch.nn.Parameter(torch.ones(2))}, path)
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(path.with_name("y.pt"), "w") as new:
            for name in old.namelist():
                data = old.read(name)
                old_text, new_text = b"X\x03\x00\x00\x00cpu", b"X" + struct.pack("<I", len(device)) + device.encode()
                new.writestr(name, data.replace(old_text, new_text))
        with FakeTensorMode():
            ours, theirs = (load(path.with_name("y.pt")) for load in (pt.load, torch.load))
        for key, tensor in theirs.items():
            assert isinstance(ours[key], FakeTensor)
            assert (type(ours[key]), ours[key].device, ours[key].shape) == (type(tensor), tensor.device, tensor.shape)

    def test_where_bytes_lie(self, path):
        torch.save({"x": torch.randn(4, 3), "y": torch.arange(3)}, path)
        ours, theirs = (load(path, map_location="meta") for load in (pt.load, torch.load))
        for key in ours:
            offsets = [value[key].untyped_storage()._checkpoint_offset for value in (ours, theirs)]
            assert offsets[0] == offsets[1] is not None


class TestFiles:
    def test_objects_with_read(self, path):
        value = {"x": torch.randn(3)}
        torch.save(value, path)
        for file in (io.BytesIO(path.read_bytes()), path.open("rb"), str(path), path):
            same(pt.load(file), value)
        shifted = io.BytesIO(b"12345" + path.read_bytes())
        shifted.seek(5)
        same(pt.load(shifted), value)

    @pytest.mark.parametrize("in_memory", [True, False])
    def test_legacy_files_one_behind_the_other(self, path, in_memory):
        values = [{"x": torch.randn(3)}, [1, "a"], torch.arange(5)[1:]]
        with path.open("wb") as file:
            file.write(b"ahead")
            for value in values:
                torch.save(value, file, _use_new_zipfile_serialization=False)
            file.write(b"behind")
        places = []
        for load in (torch.load, pt.load):
            with io.BytesIO(path.read_bytes()) if in_memory else path.open("rb") as file:
                file.seek(5)
                places.append([])
                for value in values:
                    same(load(file), value)
                    places[-1].append(file.tell())
                assert file.read() == b"behind"
        assert places[0] == places[1]
        with pytest.raises(penstock.Error):
            pt.load(path)

    def test_a_file_that_has_lost_its_name(self, path):
        torch.save(torch.ones(3), path)
        with path.open("rb") as file:
            path.unlink()
            same(pt.load(file), torch.ones(3))

    def test_tensors_outlive_the_bytes(self, path):
        torch.save(torch.arange(1000), path)
        data = bytearray(path.read_bytes())
        loaded = pt.load(io.BytesIO(bytes(data)))
        gc.collect()
        assert loaded.sum() == 499500

    def test_what_cannot_be_read(self, path):
        with pytest.raises(FileNotFoundError):
            pt.load(path)
        with pytest.raises(AttributeError, match="read"):
            pt.load(5)
        path.write_bytes(b"no tensors")
        with pytest.raises(penstock.UnknownFormatError):
            pt.load(path)
        with pytest.raises(penstock.UnknownFormatError, match="memory"):
            pt.load(io.BytesIO(b"no tensors"))

    def test_other_formats(self, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(6).reshape(2, 3))
        same(pt.load(tmp_path / "x.npy"), torch.arange(6).reshape(2, 3))


class Evil:
    ran = False

    def __reduce__(self):
        return (setattr, (Evil, "ran", True))


class TestUnknown:
    def test_code_is_named_and_never_run(self, path):
        torch.save({"x": torch.ones(2), "evil": Evil(), "also": Model}, path)
        with pytest.raises(pickle.UnpicklingError) as caught:
            pt.load(path)
        assert isinstance(caught.value, penstock.UnsafeError)
        assert "builtins.setattr" in str(caught.value)
        assert f"{Model.__module__}.Model" in str(caught.value)
        assert str(path) in str(caught.value)
        assert not Evil.ran

    def test_kept_as_inert_objects(self, path):
        torch.save({"x": torch.ones(2), "evil": Evil()}, path)
        loaded = pt.load(path, unknown="keep")
        assert torch.equal(loaded["x"], torch.ones(2))
        assert isinstance(loaded["evil"], penstock.Opaque)
        assert "builtins.setattr" in repr(loaded["evil"])
        assert not Evil.ran

    def test_whatever_would_run_code_is_refused(self, path):
        torch.save(1, path)
        with pytest.raises(penstock.UnsafeError, match="weights_only"):
            pt.load(path, weights_only=False)
        with pytest.raises(penstock.UnsafeError, match="pickle_module"):
            pt.load(path, pickle_module=pickle)
        assert pt.load(path, weights_only=True) == 1
        with pytest.raises(ValueError, match="unknown"):
            pt.load(path, unknown="ignore")

    def test_attributes_cannot_hide_methods(self, path):
        tensor = torch.ones(2)
        tensor.tag = "kept"
        tensor.__dict__["numpy"] = "hidden"
        torch.save(tensor, path)
        loaded = pt.load(path)
        assert loaded.tag == "kept"
        assert callable(loaded.numpy)


def rewritten(path, change):
    """The archive with its data.pkl changed."""
    out = path.with_name("changed.pt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            new.writestr(item.filename, change(data) if item.filename.endswith("data.pkl") else data)
    return out


def rewritten_storage(path, old, new):
    """The archive with one tensor's elements changed."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    changed = [name for name, data in contents.items() if data == old.numpy().tobytes()]
    contents[changed[0]] = new.numpy().tobytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


class TestHostileComposites:
    """Parts that do not fit together: torch would read outside its memory."""

    def test_sparse_indices(self, path):
        coo = torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (4,), check_invariants=False)
        torch.save(coo, path)
        with pytest.raises(penstock.CorruptError, match=r"sparse COO tensor .* size is inconsistent"):
            pt.load(path)

    @pytest.mark.parametrize("offsets", [[0, 60], [-1, 6], [4, 2]])
    def test_jagged_offsets(self, path, offsets):
        values = torch.randn(6, 2)
        torch.save(torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 6])), path)
        rewritten_storage(path, torch.tensor([0, 6]), torch.tensor(offsets))
        with pytest.raises(penstock.CorruptError, match="jagged"):
            pt.load(path, verify=False)

    def test_nested_offsets(self, path):
        nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)])
        torch.save(nested, path)
        rewritten_storage(path, torch.tensor([0, 6]), torch.tensor([0, 60]))
        with pytest.raises(penstock.CorruptError, match="nested"):
            pt.load(path)


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.binary(max_size=8)
    | st.sampled_from([torch.float32, torch.Size([1, 2]), torch.device("cpu")])
    | st.builds(lambda n: torch.arange(n, dtype=torch.int16), st.integers(0, 4))
)
nested = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text("abc.", max_size=4) | st.integers(), inner, max_size=4)
        | st.builds(collections.OrderedDict, st.dictionaries(st.text("xyz", max_size=2), inner, max_size=3))
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=nested, protocol=st.sampled_from([2, 4]), zipped=st.booleans())
def test_any_nesting(tmp_path_factory, value, protocol, zipped):
    path = tmp_path_factory.getbasetemp() / "any.pt"
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    same(pt.load(path), torch.load(path, weights_only=False))


def test_importing_penstock_does_not_import_torch():
    import subprocess

    code = "import sys, penstock; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
