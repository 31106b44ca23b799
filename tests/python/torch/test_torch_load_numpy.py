"""NumPy's objects in a `.pt`: what torch.load gives when their classes are allowed, with nothing allowed."""

from __future__ import annotations

import pickle
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import penstock
import penstock.torch as pt

STRUCTURE = np.dtype([("a", "<i4"), ("b", ">f8", (2,)), ("c", "S3")])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.pt"


def same(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(theirs, (np.ndarray, np.generic)):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.strides == theirs.strides or 0 in theirs.shape or 1 in theirs.shape
        if theirs.dtype.hasobject:
            for x, y in zip(ours.ravel(), theirs.ravel(), strict=True):
                same(x, y)
        else:
            assert ours.tobytes() == theirs.tobytes()
    elif isinstance(theirs, torch.Tensor):
        assert torch.equal(ours, theirs)
    elif isinstance(theirs, (list, tuple)):
        for x, y in zip(ours, theirs, strict=True):
            same(x, y)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        same(list(ours.values()), list(theirs.values()))
    else:
        assert ours == theirs


def check(value, path, **options):
    torch.save(value, path, **options)
    same(pt.load(path), torch.load(path, weights_only=False))
    return pt.load(path)


TEXTS = ["text", "", "\u00e9\u4e2d\U0001f600", "a\0b", "x" * 100]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("text", TEXTS, ids=len)
def test_text_of_numpys_is_text_of_each_load(tmp_path, text, order):
    path = tmp_path / "x.pt"
    value = np.array([text], f"{order}U{max(len(text), 1) + 2}")[0]
    check({"a": value, value: [value]}, path)
    loaded = penstock.load(path)
    assert loaded == {"a": text, text: [text]}
    assert type(loaded["a"]) is str


def test_text_that_is_no_unicode_stays_as_it_lies(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(np.array([0xD800], "<u4").view("<U1")[0], path)
    assert isinstance(penstock.load(path), penstock.Opaque)
    assert pt.load(path) == torch.load(path, weights_only=False) == "\ud800"


ARRAYS = {
    "c order": lambda: np.arange(6, dtype=np.float32).reshape(2, 3),
    "fortran order": lambda: np.asfortranarray(np.arange(6).reshape(2, 3)),
    "a view": lambda: np.arange(20).reshape(4, 5)[::2, 1:4],
    "big-endian long doubles": lambda: np.arange(4).astype(">f16"),
    "text without width": lambda: np.ndarray((2, 3), "S0"),
    "big-endian": lambda: np.arange(4, dtype=">i4"),
    "big-endian fortran": lambda: np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)),
    "no dimensions": lambda: np.array(3.5),
    "no elements": lambda: np.empty((2, 0, 3), np.int16),
    "bool": lambda: np.array([True, False]),
    "half": lambda: np.array([1, 65504, np.inf, np.nan], np.float16),
    "complex": lambda: np.array([1 + 2j], np.complex64),
    "text": lambda: np.array(["a", "\u00e4\U0001f600", ""]),
    "bytes": lambda: np.array([b"a", b"", b"abc"]),
    "void": lambda: np.array([b"abc"], "V3"),
    "dates": lambda: np.array(["2020-01-01", "NaT"], "M8[D]"),
    "counted dates": lambda: np.array([1, 2], "M8[25s]"),
    "durations": lambda: np.array([1, -2], ">m8[ns]"),
    "generic durations": lambda: np.array([1, -2], "m8"),
    "structure": lambda: np.array([(1, (2, 3), b"x"), (4, (5, 6), b"yz")], STRUCTURE),
    "fortran structure": lambda: np.zeros((2, 3), STRUCTURE, order="F"),
    "nested structure": lambda: np.zeros(2, [("s", STRUCTURE), ("t", "U2")]),
    "aligned": lambda: np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True)),
    "long double": lambda: np.array([1.5], np.longdouble),
    "objects": lambda: np.array([1, "x", None, [2, np.float32(3)]], object),
    "objects fortran": lambda: np.array([[1, 2], [3, "x"]], object, order="F"),
    "itself twice": lambda: (lambda x: [x, x])(np.arange(3)),
}


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(path, name, protocol, zipped):
    loaded = check([ARRAYS[name]()], path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)[0]
    if name == "itself twice":
        assert loaded[0] is loaded[1]
    elif loaded.size and not loaded.dtype.hasobject:
        assert loaded.flags.writeable
        loaded[...] = np.zeros((), loaded.dtype)


