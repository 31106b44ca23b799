"""Tensor against NumPy: facts, views, conversions, text."""

import copy
import ctypes
import gc
import pickle
import weakref

import numpy as np
import pytest
from ctrl_c import answers_ctrl_c
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import penstock

NUMERIC = ["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
OTHERS = ["S5", "<U7", "V3", "<M8[ns]", "<m8[25us]", [("a", "<f4"), ("b", "<i8", (2,)), ("c", ">u2")]]


def example(dtype, shape=(2, 3, 4)):
    size = int(np.prod(shape))
    dtype = np.dtype(dtype)
    if dtype.kind == "U":
        return np.array([f"é{i}" for i in range(size)], dtype).reshape(shape)
    if dtype.kind == "S":
        return np.array([b"x" * (i % 6) for i in range(size)], dtype).reshape(shape)
    if dtype.kind in "V":
        return np.frombuffer(np.random.default_rng(1).bytes(size * dtype.itemsize), dtype).reshape(shape)
    if dtype.kind in "mM":
        return np.arange(size).astype("i8").view(dtype).reshape(shape)
    if dtype.kind == "c":
        return (np.arange(size) - 1j * np.arange(size)[::-1]).astype(dtype).reshape(shape)
    return np.arange(size).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", NUMERIC + OTHERS, ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 4), (5,), (), (0, 3)], ids=str)
def test_facts_and_values(dtype, shape):
    array = example(dtype, shape)
    t = penstock.tensor(array)
    assert t.shape == array.shape
    assert t.ndim == array.ndim
    assert t.nbytes == array.nbytes
    assert t.numel() == array.size
    assert t.dtype.itemsize == array.dtype.itemsize
    assert t.device == "cpu"
    assert t.is_contiguous()
    assert not t.read_only
    assert t.tobytes() == array.tobytes()
    back = t.numpy()
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    if array.size and np.dtype(dtype).kind in "?biufcSU":
        assert t.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", NUMERIC + OTHERS, ids=str)
def test_numpy_shares_memory(dtype):
    t = penstock.tensor(example(dtype))
    a, b = t.numpy(), t.numpy()
    assert np.shares_memory(a, b)
    assert a.flags.writeable


def test_numpy_outlives_its_tensor():
    array = penstock.tensor(np.arange(1000)).numpy()[10:20]
    gc.collect()
    assert array.tolist() == list(range(10, 20))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_small_floats(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([0, 1, -1.5, 0.25, np.inf if name != "float8_e4m3fn" else 448], getattr(ml_dtypes, name))
    t = penstock.tensor(array)
    assert t.dtype == name
    assert t.numpy().dtype == array.dtype
    assert t.numpy().tobytes() == array.tobytes()
    assert t.tolist() == array.astype("f4").tolist()
    assert t[1].item() == 1.0
    assert np.asarray(t).dtype == array.dtype


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "int4"])
def test_types_that_lie_unpacked_in_numpy_are_bytes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([0, 1, 2, 1], getattr(ml_dtypes, name))
    tensor = penstock.asarray(array)
    assert tensor.shape == (4,)
    assert tensor.nbytes == array.nbytes
    assert tensor.view_bytes().numpy().tobytes() == array.tobytes()


def test_small_floats_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    t = penstock.tensor([1.0, 2.0], "bfloat16")
    with pytest.raises(TypeError, match=r"ml_dtypes.*float32.*view_bytes"):
        t.numpy()
    assert t.view_bytes().shape == (2, 2)
    assert t.view_bytes().numpy().tobytes() == b"\x80\x3f\x00\x40"


INDICES = st.one_of(
    st.integers(-4, 3), st.slices(4).filter(lambda s: s.step is None or s.step > 0), st.just(Ellipsis), st.none()
)


@given(st.lists(INDICES, max_size=5).map(tuple))
def test_indexing_as_numpy(key):
    array = np.arange(2 * 3 * 4, dtype="i4").reshape(2, 3, 4)
    t = penstock.tensor(array)
    try:
        expected = array[key]
    except IndexError:
        with pytest.raises(IndexError):
            t[key]
        return
    found = t[key]
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()


