"""Penstock against torch itself: `.pt` of every layout, protocol, dtype and container, in both directions."""

import array
import io
import pickle
import struct
import sys
import types
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

import penstock

torch = pytest.importorskip("torch")
warnings.simplefilter("ignore")

DTYPES = [
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64",
    "complex32 complex64 complex128 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu",
    "float4_e2m1fn_x2 bits8 bits16",
]
DTYPES = " ".join(DTYPES).split()
SHAPES = [(), (1,), (7,), (3, 5), (0,), (2, 0, 3), (2, 3, 4, 5)]
LAYOUTS = ["zip", "legacy"]
PROTOCOLS = [1, 2, 3, 4, 5]


def example(dtype, shape, seed=0):
    """Random bits of a type."""
    torch_type = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(seed)
    if dtype == "bool":
        return torch.randint(0, 2, shape, generator=generator).bool()
    width = torch.empty((), dtype=torch_type).element_size()
    count = int(np.prod(shape, dtype=int))
    raw = torch.randint(0, 256, (count * width,), generator=generator).to(torch.uint8)
    return raw.clone().view(torch_type).reshape(shape)


def raw(tensor):
    """The bytes of a tensor of either library, in C order."""
    if isinstance(tensor, penstock.Tensor):
        return tensor.tobytes()
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.numel() == 0:
        return b""
    width = tensor.element_size()
    storage = bytes(tensor.untyped_storage())  # works for types without operators
    order = np.lib.stride_tricks.as_strided(
        np.frombuffer(storage, np.uint8)[tensor.storage_offset() * width :],
        (*tensor.shape, width),
        (*(s * width for s in tensor.stride()), 1),
    )
    return order.tobytes()