@pytest.mark.parametrize("code", ["f2", "f4", "f8", "c8", "c16"])
def test_every_nan_keeps_its_bits(path, code):
    width = {"f2": 2, "f4": 4, "f8": 8, "c8": 4, "c16": 8}[code]
    fraction = {2: 10, 4: 23, 8: 52}[width]
    exponent = (1 << (8 * width - 1)) - (1 << fraction)
    for bits in (1, 1 << (fraction - 1), (1 << fraction) - 1, (1 << (fraction - 1)) + 5):
        for sign in (0, 1 << (8 * width - 1)):
            raw = (sign | exponent | bits).to_bytes(width, "little")
            for whole in [raw] if code[0] == "f" else [raw + raw, raw + np.float32(1.5).astype(f"f{width}").tobytes()]:
                scalar = np.frombuffer(whole, code)[0]
                torch.save({"lowest": scalar}, path)
                loaded = pt.load(path)["lowest"]
                assert (loaded.dtype, loaded.tobytes()) == (scalar.dtype, whole)


def test_scalars(path):
    scalars = [np.dtype(code).type(3) for code in "?bBhHiIlLqQefdFD"]
    scalars += [np.float32("nan"), np.float16("inf"), np.float64(-0.0), np.uint64(2**64 - 1), np.bytes_(b"ab")]
    scalars += [np.str_("\u00e4b"), np.datetime64("2020-01-01"), np.timedelta64(3, "ms"), np.longdouble(1.25)]
    scalars += [np.array([(1, (2, 3), b"x")], STRUCTURE)[0], np.void(b"abc")]
    check(scalars, path)
    check({np.int64(3): np.float32(2)}, path)


def test_dtypes(path):
    check([np.dtype(code) for code in ("f4", ">i2", "U5", "M8[us]", "O", "?", "V7")] + [STRUCTURE], path)


def test_beside_tensors(path):
    value = {"x": torch.arange(4), "a": np.arange(3), "deep": [np.float64(0.5), {"v": torch.ones(2)[1:]}]}
    for options in ({}, {"map_location": "cpu"}, {"mmap": True}, {"map_location": lambda s, _: s}):
        torch.save(value, path)
        same(pt.load(path, **options), torch.load(path, weights_only=False, **options))
    loaded = pt.load(path, "meta")
    assert loaded["x"].is_meta
    assert isinstance(loaded["a"], np.ndarray)


def test_allowed_globals_make_torch_give_the_same(path):
    value = [np.arange(3, dtype=np.float32), np.float64(2)]
    torch.save(value, path)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path)
    numpy = [np.ndarray, np.dtype, np.dtypes.Float32DType, np.dtypes.Float64DType]
    core = np._core if hasattr(np._core, "multiarray") else np.core  # as it is called before NumPy 2
    with torch.serialization.safe_globals(
        [*numpy, core.multiarray._reconstruct, core.multiarray.scalar, core.numeric._frombuffer]
    ):
        same(pt.load(path), torch.load(path))


def test_optimizers_and_loss_histories(path):
    """What schedulers keep: NumPy's scalars in dicts and lists."""
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=np.float64(0.5))
    loaded = check({"optimizer": optimizer.state_dict(), "best": np.inf, "losses": [np.float32(1.5)]}, path)
    torch.optim.SGD(model.parameters(), lr=1.0).load_state_dict(loaded["optimizer"])


class Own(np.ndarray):
    pass


def test_other_classes_are_named(path):
    torch.save([np.arange(3).view(Own)], path)
    with pytest.raises(pt.UnknownGlobalsError, match="Own"):
        pt.load(path)


