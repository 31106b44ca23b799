"""Penstock against torch itself: `.pt` of every layout, protocol, dtype and container."""

import sys
import types
import warnings
import zipfile

import numpy as np
import pytest
from pt_pairs import CONTAINERS, DTYPES, LAYOUTS, PROTOCOLS, SHAPES, assert_same, example, raw, save, sparse_parts

import penstock

torch = pytest.importorskip("torch")
warnings.simplefilter("ignore")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reads_every_dtype_and_shape(tmp_path, dtype, layout):
    state = {f"t{i}": example(dtype, shape, i) for i, shape in enumerate(SHAPES)}
    path = save(state, tmp_path / "x.pt", layout)
    assert_same(penstock.load(path), state)
    archive = penstock.open(path)
    assert archive.format == "pt"
    assert list(archive.keys()) == list(state)
    for name, tensor in state.items():
        assert tuple(archive[name].shape) == tuple(tensor.shape)
        assert tuple(archive[name].strides) == tensor.stride()
        assert_same(archive[name].load(), tensor)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", list(CONTAINERS))
def test_reads_every_container(tmp_path, name, protocol, layout):
    value = {"value": CONTAINERS[name], "tensor": torch.arange(3)}
    assert_same(penstock.load(save(value, tmp_path / "x.pt", layout, protocol)), value)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reads_bare_tensors(tmp_path, protocol, layout):
    tensor = example("float32", (3, 4))
    path = save(tensor, tmp_path / "x.pt", layout, protocol)
    assert_same(penstock.load(path), tensor)
    assert list(penstock.open(path).keys()) == ["tensor"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_stay_views(tmp_path, layout):
    base = torch.arange(24, dtype=torch.int32).reshape(4, 6)
    views = [base, base.T, base[1:3], base[:, 2], base[::2, ::3], base[2:2], base[1, 1].expand(5, 5)]
    path = save(views, tmp_path / "x.pt", layout)
    loaded = penstock.load(path)
    assert_same(loaded, views)
    for ours, theirs in zip(loaded, views, strict=True):
        assert tuple(ours.strides) == theirs.stride()
    assert [tuple(e.strides) for e in map(penstock.open(path).__getitem__, "0123456")] == [v.stride() for v in views]
    memory = loaded[0].numpy()
    assert np.shares_memory(memory, loaded[1].numpy())
    assert np.shares_memory(memory, loaded[3].numpy())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lazy_bits_are_applied(tmp_path, layout):
    z = torch.view_as_complex(torch.arange(8, dtype=torch.float32).reshape(4, 2))
    for value in (z.conj(), z.conj().imag, z[::2].conj(), z.reshape(2, 2).T.conj()):
        loaded = penstock.load(save([value, torch.ones(1)], tmp_path / "x.pt", layout))
        assert raw(loaded[0]) == raw(value.resolve_conj().resolve_neg().contiguous())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parameters_and_subclasses(tmp_path, layout):
    class Tagged(torch.Tensor):
        pass

    tagged = torch.arange(3.0).as_subclass(Tagged)
    tagged.note = "hello"
    parameter = torch.nn.Parameter(torch.arange(4.0))
    parameter.extra = [1]
    module = types.SimpleNamespace(Tagged=Tagged)
    Tagged.__module__, Tagged.__qualname__ = "tagged", "Tagged"
    sys.modules["tagged"] = module
    path = save({"p": parameter, "t": tagged}, tmp_path / "x.pt", layout)
    loaded = penstock.load(path)
    assert raw(loaded["p"]) == raw(parameter)
    assert raw(loaded["t"]) == raw(tagged)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("protocol", [1, 2, 4, 5])
def test_numpy_inside(tmp_path, protocol, layout):
    arrays = {
        "c": np.arange(6).reshape(2, 3),
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big": np.arange(3, dtype=">i4"),
        "bool": np.array([True, False]),
        "zero": np.array(5, np.int16),
        "none": np.zeros((0, 3), np.float32),
        "complex": np.array([1 + 2j], np.complex64),
        "text": np.array(["ab", "cdé"]),
        "bytes": np.array([b"ab", b"c"]),
        "date": np.array(["2020-01-01", "NaT"], "M8[D]"),
        "delta": np.array([5], "m8[25us]"),
    }
    path = save(arrays, tmp_path / "x.pt", layout, protocol)
    loaded = penstock.load(path)
    for name, expected in arrays.items():
        ours = loaded[name].numpy()
        assert ours.shape == expected.shape
        assert ours.dtype == expected.dtype.newbyteorder("=")
        assert ours.tobytes() == expected.astype(expected.dtype.newbyteorder("=")).tobytes()
    scalars = {
        "b": np.bool_(True), "i": np.int8(-3), "u": np.uint64(2**64 - 1), "h": np.float16(1.5), "d": np.float64(0.1),
        "f": np.float32(0.1), "c": np.complex128(1 - 2j), "s": np.bytes_(b"xy"),
    }  # fmt: skip
    loaded = penstock.load(save(scalars, tmp_path / "s.pt", layout, protocol))
    for name, expected in scalars.items():
        assert loaded[name] == expected.item()


def test_objects_of_the_user_are_opaque_and_tensors_around_them_load(tmp_path):
    class Config:
        def __init__(self):
            self.size = 3
            self.weight = torch.arange(2)

    Config.__module__, Config.__qualname__ = "userconfig", "Config"
    sys.modules["userconfig"] = types.SimpleNamespace(Config=Config)
    path = save({"config": Config(), "w": torch.ones(2)}, tmp_path / "x.pt")
    del sys.modules["userconfig"]
    archive = penstock.open(path)
    assert list(archive.unknown_globals) == ["userconfig.Config"]
    assert list(archive.keys()) == ["config.weight", "w"]
    assert raw(archive["config.weight"].load()) == raw(torch.arange(2))
    assert_same(penstock.load(path)["w"], torch.ones(2))


def test_whole_modules_give_their_weights(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    archive = penstock.open(save(module, tmp_path / "x.pt"))
    assert_same(archive["_modules.0._parameters.weight"].load(), module[0].weight)
    assert_same(archive["_modules.1._buffers.running_var"].load(), module[1].running_var)


def test_torchscript_gives_its_weights(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    torch.jit.save(torch.jit.script(module), tmp_path / "x.pt")
    archive = penstock.open(tmp_path / "x.pt")
    for name, tensor in module.state_dict().items():
        assert_same(archive[name].load(), tensor)


def test_nothing_is_run(tmp_path):
    class Attack:
        def __reduce__(self):
            return (open, (str(tmp_path / "owned"), "w"))

    for layout in LAYOUTS:
        path = save([Attack(), torch.ones(2)], tmp_path / f"{layout}.pt", layout)
        # Where open lives is Python's to say: in _io since 3.12.
        assert list(penstock.open(path).unknown_globals) == [f"{open.__module__}.open"]
        assert_same(penstock.load(path)[1], torch.ones(2))
    assert not (tmp_path / "owned").exists()


def test_recursion(tmp_path):
    value = {"list": []}
    value["list"].append(value)
    value["list"].append(torch.ones(1))
    loaded = penstock.load(save(value, tmp_path / "x.pt"))
    assert loaded["list"][0] is loaded


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["coo", "hybrid", "csr", "csc", "bsr", "bsc"])
def test_parts_of_sparse_tensors(tmp_path, kind, layout):
    dense = torch.tensor([[0.0, 1, 0, 2], [3, 0, 0, 4]])
    make = {
        "coo": dense.to_sparse, "hybrid": lambda: torch.ones(3, 2).to_sparse(1), "csr": dense.to_sparse_csr,
        "csc": dense.to_sparse_csc, "bsr": lambda: dense.to_sparse_bsr((2, 2)),
        "bsc": lambda: dense.to_sparse_bsc((1, 2)),
    }  # fmt: skip
    tensor = make[kind]()
    archive = penstock.open(save({"s": tensor}, tmp_path / "x.pt", layout))
    for name, part in sparse_parts(tensor).items():
        assert raw(archive[f"s.{name}"].load()) == raw(part)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_of_quantized_tensors(tmp_path, layout):
    x = torch.arange(6.0).reshape(2, 3)
    per_tensor = torch.quantize_per_tensor(x, 0.5, 3, torch.qint8)
    per_channel = torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.5]), torch.tensor([1, 2, 3]), 1, torch.quint8)
    archive = penstock.open(save({"t": per_tensor, "c": per_channel}, tmp_path / "x.pt", layout))
    assert archive["t.values"].load().tobytes() == per_tensor.int_repr().numpy().tobytes()
    assert archive["c.values"].load().tobytes() == per_channel.int_repr().numpy().tobytes()
    assert archive["c.scales"].load().tolist() == per_channel.q_per_channel_scales().tolist()
    assert archive["c.zero_points"].load().tolist() == [1, 2, 3]