@given(
    npst.arrays(npst.scalar_dtypes().filter(lambda d: d.kind in "biuf" and d.isnative), npst.array_shapes(max_dims=3))
)
def test_lists_as_numpy(array):
    assert repr(penstock.tensor(array).tolist()) == repr(array.tolist())


def test_views_share_memory():
    t = penstock.tensor(np.zeros((3, 4)))
    t[1, 1:3].numpy()[:] = 7
    assert t.tolist()[1] == [0, 7, 7, 0]
    assert t[:, ::2].strides == (4, 2)
    assert not t[:, ::2].is_contiguous()
    assert t[:, ::2].contiguous().strides == (2, 1)
    assert t.reshape(2, -1).shape == t.reshape((2, 6)).shape == (2, 6)
    assert t.transpose(0, 1).shape == (4, 3) == t.permute(1, 0).shape
    assert t.transpose(0, -1).tolist() == t.numpy().T.tolist()


def test_rows_iterate():
    t = penstock.tensor([[1, 2], [3, 4]])
    assert len(t) == 2
    assert [row.tolist() for row in t] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        len(t[0, 0])
    with pytest.raises(TypeError):
        iter(t[0, 0])


def test_numbers():
    t = penstock.tensor([[2.5]])
    assert float(t) == 2.5
    assert int(t) == 2
    assert complex(t) == 2.5
    assert bool(t)
    assert not penstock.tensor(0)
    assert [10, 20, 30][penstock.tensor(1)] == 20
    with pytest.raises(TypeError):
        [10, 20][t]
    for call in (float, int, bool, lambda x: x.item()):
        with pytest.raises(ValueError, match="one element"):
            call(penstock.tensor([1, 2]))


def test_numpy_integers_index():
    t = penstock.tensor([10, 20, 30])
    assert t[np.int64(1)].item() == 20
    assert t[penstock.tensor(2)].item() == 30
    assert t[np.uint8(0) :].tolist() == [10, 20, 30]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "int8", "uint16", "bool", "complex64"])
def test_conversion(name):
    t = penstock.tensor([[0, 1], [2, 3]])
    converted = t.to(name)
    assert converted.dtype == name
    assert t.to("int64") is not None
    assert t.dtype == "int64"
    assert converted.to("int64").tolist() == ([[0, 1], [1, 1]] if name == "bool" else t.tolist())


def test_conversion_takes_other_spellings():
    torch = pytest.importorskip("torch")
    t = penstock.tensor([1, 2])
    for spelling in ("float16", "half", torch.float16, np.float16, np.dtype("f2"), penstock.DType("float16")):
        assert t.to(spelling).dtype == "float16"
    assert t.to(float).dtype == "float64"
    assert t.to(torch.device("cpu")).device == "cpu"
    assert t.to("cpu").numpy().ctypes.data == t.numpy().ctypes.data


def test_dtype_is_a_value():
    d = penstock.DType("float32")
    torch = pytest.importorskip("torch")
    assert d == "float32" == d
    assert d == torch.float32
    assert d == np.dtype("f4")
    assert d != "float64"
    assert d != torch.float64
    assert d != 3
    assert {d: 1}["float32"] == 1
    assert repr(d) == "penstock.DType('float32')"
    assert str(d) == "float32"
    assert (d.itemsize, d.is_floating, d.is_complex, d.is_integer, d.is_signed) == (4, True, False, False, True)
    for array in (example("<U3"), example(OTHERS[-1]), example("<M8[s]"), example("f4")):
        dtype = penstock.tensor(array).dtype
        assert pickle.loads(pickle.dumps(dtype)) == dtype
        assert hash(pickle.loads(pickle.dumps(dtype))) == hash(dtype)


def test_device_is_a_value():
    device = penstock.tensor([1]).device
    assert device == "cpu" == str(device)
    assert device == penstock.device.Device("cpu")
    assert (device.type, device.index) == ("cpu", 0)
    assert device != "cuda:0"
    assert device != "nonsense"
    assert penstock.device.Device("cuda:1").index == 1
    assert pickle.loads(pickle.dumps(device)) == device


