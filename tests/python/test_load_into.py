"""`penstock.load_into`: files read into memory that is there already."""

import array

import numpy as np
import pytest

import penstock

W, B = np.arange(6, dtype="f4").reshape(2, 3), np.array([7.0, 8.0], "f4")
STATE = {"layers": [{"w": W}, {"w": W + 10}], "b": B, "step": 5}


@pytest.fixture
def path(tmp_path):
    penstock.save(STATE, tmp_path / "x.pt")
    return tmp_path / "x.pt"


def target(make=lambda a: np.zeros(a.shape, a.dtype)):
    return {"layers": [{"w": make(W)}, {"w": make(W)}], "b": make(B), "step": 0}


def listed(value):
    return value.tolist()


MAKERS = {
    "numpy": lambda a: np.zeros(a.shape, a.dtype),
    "float64": lambda a: np.zeros(a.shape, "f8"),
    "fortran": lambda a: np.zeros(a.shape, a.dtype, order="F"),
    "big-endian": lambda a: np.zeros(a.shape, ">f4"),
    "reversed": lambda a: np.zeros(a.shape, a.dtype)[::-1],
    "every second": lambda a: np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)[..., ::2],
    "penstock": lambda a: penstock.zeros(a.shape),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_nested_targets_are_filled_at_any_depth(path, kind):
    into = target(MAKERS[kind])
    places = into["layers"][1]["w"], into["b"]
    assert penstock.load_into(into, path) == ([], [])
    assert listed(places[0]) == (W + 10).tolist()
    assert listed(into["layers"][0]["w"]) == W.tolist()
    assert listed(places[1]) == B.tolist()
    assert into["step"] == 5


def test_torch_tensors_and_buffers_are_filled(path):
    torch = pytest.importorskip("torch")
    into = target(lambda a: torch.zeros(a.shape))
    penstock.load_into(into, str(path))
    assert into["layers"][1]["w"].tolist() == (W + 10).tolist()
    for lazy in (torch.zeros(2, dtype=torch.complex64).conj(), torch.zeros(1).expand(2)):
        with pytest.raises(penstock.Error, match="b: "):
            penstock.load_into(target() | {"b": lazy}, path)
    room = array.array("f", [0, 0])
    penstock.load_into(target() | {"b": room}, path)
    assert list(room) == B.tolist()


def test_flat_files_fill_nested_targets(tmp_path):
    names = {"layers.0.w": W, "layers.1.w": W + 10, "b": B}
    for name in ("x.safetensors", "x.npz"):
        penstock.save(names, tmp_path / name)
        into = {key: value for key, value in target().items() if key != "step"}
        assert penstock.load_into(into, tmp_path / name) == ([], [])
        assert into["layers"][1]["w"].tolist() == (W + 10).tolist()
        flat = {key: np.zeros_like(value) for key, value in names.items()}
        penstock.load_into(flat, tmp_path / name)
        assert flat["layers.1.w"].tolist() == (W + 10).tolist()


def test_one_array_is_filled_by_the_only_tensor(tmp_path):
    penstock.save(W, tmp_path / "x.npy")
    penstock.save({"w": W}, tmp_path / "x.npz")
    for name in ("x.npy", "x.npz"):
        into = np.zeros_like(W)
        penstock.load_into(into, tmp_path / name)
        assert into.tolist() == W.tolist()
        penstock.load_into(into * 0, (tmp_path / name).read_bytes())


def test_targets_of_another_kind_are_called_what_they_are(path):
    with pytest.raises(penstock.KeyNotFoundError, match=r"holds layers\.0\.w, .*key="):
        penstock.load_into(np.zeros(2), path)
    for target in ("x.pt", 5, None):
        with pytest.raises(TypeError, match=f"a target of type {type(target).__name__}"):
            penstock.load_into(target, path)
    b = np.zeros(2)
    penstock.load_into(b, path, key="b")
    assert b.tolist() == B.tolist()


def test_what_does_not_fit_is_named_by_its_path_and_nothing_is_touched(path):
    cases = [
        (lambda t: t["layers"][1].update(x=np.zeros(1)), penstock.KeyNotFoundError, r"has no layers\.1\.x"),
        (lambda t: t["layers"].pop(), penstock.KeyNotFoundError, r"no place for layers\.1\.w"),
        (
            lambda t: t["layers"][1].update(w=np.zeros(6, "f4")),
            penstock.ShapeMismatchError,
            r"layers\.1\.w: .*\(2, 3\)",
        ),
        (lambda t: t["layers"][1].update(w=4), penstock.DTypeMismatchError, r"layers\.1\.w: .*has a tensor"),
        (lambda t: t.update(step=np.zeros(())), penstock.DTypeMismatchError, "step: .*type int"),
        (lambda t: t.update(b=np.broadcast_to(B * 0, (2,))), penstock.DTypeMismatchError, "b: .*read-only"),
    ]
    for change, kind, message in cases:
        into = target()
        change(into)
        with pytest.raises(kind, match=message):
            penstock.load_into(into, path)
        assert not into["layers"][0]["w"].any()
    with pytest.raises(penstock.KeyNotFoundError, match=r"b, step|layers"):
        penstock.load_into({}, path)


def test_not_strict_tells_what_is_left(path):
    into = target()
    into["new"] = np.full(2, 9.0)
    into["layers"].pop()
    told = penstock.load_into(into, path, strict=False)
    assert told == (["new"], ["layers.1.w"])
    assert told.missing_keys == ["new"]
    assert into["new"].tolist() == [9, 9]
    assert into["b"].tolist() == B.tolist()
    into["b"] = np.zeros(3)
    with pytest.raises(penstock.ShapeMismatchError):
        penstock.load_into(into, path, strict=False)


def test_none_takes_what_the_file_has_and_tuples_keep_their_numbers(tmp_path):
    penstock.save({"a": W, "t": (W, 3)}, tmp_path / "x.pt")
    into = {"a": None, "t": (np.zeros_like(W), 3)}
    penstock.load_into(into, tmp_path / "x.pt")
    assert into["a"].tolist() == into["t"][0].tolist() == W.tolist()
    with pytest.raises(penstock.DTypeMismatchError, match=r"t\.1: .*use a list"):
        penstock.load_into({"a": None, "t": (np.zeros_like(W), 4)}, tmp_path / "x.pt")


def test_places_that_share_memory_are_filled_in_their_order(path):
    shared = np.zeros_like(W)
    into = target()
    into["layers"][0]["w"] = into["layers"][1]["w"] = shared
    penstock.load_into(into, path)
    assert shared.tolist() == (W + 10).tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["u1", "i4", "f2", "?"])
def test_values_are_converted_in_one_way_wherever_they_lie(tmp_path, dtype):
    path = tmp_path / "x.npy"
    np.save(path, np.array([np.nan, 300.5, -1.5, 1e10, 1e300, 2]))
    plain, turned = np.zeros(6, dtype), np.zeros(6, dtype)
    penstock.load_into(plain, path)
    penstock.load_into(turned[::-1], path)  # without a warning of NumPy's
    assert np.array_equal(plain, turned[::-1], equal_nan=dtype == "f2")