def assert_same(ours, theirs):
    """Containers, scalars and tensors alike."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, penstock.Tensor)
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert raw(ours) == raw(theirs)
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict)
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        assert isinstance(ours, tuple if isinstance(theirs, tuple) else list)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(theirs, float) and theirs != theirs:
        assert ours != ours
    else:
        assert ours == theirs
        assert type(ours) is type(theirs)


def save(value, path, layout="zip", protocol=2):
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=layout == "zip")
    return path


# --- What torch writes ---


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


CONTAINERS = {
    "none": None,
    "bools": [True, False],
    "integers": [0, 1, 255, 256, 65536, -1, 2**31, -(2**63), 2**63, 2**200, -(2**200)],
    "floats": [1.5, -0.0, float("inf"), 1e308],
    "nan": float("nan"),
    "complex": 1 - 2j,
    "text": ["", "ascii", "é€😀", "line\nbreak", "\\u0041", "\x00"],
    "bytes": [b"", b"\x00\xff", bytes(range(256))],
    "nested": {"a": [1, (2, [3, {"b": ()}])], 5: {True: None}, (1, "x"): []},
    "long": list(range(3000)),
    "many": {f"key {i}": i for i in range(3000)},
    "ordered": OrderedDict(b=1, a=OrderedDict()),
    "set": {1, 2, 3},
}


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


def sparse_parts(tensor):
    if tensor.layout is torch.sparse_coo:
        return {"indices": tensor._indices(), "values": tensor._values()}
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    compressed, plain = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
    return {n: getattr(tensor, n)() for n in (compressed, plain, "values")}


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


# --- What Penstock writes ---


def back(value, tmp_path):
    penstock.save(value, tmp_path / "out.pt")
    return torch.load(tmp_path / "out.pt", weights_only=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_reads_every_dtype_and_shape(tmp_path, dtype):
    state = {f"t{i}": example(dtype, shape, i) for i, shape in enumerate(SHAPES)}
    loaded = back(penstock.load(save(state, tmp_path / "in.pt")), tmp_path)
    assert list(loaded) == list(state)
    for name, tensor in state.items():
        assert loaded[name].dtype == tensor.dtype
        assert loaded[name].shape == tensor.shape
        assert loaded[name].stride() == tensor.stride()
        assert raw(loaded[name]) == raw(tensor)


@pytest.mark.parametrize("name", list(CONTAINERS))
def test_torch_reads_every_container(tmp_path, name):
    value = CONTAINERS[name]
    loaded = back(value, tmp_path)
    assert type(loaded) is type(value)
    assert loaded == value or value != value


def test_torch_reads_the_rest(tmp_path):
    value = [torch.Size([2, 3]), torch.float8_e5m2, Counter("aab"), bytearray(b"\x00\xff"), b"\x80", 2**2000]
    loaded = back(penstock.load(save(value, tmp_path / "in.pt")), tmp_path)
    assert loaded[0] == torch.Size([2, 3])
    assert loaded[1] is torch.float8_e5m2
    assert loaded[2] == Counter("aab")
    assert bytes(loaded[3]) == b"\x00\xff"
    assert loaded[4:] == [b"\x80", 2**2000]


def test_sharing_survives_both_ways(tmp_path):
    base = torch.arange(24).reshape(4, 6)
    once = [base]
    loaded = back(penstock.load(save([base, base.T, base[1:], once, once], tmp_path / "in.pt")), tmp_path)
    assert loaded[1].untyped_storage().data_ptr() == loaded[0].untyped_storage().data_ptr()
    assert torch.equal(loaded[1], base.T)
    assert loaded[2].storage_offset() == 6
    assert loaded[3] is loaded[4]
    assert loaded[3][0] is loaded[0]


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr", "bsc"])
def test_torch_reads_sparse_tensors_back(tmp_path, kind):
    dense = torch.tensor([[0.0, 1, 0, 2], [3, 0, 0, 4]])
    layout = getattr(torch, f"sparse_{kind}")
    tensor = dense.to_sparse(layout=layout, blocksize=(2, 2) if kind in ("bsr", "bsc") else None)
    loaded = back(penstock.load(save(tensor, tmp_path / "in.pt")), tmp_path)
    assert loaded.layout is layout
    assert torch.equal(loaded.to_dense(), dense)


def test_torch_reads_quantized_tensors_back(tmp_path):
    x = torch.arange(6.0).reshape(2, 3)
    values = [
        torch.quantize_per_tensor(x, 0.5, 3, torch.qint8),
        torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.5]), torch.tensor([1, 2, 3]), 1, torch.quint8),
        torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0.5, 1]), 0, torch.quint8),
    ]
    loaded = back(penstock.load(save(values, tmp_path / "in.pt")), tmp_path)
    for ours, theirs in zip(loaded, values, strict=True):
        assert ours.qscheme() == theirs.qscheme()
        assert torch.equal(ours.dequantize(), theirs.dequantize())


def test_the_archive_is_torchs(tmp_path):
    state = OrderedDict(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).state_dict())
    theirs = zipfile.ZipFile(save(state, tmp_path / "m.pt"))
    (tmp_path / "ours").mkdir()
    penstock.save(penstock.load(tmp_path / "m.pt"), tmp_path / "ours" / "m.pt")
    ours = zipfile.ZipFile(tmp_path / "ours" / "m.pt")
    names = [info.filename for info in theirs.infolist()]
    assert [info.filename for info in ours.infolist()] == names
    for name in names:
        if not name.endswith("serialization_id"):
            assert ours.read(name) == theirs.read(name), name
    assert [i.header_offset for i in ours.infolist()] == [i.header_offset for i in theirs.infolist()]
    # What goes by the offsets that torch computes for itself instead of reading them.
    loaded = torch.load(tmp_path / "ours" / "m.pt", mmap=True, weights_only=True)
    assert all(torch.equal(loaded[k], state[k]) for k in state)


# --- Files that nothing should believe ---


def test_every_truncation_is_an_error(tmp_path):
    for layout in LAYOUTS:
        data = save({"w": torch.arange(4)}, tmp_path / "x.pt", layout).read_bytes()
        for length in range(0, len(data), 1 if layout == "legacy" else 3):
            (tmp_path / "cut.pt").write_bytes(data[:length])
            with pytest.raises(penstock.Error):
                penstock.load(tmp_path / "cut.pt")


def pt_with(tmp_path, pickled):
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as out:
        out.writestr("x/data.pkl", pickled)
        out.writestr("x/version", "3\n")
    return tmp_path / "x.pt"


def test_deep_nesting_is_an_error(tmp_path):
    for pickled in (b"]" * 1_000_000 + b"a" * 999_999 + b".", b"N" + b"\x85" * 1_000_000 + b"."):
        with pytest.raises(penstock.Error, match="nested"):
            penstock.load(pt_with(tmp_path, pickled))


def test_shared_structure_costs_nothing(tmp_path):
    value = ()
    for _ in range(60):
        value = (value, value)
    loaded = penstock.load(pt_with(tmp_path, pickle.dumps(value, 2)))
    assert loaded[0] is loaded[1]


@pytest.mark.parametrize("part", ["a" * 60_000, b"a" * 60_000, bytearray(b"ab")], ids=["text", "bytes", "bytearray"])
def test_shared_scalars_are_one_object(tmp_path, part):
    loaded = penstock.load(pt_with(tmp_path, pickle.dumps([part, part, {"key": part}], 5)))
    assert loaded[0] is loaded[1] is loaded[2]["key"]
    assert loaded[0] == part


def test_shared_names_are_one_object(tmp_path):
    loaded = penstock.load(pt_with(tmp_path, b"](c" + b"m" * 60_000 + b"\nName\nq\x00h\x00e."))
    assert loaded[0] is loaded[1]


def test_text_that_is_no_utf8_is_an_error_with_its_place(tmp_path):
    with pytest.raises(penstock.CorruptError, match=r"x\.pt: BINUNICODE has text that is not UTF-8 .*byte"):
        penstock.load(pt_with(tmp_path, b"X\x01\0\0\0\xff."))


def old_tar(tmp_path):
    """A file as torch 0.1 wrote it."""
    import tarfile

    def pickled(value):
        return pickle.dumps(value, 2)

    class Id:
        def __init__(self, key):
            self.key = key

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj):
            return obj.key if isinstance(obj, Id) else None

    stream = io.BytesIO()
    Pickler(stream, 2).dump({"w": Id("9"), "b": Id("9")})
    values = array.array("f", range(6))
    members = {
        "storages": pickled(1)
        + pickled((7, "cpu", torch.FloatStorage))
        + struct.pack("<q", 6)
        + values.tobytes()
        + pickled([]),
        "tensors": pickled(1) + pickled((9, 7, torch.FloatTensor)) + struct.pack("<i4x2q2qq", 2, 2, 3, 3, 1, 0),
        "pickle": stream.getvalue(),
        "sys_info": pickled({"protocol_version": 1000}),
    }
    path = tmp_path / "old.pt"
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.mtime = 1_500_000_000.25
            tar.addfile(info, io.BytesIO(data))
    return path


def test_tar_archives_of_the_first_versions(tmp_path):
    path = old_tar(tmp_path)
    theirs = torch.load(path, weights_only=False)  # torch reads it only by running it
    assert_same(penstock.load(path), theirs)


def test_defaultdicts_are_read_as_dicts(tmp_path):
    loaded = penstock.load(save(defaultdict(list, a=[1]), tmp_path / "x.pt"))
    assert loaded["a"] == [1]


@pytest.mark.parametrize("part", [b"}", b"]", b"K\0\x85", b"T\2\0\0\0ab"])
def test_a_pickle_that_deflates_to_nothing_makes_no_more_than_a_stored_one(tmp_path, part):
    """Nine million empty dicts deflate to nine kilobytes, and would take two gigabytes as cells."""
    with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02](" + part * 9_000_000 + b"e.")
        archive.writestr("x/version", "3\n")
    with pytest.raises(penstock.LimitError, match=r"x\.pt"):
        penstock.open(tmp_path / "x.pt")


def test_a_deflated_pickle_of_many_values_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\x80\x02](" + b"K\7" * 400_000 + b"e.")
        archive.writestr("x/version", "3\n")
    assert penstock.load(tmp_path / "x.pt") == [7] * 400_000