LISTS = {
    "nothing": [],
    "booleans": [True, False],
    "booleans and integers": [True, 2],
    "floats": [0.5, -1e300],
    "integers and floats": [[1, 0.5], [2**40 + 1, -0.0]],
    "complex": [3.5, 1j],
    "doubles": [np.float64(0.1), np.float64(2)],
    "doubles and floats": [np.float64(0.1), 0.1],
    "halves and integers": [np.float16(1), 1],
    "halves and floats": [np.float16(1), 0.1],
    "bytes": [np.int8(3), np.int8(-4)],
    "bytes and integers": [np.int8(3), 2],
    "bytes of both kinds": [np.int8(3), np.uint8(200)],
    "floats and bytes": [np.float32(1.5), np.int8(2)],
    "booleans of both": [np.bool_(True), False],
    "tuples": ((1, 2), [3, 4]),
    "arrays": [np.arange(3, dtype="f4"), np.ones(3, "i2")],
    "arrays and lists": [[np.arange(3)], [[1, 2, 3.5]]],
    "one number": 0.5,
    "one double": np.float64(3),
}


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy.ndarrays")
@pytest.mark.parametrize("name", LISTS)
def test_lists_become_what_torch_makes_of_them(name):
    torch = pytest.importorskip("torch")
    found, expected = penstock.tensor(LISTS[name]), torch.tensor(LISTS[name])
    assert f"torch.{found.dtype}" == str(expected.dtype)
    assert tuple(found.shape) == tuple(expected.shape)
    assert repr(found.tolist()) == repr(expected.tolist())


def test_long_lists_answer_ctrl_c(tmp_path):
    """Both ways; each takes seconds."""
    big = "x = penstock.zeros(20_000_000, dtype='int8')"
    answers_ctrl_c(tmp_path, big, "while True: x.tolist()")
    answers_ctrl_c(tmp_path, "x = [1] * 20_000_000", "while True: penstock.tensor(x)")


def test_from_lists():
    assert penstock.tensor([True, False]).dtype == "bool"
    assert penstock.tensor([True, 2]).tolist() == [1, 2]
    assert penstock.tensor([1, 2j]).tolist() == [1, 2j]
    assert penstock.tensor(3).shape == ()
    assert penstock.tensor([]).shape == (0,)
    assert penstock.tensor([[], []]).shape == (2, 0)
    assert penstock.tensor((1, 2), "int8").dtype == "int8"
    assert penstock.tensor([2**64 - 1], "uint64").tolist() == [2**64 - 1]
    for dtype in ("float16", "float32", "float64"):
        many = [2**53 + 1, 2**64, -(2**70), 16777217, 3]
        with np.errstate(over="ignore"):
            assert penstock.tensor(many, dtype).tolist() == np.array(many, "f8").astype(dtype).tolist()
    with pytest.raises(penstock.InvalidArgumentError, match="9223372036854775808 does not fit int64"):
        penstock.tensor([2**63])
    with pytest.raises(penstock.InvalidArgumentError, match="-1 does not fit uint64"):
        penstock.tensor([-1], "uint64")
    assert penstock.tensor([penstock.tensor(1.5), 2]).tolist() == [1.5, 2]
    assert penstock.tensor([np.float32(1.5), np.int8(2)]).tolist() == [1.5, 2]
    assert penstock.tensor(bytearray(b"ab")).tolist() == [97, 98]
    assert penstock.tensor(np.int16(5)).dtype == "int16"
    with pytest.raises(ValueError, match="128 does not fit int8"):
        penstock.tensor([128], "int8")
    with pytest.raises(TypeError, match="str"):
        penstock.tensor(["a"])


def test_arrays_without_dimensions_are_numbers_of_a_list():
    mask = penstock.tensor([True, False, True])
    for made in (penstock.tensor, penstock.asarray, lambda values: penstock.rows(values)[:]):
        assert made(list(mask)).tolist() == [True, False, True]
    assert penstock.tensor([[True, mask[1]], [mask[0], False]]).tolist() == [[True, False], [True, False]]
    assert penstock.tensor([2, mask[0]]).tolist() == [2, 1]
    for number in (True, False, 7, 1.5, 2 + 1j):
        for leaf in (penstock.tensor(number), np.array(number)):
            assert penstock.tensor([leaf, leaf]).tolist() == [number, number]
            assert penstock.tensor([leaf, leaf], "complex128").tolist() == [number, number]
    with pytest.raises(TypeError, match="bytes"):
        penstock.tensor([np.array(b"text")])


