"""DLPack's C exchange interface: offered by penstock.Tensor, and taken from torch's tensors."""

import ctypes
import gc

import numpy as np
import pytest
import torch

import penstock


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(Versioned))
Versioned._fields_ = [
    ("major", ctypes.c_uint32),
    ("minor", ctypes.c_uint32),
    ("context", ctypes.c_void_p),
    ("deleter", DELETER),
    ("flags", ctypes.c_uint64),
    ("tensor", DLTensor),
]
MANAGED = ctypes.POINTER(Versioned)
SET_ERROR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        (
            "allocate",
            ctypes.PYFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(MANAGED), ctypes.c_void_p, SET_ERROR
            ),
        ),
        ("export_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(MANAGED))),
        ("import_tensor", ctypes.PYFUNCTYPE(ctypes.c_int, MANAGED, ctypes.POINTER(ctypes.py_object))),
        ("describe_object", ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))),
        (
            "current_stream",
            ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)),
        ),
    ]


def api_of(kind) -> Api:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return Api.from_address(get(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def array_over(tensor: DLTensor) -> np.ndarray:
    """The float32 values that a description means."""
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (2, 32, 1)
    shape = tensor.shape[: tensor.ndim]
    strides = [4 * s for s in tensor.strides[: tensor.ndim]]
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 4
    block = (ctypes.c_char * reach).from_address(tensor.data + tensor.byte_offset)
    return np.lib.stride_tricks.as_strided(np.frombuffer(block, "f4", 1), shape, strides)


def test_is_on_the_type_and_of_version_1():
    api = api_of(penstock.Tensor)
    assert api.major == 1
    assert api.minor >= 3
    assert api.previous is None


def test_export_shares_the_memory_and_keeps_it():
    x = penstock.tensor(np.arange(12, dtype="f4").reshape(3, 4))
    out = MANAGED()
    assert api_of(penstock.Tensor).export_object(x.transpose(0, 1), ctypes.byref(out)) == 0
    del x
    gc.collect()
    np.testing.assert_array_equal(array_over(out.contents.tensor), np.arange(12, dtype="f4").reshape(3, 4).T)
    assert out.contents.flags == 0
    out.contents.deleter(out)


def test_a_read_only_tensor_says_so(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(1000, "f4"))
    mapped = penstock.load(tmp_path / "x.npy", mmap=True)
    out = MANAGED()
    assert api_of(penstock.Tensor).export_object(mapped, ctypes.byref(out)) == 0
    assert out.contents.flags & 1
    out.contents.deleter(out)
    with pytest.raises(BufferError, match="read-only"):
        api_of(penstock.Tensor).describe_object(mapped, ctypes.byref(DLTensor()))


def test_what_dlpack_has_no_type_for_is_a_buffer_error():
    with pytest.raises(BufferError, match="DLPack has no type"):
        api_of(penstock.Tensor).export_object(penstock.tensor(np.array(["a"])), ctypes.byref(MANAGED()))


def test_other_objects_are_refused():
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        api_of(penstock.Tensor).export_object([1, 2], ctypes.byref(MANAGED()))


def test_a_description_borrows():
    x = penstock.tensor(np.arange(6, dtype="f4").reshape(2, 3))
    out = DLTensor()
    assert api_of(penstock.Tensor).describe_object(x, ctypes.byref(out)) == 0
    np.testing.assert_array_equal(array_over(out), x.numpy())


def test_allocate_gives_new_memory_of_the_prototypes_form():
    api = api_of(penstock.Tensor)
    sizes = (ctypes.c_int64 * 2)(3, 5)
    prototype = DLTensor(None, 1, 0, 2, DataType(2, 32, 1), sizes, None, 0)
    out = MANAGED()
    told = []
    note = SET_ERROR(lambda context, kind, message: told.append((kind, message)))
    assert api.allocate(ctypes.byref(prototype), ctypes.byref(out), None, note) == 0
    assert out.contents.tensor.shape[:2] == [3, 5]
    assert out.contents.tensor.strides[:2] == [5, 1]
    made = ctypes.py_object()
    assert api.import_tensor(out, ctypes.byref(made)) == 0
    assert made.value.shape == (3, 5)
    prototype.dtype = DataType(3, 64, 1)
    assert api.allocate(ctypes.byref(prototype), ctypes.byref(out), None, note) == -1
    assert told[0][0] == b"BufferError"


def test_no_stream_for_the_host():
    stream = ctypes.c_void_p(5)
    assert api_of(penstock.Tensor).current_stream(1, 0, ctypes.byref(stream)) == 0
    assert stream.value is None


def test_torchs_functions_take_our_tensors_and_ours_torchs():
    x = penstock.tensor(np.arange(6, dtype="f4"))
    out = MANAGED()
    assert api_of(penstock.Tensor).export_object(x, ctypes.byref(out)) == 0
    theirs = ctypes.py_object()
    assert api_of(torch.Tensor).import_tensor(out, ctypes.byref(theirs)) == 0
    assert theirs.value.data_ptr() == x.numpy().__array_interface__["data"][0]
    assert api_of(torch.Tensor).export_object(torch.ones(3), ctypes.byref(out)) == 0
    ours = ctypes.py_object()
    assert api_of(penstock.Tensor).import_tensor(out, ctypes.byref(ours)) == 0
    assert ours.value.tolist() == [1, 1, 1]


class Spied(torch.Tensor):
    """A torch tensor that counts the calls of its Python protocol."""

    calls = 0

    def __dlpack__(self, *args, **kwargs):
        Spied.calls += 1
        return super().__dlpack__(*args, **kwargs)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int64, torch.bfloat16, torch.complex64])
def test_torchs_tensors_come_without_a_call_of_python(shape, dtype):
    x = torch.zeros(shape, dtype=dtype).as_subclass(Spied)
    Spied.calls = 0
    t = penstock.from_dlpack(x)
    assert Spied.calls == 0
    assert t.shape == shape
    assert torch.equal(torch.from_dlpack(t), x.as_subclass(torch.Tensor))
    if x.numel():
        assert torch.from_dlpack(t).data_ptr() == x.data_ptr()


def test_what_the_memory_does_not_say_is_still_refused():
    with pytest.raises((BufferError, RuntimeError)):
        penstock.from_dlpack(torch.ones(2, requires_grad=True))
    with pytest.raises((BufferError, RuntimeError)):
        penstock.from_dlpack(torch.ones(2, dtype=torch.complex64).conj())
    with pytest.raises((BufferError, RuntimeError)):
        penstock.from_dlpack(torch.ones(2, dtype=torch.complex64).conj().imag)
    with pytest.raises((BufferError, RuntimeError, penstock.Error)):
        penstock.from_dlpack(torch.eye(3).to_sparse())


def test_memory_lives_as_long_as_either_side():
    x = torch.full((1 << 16,), 7.0)
    t = penstock.from_dlpack(x)
    del x
    gc.collect()
    assert t.tolist()[::9999] == [7.0] * 7


def test_types_whose_table_is_of_another_version_keep_their_protocol():
    class Odd(torch.Tensor):
        __dlpack_c_exchange_api__ = object()

    assert penstock.from_dlpack(torch.ones(2).as_subclass(Odd)).tolist() == [1, 1]
