"""penstock.torch.load beside torch.load(weights_only=True): values, types, order, strides, sharing, flags."""

from __future__ import annotations

import collections
import gc
import io
import mmap
import struct
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from load_pairs import (
    FLOAT8,
    FLOATS,
    INTEGERS,
    VALUES,
    Model,
    check,
    of_dtype,
    same,
)

import penstock
import penstock.torch as pt


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", FLOATS + FLOAT8 + INTEGERS)
def test_dtypes(path, name, zipped):
    if not zipped and name in {*FLOAT8, "complex32", "uint16", "uint32", "uint64"}:
        pytest.skip("torch itself cannot write this type in the old format")
    x = of_dtype(name)
    check([x, x[1], x[:, 1:], x.transpose(0, 2), x[0, 0, 0], x[:0]], path, _use_new_zipfile_serialization=zipped)


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

    @pytest.mark.parametrize("dtype", [None, "float16"])
    @pytest.mark.parametrize(
        "location", ["cuda", "cuda:1", "cpu", "meta", "xpu", {"cpu": "cuda:2"}, {"cuda": "cpu"}, torch.device("cuda")]
    )
    def test_fake_tensors_are_where_map_location_wants_them(self, path, location, dtype):
        from torch._subclasses.fake_tensor import FakeTensorMode

        torch.save({"x": torch.ones(4, 3), "n": torch.arange(3), "p": torch.nn.Parameter(torch.ones(2))}, path)
        with FakeTensorMode():
            ours = pt.load(path, map_location=location, dtype=dtype)
            theirs = torch.load(path, map_location=location)
        for key, tensor in theirs.items():
            assert (type(ours[key]), ours[key].device, ours[key].shape) == (type(tensor), tensor.device, tensor.shape)

    @pytest.mark.parametrize("location", [None, "cuda", "meta"])
    def test_fake_sparse_tensors_are_on_devices_that_are_not_here(self, path, location):
        from torch._subclasses.fake_tensor import FakeTensorMode

        torch.save([torch.eye(3).to_sparse(), torch.sparse_coo_tensor([[1, 1]], torch.ones(2), (3,))], path)
        with FakeTensorMode():
            for ours, theirs in zip(
                *(load(path, map_location=location) for load in (pt.load, torch.load)), strict=True
            ):
                assert (type(ours), ours.device, ours.shape) == (type(theirs), theirs.device, theirs.shape)
                assert ours.is_coalesced() == theirs.is_coalesced()

    def test_what_cannot_be_fake_is_no_damage(self, path):
        from torch._subclasses.fake_tensor import FakeTensorMode

        torch.save(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), path)
        with FakeTensorMode(), pytest.raises(RuntimeError):
            torch.load(path)
        with FakeTensorMode(), pytest.raises(penstock.UnsupportedError, match="torch has no way"):
            pt.load(path)

    def test_fake_tensors_have_no_storage_for_a_function_to_place(self, path):
        from torch._subclasses.fake_tensor import FakeTensorMode

        torch.save({"x": torch.ones(4, 3)}, path)
        with FakeTensorMode():
            for load in (pt.load, torch.load):
                with pytest.raises(RuntimeError):
                    load(path, map_location=lambda storage, _: storage)
            with pytest.raises(RuntimeError, match="bogus"):
                pt.load(path, map_location="bogus:1")

    def test_where_bytes_lie(self, path):
        torch.save({"x": torch.randn(4, 3), "y": torch.arange(3)}, path)
        ours, theirs = (load(path, map_location="meta") for load in (pt.load, torch.load))
        for key in ours:
            offsets = [value[key].untyped_storage()._checkpoint_offset for value in (ours, theirs)]
            assert offsets[0] == offsets[1] is not None


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