def test_tensor_copies_what_it_is_made_of():
    array = np.arange(3)
    t = penstock.tensor(array)
    array[0] = 100
    assert t.tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", NUMERIC + OTHERS, ids=str)
def test_copies_and_pickles(dtype):
    t = penstock.tensor(example(dtype))[:, 1:]
    for other in (copy.deepcopy(t), pickle.loads(pickle.dumps(t)), t.clone()):
        assert other.equal(t)
        assert other.is_contiguous()
        assert not np.shares_memory(other.numpy(), t.numpy())
    assert np.shares_memory(copy.copy(t).numpy(), t.numpy())


def test_equal():
    t = penstock.tensor([1.0, float("nan")])
    assert t.equal(t.clone())
    assert t.equal(np.array([1.0, np.nan], "f4"))
    assert not t.equal(t.to("float64"))
    assert not t.equal(penstock.tensor([1.0, 2.0]))
    assert not t.equal("text")
    assert (t == t.clone()).tolist() == [True, False]  # element by element
    assert len({t, t, t.clone()}) == 2


def test_buffers():
    t = penstock.tensor(np.arange(6, dtype="i4").reshape(2, 3))
    view = memoryview(t)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 3), (12, 4), "i", False)
    assert view.tolist() == t.tolist()
    assert bytes(t) == t.tobytes()
    view[1, 1] = 99
    assert t[1, 1].item() == 99
    with pytest.raises(BufferError, match="contiguous"):
        memoryview(t[:, ::2]).cast("B")[:] if False else bytes_of_simple(t[:, ::2])
    with pytest.raises(BufferError, match="view_bytes"):
        memoryview(penstock.tensor([1.0], "bfloat16"))


def bytes_of_simple(t):
    import hashlib

    return hashlib.sha256(t).digest()  # asks for a contiguous buffer


def test_buffers_of_ctypes():
    """They tell no strides."""
    rows = (ctypes.c_int16 * 3 * 2)((1, 2, 3), (4, 5, 6))
    for take in (penstock.asarray, penstock.tensor):
        assert take(rows).tolist() == [[1, 2, 3], [4, 5, 6]]
    penstock.asarray(rows)[1].numpy()[:] = 7
    assert list(rows[1]) == [7, 7, 7]
    assert penstock.asarray(ctypes.c_double(1.5)).tolist() == 1.5
    assert penstock.asarray((ctypes.c_uint8 * 0)()).shape == (0,)
    assert penstock.rows((ctypes.c_float * 2)(1, 2))[1].item() == 2


def test_buffers_keep_memory():
    view = memoryview(penstock.tensor(np.arange(1000)))
    gc.collect()
    assert view[999] == 999


def test_memory_of_arrays_is_released():
    array = np.arange(10)
    ref = weakref.ref(array)
    t = penstock.from_dlpack(array)
    view = t[2:4]
    del array, t
    gc.collect()
    assert ref() is not None
    assert view.tolist() == [2, 3]
    del view
    gc.collect()
    assert ref() is None


def test_weak_references():
    t = penstock.tensor([1])
    ref = weakref.ref(t)
    del t
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([[1, 2], [3, 40]], "penstock.Tensor([[ 1,  2],\n                 [ 3, 40]], dtype=int64)"),
        ([1.0, 2.0], "penstock.Tensor([1., 2.], dtype=float32)"),
        ([1.5, -2.25], "penstock.Tensor([ 1.5000, -2.2500], dtype=float32)"),
        ([1e-6, 1.0], "penstock.Tensor([1.0000e-06, 1.0000e+00], dtype=float32)"),
        ([True, False], "penstock.Tensor([ True, False], dtype=bool)"),
        (7, "penstock.Tensor(7, dtype=int64)"),
        ([], "penstock.Tensor([], shape=(0,), dtype=float32)"),
        ([1 + 2j], "penstock.Tensor([1.+2.j], dtype=complex64)"),
        ([float("nan"), float("inf")], "penstock.Tensor([nan, inf], dtype=float32)"),
    ],
    ids=str,
)
def test_repr(data, text):
    assert repr(penstock.tensor(data)) == text


