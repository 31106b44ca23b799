"""The CUDA array interface both ways, and asarray() of whatever is an array."""

from __future__ import annotations

import array

import numpy as np
import pytest

import penstock

needs_device = pytest.mark.skipif(not penstock.device.is_available(), reason="no device")


class Foreign:
    """An array of another library: a Penstock tensor's memory, described by this interface alone."""

    def __init__(self, tensor, **changes):
        self.tensor = tensor
        self.changes = changes

    @property
    def __cuda_array_interface__(self):
        described = {**self.tensor.__cuda_array_interface__, **self.changes}
        return {key: value for key, value in described.items() if value != "absent"}


def test_memory_of_the_cpu_has_none():
    assert not hasattr(penstock.zeros(3), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="on the cpu"):
        _ = penstock.zeros(3).__cuda_array_interface__


def test_asarray_shares_what_it_can():
    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    t = penstock.asarray(a)
    a[1, 2] = 77
    assert t.tolist() == a.tolist()
    numbers = array.array("d", [1, 2])
    assert penstock.asarray(numbers).dtype == "float64"
    assert penstock.asarray(t) is not None
    assert penstock.asarray(t).equal(t)
    assert penstock.asarray(a, "float32").tolist() == a.tolist()
    assert penstock.asarray([[1, 2], [3, 4]]).shape == (2, 2)
    assert penstock.asarray([1, 2], "int8").dtype == "int8"
    with pytest.raises(penstock.DTypeMismatchError):
        penstock.asarray(object())


@needs_device
def test_describes_the_memory():
    t = penstock.arange(0, 12, dtype="float32").reshape(3, 4).cuda()
    found = t.__cuda_array_interface__
    assert found["version"] == 3
    assert found["shape"] == (3, 4)
    assert found["strides"] is None
    assert found["typestr"] == "<f4"
    address, read_only = found["data"]
    assert address != 0
    assert read_only is False
    assert found["stream"] == 1
    turned = t.transpose(0, 1).__cuda_array_interface__
    assert turned["shape"] == (4, 3)
    assert turned["strides"] == (4, 16)
    assert turned["data"][0] == address
    assert penstock.empty(0, 3, device="cuda").__cuda_array_interface__["data"][0] == 0


@needs_device
def test_names_the_current_stream():
    t = penstock.zeros(4).cuda()
    with penstock.device.Stream("cuda:0") as stream:
        assert t.__cuda_array_interface__["stream"] == stream.pointer


@needs_device
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "complex32"])
def test_types_without_a_name_are_refused(dtype):
    t = penstock.empty(4, dtype=dtype, device="cuda")
    assert not hasattr(t, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match=f"{dtype}.*DLPack"):
        _ = t.__cuda_array_interface__


@needs_device
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float64", "complex64"])
def test_there_and_back_without_a_copy(dtype):
    t = penstock.asarray([[0, 1], [1, 0], [1, 1]], dtype, device="cuda")
    address = t.__cuda_array_interface__["data"][0]
    with penstock.device.transfers() as moved:
        back = penstock.asarray(Foreign(t))
    assert moved.stats()["device_to_device"]["copies"] == 0
    assert back.device == "cuda:0"
    assert back.dtype == dtype
    assert back.__cuda_array_interface__["data"][0] == address
    del t
    assert back.tolist() == penstock.asarray([[0, 1], [1, 0], [1, 1]], dtype).tolist()


@needs_device
def test_strides_and_producers_without_a_stream():
    t = penstock.arange(0, 12, dtype="int32").reshape(3, 4).cuda()
    turned = penstock.asarray(Foreign(t.transpose(0, 1), stream=None))
    assert turned.tolist() == np.arange(12).reshape(3, 4).T.tolist()
    assert penstock.asarray(Foreign(t, stream="absent", version=2)).equal(t)
    assert penstock.asarray(Foreign(t, data=(t.__cuda_array_interface__["data"][0], True))).read_only


@needs_device
def test_work_waits_for_the_producers_stream():
    stream = penstock.device.Stream("cuda:0")
    with stream:
        t = penstock.arange(0, 100_000, dtype="float32").cuda() + 1
        foreign = Foreign(t)
        described = foreign.__cuda_array_interface__
    assert described["stream"] == stream.pointer
    ours = penstock.asarray(Foreign(t, stream=stream.pointer))
    assert ours.tolist() == list(range(1, 100_001))


@needs_device
def test_wrong_descriptions_are_refused():
    t = penstock.zeros(4).cuda()
    with pytest.raises(penstock.InvalidArgumentError, match="stream 0"):
        penstock.asarray(Foreign(t, stream=0))
    with pytest.raises(penstock.UnsupportedError, match="masked"):
        penstock.asarray(Foreign(t, mask=object()))
    with pytest.raises(penstock.UnsupportedError, match="byte order"):
        penstock.asarray(Foreign(t, typestr=">f4"))
    with pytest.raises(penstock.UnsupportedError, match="negative strides"):
        penstock.asarray(Foreign(t, strides=(-4,)))


@needs_device
@pytest.mark.skipif(penstock.device.device_count() < 2, reason="one device")
def test_the_device_is_that_of_the_memory():
    t = penstock.zeros(4).to("cuda:1")
    assert penstock.asarray(Foreign(t)).device == "cuda:1"