def test_parts_of_nested_tensors(tmp_path):
    tensor = torch.nested.nested_tensor([torch.arange(2.0), torch.arange(3.0)])
    archive = penstock.open(save(tensor, tmp_path / "x.pt"))
    assert archive["buffer"].load().tolist() == [0, 1, 0, 1, 2]
    assert archive["sizes"].load().tolist() == [[2], [3]]


def test_meta_tensors_have_no_data(tmp_path):
    path = save({"m": torch.empty(2, 3, device="meta"), "w": torch.ones(2)}, tmp_path / "x.pt")
    assert list(penstock.open(path).keys()) == ["w"]


@pytest.mark.parametrize(
    "dtype", ["int16", "int32", "int64", "float32", "float64", "complex64", "uint16", "uint8", "bool"]
)
def test_other_byte_order(tmp_path, dtype):
    tensor = example(dtype, (5,))
    original = zipfile.ZipFile(save(tensor, tmp_path / "x.pt"))
    width = tensor.element_size() // (2 if tensor.is_complex() else 1)
    with zipfile.ZipFile(tmp_path / "big.pt", "w") as out:
        for info in original.infolist():
            data = original.read(info)
            if info.filename.endswith("byteorder"):
                data = b"big"
            if "/data/" in info.filename and not info.filename.startswith("x/.data"):
                data = np.frombuffer(data, f"V{width}").view(np.uint8).reshape(-1, width)[:, ::-1].tobytes()
            out.writestr(info.filename, data)
    assert_same(penstock.load(tmp_path / "big.pt"), tensor)