def test_repr_of_what_is_no_value():
    negative_nan = np.array([-np.nan, np.copysign(np.nan, -1)], "f4")
    assert repr(penstock.tensor(negative_nan)) == "penstock.Tensor([nan, nan], dtype=float32)"
    texts = penstock.tensor(np.array([0xFFFFFFFF, ord("a")], "u4").view("U1"))
    assert repr(texts) == "penstock.Tensor([<no text>,       'a'], dtype=str32)"
    with pytest.raises(penstock.CorruptError, match=r"not a Unicode code point; take \.view_bytes"):
        texts.tolist()


def test_repr_of_long_and_odd_tensors():
    text = repr(penstock.tensor(np.arange(3000).reshape(100, 30)))
    assert "..." in text
    assert len(text) < 700
    assert "2999" in text
    assert repr(penstock.tensor(np.array(["a", "b"]))) == "penstock.Tensor(['a', 'b'], dtype=str32)"
    structured = penstock.tensor(np.zeros(2, [("a", "<f4")]))
    assert repr(structured) == "penstock.Tensor(shape=(2,), dtype=[('a', '<f4')])"
    assert len(repr(penstock.tensor(np.zeros((7,) * 8, "u1")))) < 200
    assert "bfloat16" in repr(penstock.tensor(np.ones(5000)).to("bfloat16"))


def test_array_protocol():
    t = penstock.tensor([[1, 2], [3, 4]])
    assert np.asarray(t).ctypes.data == t.numpy().ctypes.data
    assert np.array(t).ctypes.data != t.numpy().ctypes.data
    assert np.asarray(t, dtype="f4").dtype == "f4"
    assert (np.add(t, 1) == [[2, 3], [4, 5]]).all()
    assert np.asarray(penstock.tensor(example("<U7"))).tolist() == example("<U7").tolist()


def test_foreign_layouts():
    base = np.arange(24).reshape(4, 6)
    for array in (
        base[::-1],
        base[:, ::-2],
        base.T,
        np.asfortranarray(base),
        np.broadcast_to(base[0], (3, 6)),
        base[1:1],
    ):
        assert penstock.tensor(array).tolist() == array.tolist()
    fields = np.zeros(3, [("a", "u1"), ("b", "<f4")])
    fields["b"] = [1, 2, 3]
    assert penstock.tensor(fields["b"]).tolist() == [1, 2, 3]
    assert penstock.tensor(np.array([1, 2], ">i4")).tolist() == [1, 2]
    assert penstock.tensor(np.array(["ab"], ">U2")).tolist() == ["ab"]
    with pytest.raises(penstock.UnsafeError):
        penstock.tensor(np.array([{}]))


@pytest.mark.parametrize("spec", ["", ".2f", "08.3f", "e"])
def test_formats_numbers_as_torch_does(spec):
    torch = pytest.importorskip("torch")
    assert format(penstock.tensor(2.345), spec) == format(torch.tensor(2.345), spec)
    assert f"{penstock.ones(2)}" == repr(penstock.ones(2))
    with pytest.raises(TypeError):
        format(penstock.ones(2), ".2f")


class OtherLength(list):
    """Says that it has two elements, whatever it gives."""

    def __len__(self):
        return 2


@pytest.mark.parametrize("given", [0, 1, 3, 5000])
def test_lists_that_give_something_else_than_they_say_are_refused(given):
    lists = OtherLength(range(given))
    if given == 0:
        with pytest.raises(IndexError):
            penstock.tensor(lists)
        return
    with pytest.raises(penstock.ShapeMismatchError, match=f"found {given} values? in lists whose lengths promise"):
        penstock.tensor(lists)


def test_strides_of_another_length_than_the_shape_are_refused():
    class Odd:
        __array_interface__ = {  # noqa: RUF012 - as the protocol has it
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (np.zeros(6, "f4").ctypes.data, False),
            "strides": (12,),
            "version": 3,
        }

    with pytest.raises(penstock.InvalidArgumentError, match="found 1 stride of an array of 2 dimensions"):
        penstock.asarray(Odd())