def changed(path, old, new):
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            if name.endswith("data.pkl"):
                assert old in data
                data = data.replace(old, new)
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"K\x04\x85", b"K\x05\x85"),  # more elements than bytes
        (b"K\x0cK\x01", b"K\x03K\x01"),  # a structure smaller than its fields
        (b"K\x04\x86", b"K\x7f\x86"),  # a field outside of it
        (b"\x02\x00\x00\x00i4", b"\x02\x00\x00\x00zz"),
        (b"\x02\x00\x00\x00i4", b"\x02\x00\x00\x00O8"),
    ],
    ids=["shape", "size", "offset", "no dtype", "objects"],
)
def test_structures_that_do_not_fit_are_refused(path, old, new):
    torch.save(np.zeros(4, np.dtype([("a", "<i4"), ("b", "<f8")])), path)
    changed(path, old, new)
    with pytest.raises(penstock.Error, match=r"numpy\.ndarray|numpy\.dtype"):
        pt.load(path)
    assert isinstance(pt.load(path, unknown="keep"), penstock.Opaque)


class Parts:
    """A call of NumPy's own with parts that it does not take."""

    def __init__(self, call, arguments, state):
        self.parts = call, arguments, state

    def __reduce__(self):
        return self.parts


@pytest.mark.parametrize(
    "parts",
    [
        (np.dtype, ("M8", False, True), (4, "<", None, None, None, -1, -1, 0, None)),
        (np.dtype, ("V8", False, True), (3, "|", None, ("a",), None, 8, 1, 0)),
        (np.dtype, ("V8", False, True), (3, "|", None, ("a",), {}, 8, 1, 0)),
    ],
)
def test_parts_of_other_kinds_are_refused_in_plain_words(path, parts):
    torch.save(Parts(*parts), path)
    with pytest.raises(penstock.UnsupportedError, match=r"numpy\.dtype \(its parts are of other kinds"):
        pt.load(path)


SCALAR = np.float64(1).__reduce__()[0]
FROM_BUFFER = np.ones(1).__reduce_ex__(5)[0]


class Array(Parts):
    """An array by its state, as protocol 2 has it."""

    def __init__(self, *state):
        super().__init__(*np.ones(1).__reduce__()[:2], state)


@pytest.mark.parametrize(
    "value",
    [
        Parts(SCALAR, (np.dtype("g"), 1 << 38), None),
        Parts(FROM_BUFFER, (1 << 38, np.dtype("g"), (3,), "C"), None),
        Array(1, (3,), np.dtype("g"), False, 1 << 38),
        Parts(np.bytes_, (1 << 38,), None),
        Parts(np.float32, ([1.0, 2.0],), None),
    ],
    ids=["scalar", "buffer", "array", "bytes", "list"],
)
def test_numbers_in_place_of_bytes_become_no_zeros(path, value):
    """bytes(N) would be that many."""
    torch.save([value], path)
    with pytest.raises(penstock.UnsupportedError, match=r"numpy\..*its parts are of other kinds"):
        pt.load(path)
    assert isinstance(pt.load(path, unknown="keep")[0], penstock.Opaque)


@pytest.mark.parametrize("order", "<>")
def test_texts_of_no_characters(path, order):
    torch.save(Parts(SCALAR, (np.dtype(f"{order}U1"), np.array([0x110000], f"{order}u4").tobytes()), None), path)
    with pytest.raises(penstock.UnsupportedError, match=r"numpy\.core\.multiarray\.scalar .*not a Unicode code point"):
        pt.load(path)
    torch.save(Parts(SCALAR, (np.dtype(f"{order}U1"), np.array([0x10FFFF], f"{order}u4").tobytes()), None), path)
    assert pt.load(path) == "\U0010ffff"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    array=hnp.arrays(
        hnp.array_dtypes(max_size=3)
        | hnp.scalar_dtypes()
        | hnp.datetime64_dtypes()
        | hnp.unicode_string_dtypes()
        | hnp.byte_string_dtypes(),
        hnp.array_shapes(min_dims=0, min_side=0, max_side=3),
    ),
    protocol=st.sampled_from([2, 5]),
    fortran=st.booleans(),
)
def test_any_array(tmp_path_factory, array, protocol, fortran):
    path = tmp_path_factory.getbasetemp() / "any.pt"
    check([np.asfortranarray(array) if fortran and array.ndim else array, array.dtype], path, pickle_protocol=protocol)
