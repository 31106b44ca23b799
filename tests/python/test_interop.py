"""Memory shared with each library that speaks DLPack, both ways, for as long as either side needs it."""

from __future__ import annotations

import gc
import importlib
import weakref
from typing import Any

import pytest

import penstock

TYPES = "uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bool".split()
EXTENDED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


class Library:
    """What the tests ask of a library, by the names most of them share."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module = pytest.importorskip({"jax": "jax.numpy"}.get(name, name), reason=f"{name} is not installed")
        if name == "cupy":
            cuda = self.module.cuda
            if not cuda.is_available():
                pytest.skip("cupy finds no CUDA device")
        if name == "jax":
            importlib.import_module("jax").config.update("jax_enable_x64", True)

    def has(self, dtype: str) -> bool:
        return hasattr(self.module, dtype) or (dtype == "bool" and self.name != "torch")

    def take(self, tensor: penstock.Tensor) -> Any:
        return self.module.from_dlpack(tensor)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self.module.zeros(shape, dtype=bool if dtype == "bool" and self.name != "torch" else self.dtype(dtype))

    def dtype(self, name: str) -> Any:
        return getattr(self.module, name)

    def address(self, array: Any) -> int:
        if self.name == "torch":
            return int(array.data_ptr())
        if self.name == "jax":
            return int(array.unsafe_buffer_pointer())
        return int(array.ctypes.data if self.name == "numpy" else array.data.ptr)


@pytest.fixture(params=["torch", "numpy", "jax", "cupy"])
def library(request):
    return Library(request.param)


def made(library: Library, dtype: str, shape: tuple[int, ...] = (3, 4)) -> penstock.Tensor:
    """A tensor in memory that the library computes with."""
    tensor = penstock.ones(*shape).to(dtype)
    return tensor.to("cuda") if library.name == "cupy" else tensor


def is_read_only(library: Library, array: Any) -> bool:
    """Whether it is what NumPy before 2.1 makes of DLPack: arrays that it gives to nobody by DLPack again."""
    return library.name == "numpy" and not array.flags.writeable


def given_back(library: Library, array: Any) -> penstock.Tensor:
    return penstock.asarray(array) if is_read_only(library, array) else penstock.from_dlpack(array)


def taken_again(library: Library, array: Any, tensor: penstock.Tensor) -> Any:
    return tensor.numpy() if is_read_only(library, array) else library.take(tensor)


def take_or_skip(library: Library, tensor: penstock.Tensor) -> Any:
    if not library.has(str(tensor.dtype)):
        pytest.skip(f"{library.name} has no {tensor.dtype}")
    return library.take(tensor)


@pytest.mark.parametrize("dtype", TYPES)
def test_what_a_library_takes_comes_back_as_the_same_memory(library, dtype):
    tensor = made(library, dtype)
    array = take_or_skip(library, tensor)
    back = given_back(library, array)
    assert tuple(array.shape) == tensor.shape
    assert str(array.dtype).removeprefix("torch.") == dtype
    assert back.equal(tensor)
    assert library.address(array) == library.address(taken_again(library, array, back))


@pytest.mark.parametrize("dtype", EXTENDED)
@pytest.mark.parametrize("name", ["torch", "jax"])
def test_small_floats_go_where_the_library_has_them(name, dtype):
    library = Library(name)
    tensor = made(library, dtype)
    try:
        array = take_or_skip(library, tensor)
    except Exception as error:
        if name == "torch":
            raise
        pytest.skip(f"{name} takes no {dtype} by DLPack: {error}")
    assert str(array.dtype).removeprefix("torch.") == dtype
    assert tuple(array.shape) == tensor.shape
    assert penstock.from_dlpack(array).equal(tensor)


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3, 4)], ids=str)
def test_every_shape(library, shape):
    tensor = made(library, "float32", shape)
    array = library.take(tensor)
    assert tuple(array.shape) == shape
    assert given_back(library, array).shape == shape


def test_the_memory_lives_when_the_producer_is_gone(library):
    tensor = made(library, "float32")
    producer = weakref.ref(tensor) if hasattr(tensor, "__weakref__") else lambda: None
    array = library.take(tensor)
    del tensor
    gc.collect()
    assert producer() is None
    assert float(array.sum()) == 12
    array = library.zeros((1000,), "float32")
    taken = penstock.from_dlpack(array)
    del array
    gc.collect()
    others = [library.zeros((1000,), "float32") + 1 for _ in range(20)]  # would lie in memory that was let go
    assert taken.tolist() == [0.0] * 1000
    assert len(others) == 20


def test_views_of_a_view_keep_the_memory(library):
    array = library.take(made(library, "float32", (4, 6))[1:3])
    gc.collect()
    assert given_back(library, array)[1].tolist() == [1.0] * 6


def test_torch_writes_what_penstock_reads():
    torch = pytest.importorskip("torch")
    tensor = penstock.zeros(4)
    shared = torch.from_dlpack(tensor)
    shared[1] = 7
    assert tensor.tolist() == [0, 7, 0, 0]
    own = torch.zeros(4)
    taken = penstock.from_dlpack(own)
    own[2] = 5
    assert taken.tolist() == [0, 0, 5, 0]


def test_numpy_writes_what_penstock_reads():
    numpy = pytest.importorskip("numpy")
    tensor = penstock.zeros(4)
    tensor.numpy()[1] = 7
    assert tensor.tolist() == [0, 7, 0, 0]
    own = numpy.zeros(4)
    taken = penstock.from_dlpack(own)
    own[2] = 5
    assert taken.tolist() == [0, 0, 5, 0]


def test_one_memory_through_all_libraries():
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    first = penstock.zeros(3)
    chain = numpy.from_dlpack(torch.from_dlpack(penstock.from_dlpack(torch.from_dlpack(first))))
    torch.from_dlpack(first)[0] = 3
    del first
    gc.collect()
    assert chain.tolist() == [3, 0, 0]


def test_loaded_memory_outlives_its_archive(tmp_path, library):
    if library.name == "cupy":
        pytest.skip("the file is read into memory of the CPU")
    penstock.save({"a": penstock.ones(1000)}, tmp_path / "a.safetensors")
    with penstock.open(tmp_path / "a.safetensors") as archive:
        array = library.take(archive["a"].load())
    (tmp_path / "a.safetensors").unlink()
    gc.collect()
    assert float(array.sum()) == 1000


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_in_the_code_of_an_array_arrives(tmp_path, raised):
    """NumPy's dtypes have their names by Python code, where Python runs handlers of signals."""
    np = pytest.importorskip("numpy")

    class Dtype:
        hasobject = False

        def __init__(self, kind):
            self.kind = kind

        @property
        def name(self):
            raise self.kind

    class Foreign:
        def __init__(self, kind):
            self.array = np.ones(3)
            self.dtype = Dtype(kind)
            self.__array_interface__ = self.array.__array_interface__

    for call in (
        penstock.asarray,
        penstock.rows,
        lambda array: penstock.save({"a": array}, tmp_path / "a.pt"),
        lambda array: penstock.Writer(tmp_path / "a.npy").append(array),
    ):
        with pytest.raises(raised):
            call(Foreign(raised))
    assert penstock.asarray(Foreign(AttributeError)).tolist() == [1, 1, 1]
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_in_the_code_of_a_number_arrives():
    class Number:
        def __float__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.rows(penstock.ones(2, 2)).scale(Number())
