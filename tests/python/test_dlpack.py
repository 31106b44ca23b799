"""Tensors to and from NumPy and PyTorch without a copy."""

import gc
import weakref

import numpy as np
import pytest

import penstock

torch = pytest.importorskip("torch")

TORCH_NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]


def raw(t):
    return t.contiguous().view(torch.uint8).numpy().tobytes()


def torch_tensor(name, shape=(2, 3)):
    dtype = getattr(torch, name)
    size = int(np.prod(shape))
    if name in FLOAT8:
        return torch.arange(1, 1 + size, dtype=torch.uint8).view(dtype).reshape(shape)
    return torch.arange(size).to(dtype).reshape(shape)


@pytest.mark.parametrize("name", TORCH_NAMES)
@pytest.mark.parametrize("shape", [(2, 3), (4,), (), (0, 2)], ids=str)
def test_torch_both_ways(name, shape):
    source = torch_tensor(name, shape)
    ours = penstock.from_dlpack(source)
    assert ours.dtype == name
    assert ours.shape == tuple(source.shape)
    back = torch.from_dlpack(ours)
    assert back.dtype == source.dtype
    assert torch.equal(back, source)
    if source.numel():
        assert back.data_ptr() == source.data_ptr()


@pytest.mark.parametrize("name", FLOAT8)
def test_torch_float8(name):
    source = torch_tensor(name)
    try:
        ours = penstock.from_dlpack(source)
    except BufferError:
        pytest.skip(f"this torch exports no {name}")
    assert ours.dtype == name
    assert ours.tobytes() == raw(source)
    assert torch.from_dlpack(ours).dtype == source.dtype


@pytest.mark.parametrize("code", ["?", "u1", "i2", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_numpy_both_ways(code):
    array = np.arange(6).astype(code).reshape(2, 3)
    ours = penstock.from_dlpack(array)
    assert ours.tolist() == array.tolist()
    back = np.from_dlpack(ours)
    assert back.dtype == array.dtype
    assert back.ctypes.data == array.ctypes.data


def test_strides_are_kept():
    source = torch.arange(24).reshape(4, 6).t()[1:5:2]
    ours = penstock.from_dlpack(source)
    assert ours.strides == source.stride()
    assert ours.tolist() == source.tolist()
    back = torch.from_dlpack(ours[:, 1:])
    assert back.stride() == source[:, 1:].stride()
    assert torch.equal(back, source[:, 1:])


def test_memory_outlives_the_producer():
    source = torch.arange(1000)
    ours = penstock.from_dlpack(source)
    back = torch.from_dlpack(ours)
    del source, ours
    gc.collect()
    assert back.sum().item() == 499500
    array = np.from_dlpack(penstock.tensor(np.arange(1000)))
    gc.collect()
    assert array.sum() == 499500


def test_memory_is_released_with_the_last_user():
    array = np.arange(10)
    ref = weakref.ref(array)
    back = torch.from_dlpack(penstock.from_dlpack(array))
    del array
    gc.collect()
    assert ref() is not None
    del back
    gc.collect()
    assert ref() is None


def test_untaken_capsules_release():
    array = np.arange(10)
    ref = weakref.ref(array)
    t = penstock.from_dlpack(array)
    capsules = [t.__dlpack__(), t.__dlpack__(max_version=(1, 1))]
    del array, t
    gc.collect()
    assert ref() is not None
    del capsules
    gc.collect()
    assert ref() is None


def read_only():
    array = np.arange(4)
    array.flags.writeable = False
    return penstock.from_dlpack(array)


def test_read_only_memory_stays_so():
    t = read_only()
    assert t.read_only
    assert not np.from_dlpack(t).flags.writeable
    assert not t.numpy().flags.writeable
    assert t[1:].read_only
    assert not t.clone().read_only
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__(max_version=(0, 8))
    copied = penstock.from_dlpack(t.__dlpack__(copy=True))
    assert not copied.read_only
    assert copied.tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError):
        memoryview(t)[0] = 1


def test_arguments():
    t = penstock.tensor([1, 2])
    assert t.__dlpack_device__() == (1, 0)
    assert penstock.from_dlpack(
        t.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False)
    ).tolist() == [1, 2]
    with pytest.raises(BufferError):
        t.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        t.__dlpack__(stream=2)
    np_copy = np.from_dlpack(t, copy=True)
    np_copy[0] = 9
    assert t.tolist() == [1, 2]


def test_capsules_are_taken_once():
    capsule = penstock.tensor([1, 2]).__dlpack__()
    assert "dltensor" in repr(capsule)
    penstock.from_dlpack(capsule)
    with pytest.raises(penstock.InvalidArgumentError, match="taken"):
        penstock.from_dlpack(capsule)


def test_what_dlpack_cannot_express():
    for array in (np.array(["a"]), np.array([b"a"]), np.array([1], "M8[s]"), np.zeros(1, [("a", "f4")])):
        with pytest.raises(BufferError, match="view_bytes"):
            penstock.tensor(array).__dlpack__()
    with pytest.raises(TypeError, match="int"):
        penstock.from_dlpack(3)


class Legacy:
    """A producer that knows no arguments."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


def test_old_producers():
    assert penstock.from_dlpack(Legacy(torch.arange(3))).tolist() == [0, 1, 2]


def test_errors_of_producers_pass():
    class Broken:
        def __dlpack__(self, **_):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        penstock.from_dlpack(Broken())
    with pytest.raises(BufferError):
        penstock.from_dlpack(torch.ones(2, requires_grad=True))


def test_torch_is_not_imported_for_it():
    t = penstock.from_dlpack(np.arange(3))
    assert torch.from_dlpack(t).tolist() == [0, 1, 2]