@pytest.mark.parametrize("options", [{}, {"compression": zipfile.ZIP_DEFLATED}])
def test_archives_that_were_packed_anew(tmp_path, options):
    state = {"w": example("float32", (100, 10)), "v": example("int8", (3,))}
    original = zipfile.ZipFile(save(state, tmp_path / "x.pt"))
    with zipfile.ZipFile(tmp_path / "y.pt", "w", **options) as out:
        for info in original.infolist():
            out.writestr(info.filename, original.read(info))
    assert_same(penstock.load(tmp_path / "y.pt"), state)


def test_records_that_torch_left_empty(tmp_path):
    with torch.serialization.skip_data():
        path = save({"w": torch.arange(1000)}, tmp_path / "x.pt")
    assert_same(penstock.load(path), {"w": torch.zeros(1000, dtype=torch.int64)})


def test_checksums_that_torch_left_out(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        path = save({"w": torch.arange(1000)}, tmp_path / "x.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert_same(penstock.load(path), {"w": torch.arange(1000)})


def test_legacy_payload_is_read_by_offset(tmp_path):
    state = {f"t{i}": example("int16", (i,), i) for i in range(20)}
    archive = penstock.open(save(state, tmp_path / "x.pt", "legacy"))
    for i in range(1, 20):
        assert raw(archive[f"t{i}"][1:].load()) == raw(state[f"t{i}"][1:])
