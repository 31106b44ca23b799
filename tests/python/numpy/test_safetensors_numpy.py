"""penstock.numpy.safetensors against safetensors.numpy."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
peer = pytest.importorskip("safetensors.numpy")
import safetensors  # noqa: E402

import penstock.numpy as pn  # noqa: E402
from penstock.numpy import safetensors as ours  # noqa: E402

DTYPES = "? i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 c8 >f4 >i2".split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3, 4)], ids=str)
def test_every_dtype_both_ways(tmp_path, dtype, shape):
    count = int(np.prod(shape))
    arrays = {"x": (np.arange(count) % 2).reshape(shape).astype(dtype), "y": np.ones(3, dtype)}
    path = tmp_path / "x.safetensors"
    pn.save_file(arrays, path, {"k": "v"})
    assert path.read_bytes() == peer.save(arrays, {"k": "v"}) == ours.save(arrays, {"k": "v"})
    expected = peer.load_file(path)
    for loaded in (pn.load_file(path), ours.load(path.read_bytes())):
        assert list(loaded) == list(expected)
        for name, array in expected.items():
            assert type(loaded[name]) is np.ndarray
            assert loaded[name].dtype == array.dtype
            assert loaded[name].shape == array.shape
            assert loaded[name].tobytes() == array.tobytes()
            assert loaded[name].flags.writeable


def test_arrays_in_another_order_keep_their_values(tmp_path):
    array = np.arange(6.0).reshape(2, 3).T
    assert ours.load(ours.save({"a": array}))["a"].tolist() == array.tolist()


def test_arrays_that_share_memory_are_each_written(tmp_path):
    x = np.arange(6.0)
    arrays = {"a": x, "b": x, "c": x[2:4], "d": x[4:], "e": x[:0], "f": np.arange(3.0)}
    assert ours.save(arrays) == peer.save(arrays)
    pn.save_file(arrays, tmp_path / "x.safetensors")
    assert (tmp_path / "x.safetensors").read_bytes() == peer.save(arrays)
    assert arrays["b"] is x


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "x.safetensors"
    peer.save_file({"w": np.arange(24.0).reshape(2, 3, 4), "s": np.array(1.5)}, path)
    return path


KEYS = """0 | 1, 2 | -1 | ... | ..., 0 | 0:1 | 0:2:2 | :, ::2 | ::-1 | None | None, 0 | True | [0, 1] | :, [2, 0] |
"a" | np.array([0]) | 5 | 0, 0, 0 | 0, 0, 0, 0 | 1.0 | [0, 1], [1, 2] | [5] | [] | () | np.int64(1) | ..., ... |
:, ..., 0 | :, :, :, : | range(2)"""


@pytest.mark.parametrize("key", [key.strip() for key in KEYS.split("|")])
def test_slices_are_those_of_the_peer(model, key):
    names = {"np": np}
    with safetensors.safe_open(model, "np") as theirs, pn.safe_open(model, "numpy") as mine:
        try:
            expected = eval(f"view[{key}]", {"view": theirs.get_slice("w"), **names})
        except safetensors.SafetensorError:
            with pytest.raises(safetensors.SafetensorError):
                eval(f"view[{key}]", {"view": mine.get_slice("w"), **names})
            return
        found = eval(f"view[{key}]", {"view": mine.get_slice("w"), **names})
        assert found.shape == expected.shape
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("key", "count"), [("-1:", 1), ("0:100", 2), ("1:0", 0)])
def test_slices_that_the_peer_stumbles_over_are_those_of_python(model, key, count):
    with pn.safe_open(model, "np") as mine:
        assert len(eval(f"view[{key}]", {"view": mine.get_slice("w")})) == count


@pytest.mark.parametrize("dtype", ["F6_E2M3", "F128", ""])
def test_types_that_nobody_knows_are_a_safetensor_error(tmp_path, dtype):
    text = b'{"a":{"dtype":"%s","shape":[4],"data_offsets":[0,3]}}' % dtype.encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(3))
    for module in (peer, pn):
        with pytest.raises(safetensors.SafetensorError):
            module.load_file(path)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, p: m.save({"a": np.zeros(2, "S3")}),
        lambda m, p: m.save({"a": np.zeros(2, "M8[s]")}),
        lambda m, p: m.save({"a": np.zeros(2, "c16")}),
        lambda m, p: m.save({"a": np.zeros(4, pytest.importorskip("ml_dtypes").float6_e2m3fn)}),
        lambda m, p: m.save([1]),
        lambda m, p: m.save({"a": 3}),
        lambda m, p: m.save({1: np.ones(2)}),
        lambda m, p: m.save({"a": np.ones(2)}, {"k": 1}),
        lambda m, p: m.load(b"nonsense"),
        lambda m, p: m.load_file(p / "no"),
        lambda m, p: m.safe_open(p / "x.safetensors", "np", device="cuda:0").get_tensor("w"),
        lambda m, p: m.safe_open(p / "x.safetensors", "np").get_tensor("zz"),
    ],
)
def test_refusals_are_those_of_the_peer(model, call):
    with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever the peer raises
        call(peer, model.parent)
    with pytest.raises(expected.type):
        call(ours, model.parent)
