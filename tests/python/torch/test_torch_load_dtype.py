"""`dtype=` and `strict=` of penstock.torch.load beside torch.load and Tensor.to."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from load_pairs import FLOAT8, FLOATS, INTEGERS, VALUES, Model

import penstock
import penstock.torch as pt

TYPES = [*FLOATS, *FLOAT8]
EDGES = [0.0, -0.0, 1.0, -2.5, 1 / 3, 448.0, 449.0, 57344.0, 65504.0, 65520.0, 1e-7, 6e-8, 1e300, -1e300, 2**-127]
EDGES += [float("inf"), -float("inf"), float("nan"), 1.00390625, 1.01171875, 1e-320]


def is_converted(dtype):
    return dtype.is_floating_point or dtype.is_complex


def to(tensor, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of complex numbers that lose their imaginary part
        return tensor.to(dtype)


def of_edges(name):
    """Numbers at the edges of types, as far as the type has them."""
    values = torch.tensor(EDGES, dtype=torch.float64)
    if "complex" in name:
        values = torch.complex(values, values.flip(0))
    return to(values, torch.complex64).to(torch.complex32) if name == "complex32" else to(values, getattr(torch, name))


def numbers(tensor):
    """The elements in a type that holds all, real and imaginary part apart."""
    wide = torch.complex64 if tensor.dtype == torch.complex32 else tensor.dtype
    tensor = tensor.detach().resolve_conj().resolve_neg().to(wide)
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor.to(torch.float64)


def same_numbers(ours, theirs):
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    a, b = numbers(ours), numbers(theirs)
    assert torch.equal(a.isnan(), b.isnan())
    assert torch.equal(a.nan_to_num(1), b.nan_to_num(1)), (ours, theirs)
    assert torch.equal(torch.signbit(a.nan_to_num(1)), torch.signbit(b.nan_to_num(1)))


@pytest.mark.parametrize("wanted", TYPES)
def test_every_type_becomes_what_torch_makes_of_it(wanted, path):
    if wanted == "float8_e4m3fn" and torch.tensor(1e6).to(torch.float8_e4m3fn).isnan():
        pytest.skip("this torch makes NaN of numbers that are too large; later ones make the largest number")
    content = {name: of_edges(name) for name in TYPES} | {
        name: torch.ones(3).to(getattr(torch, name)) for name in INTEGERS
    }
    torch.save(content, path)
    loaded = pt.load(path, dtype=getattr(torch, wanted))
    compared = 0
    for name, tensor in torch.load(path).items():
        if not is_converted(tensor.dtype):
            assert loaded[name].dtype == tensor.dtype
            assert torch.equal(loaded[name], tensor)
            continue
        try:
            expected = to(tensor, getattr(torch, wanted))
        except (RuntimeError, NotImplementedError):  # torch has no such conversion
            assert loaded[name].dtype == getattr(torch, wanted)
            continue
        same_numbers(loaded[name], expected)
        compared += 1
    assert compared >= len(TYPES) - 2


@pytest.mark.parametrize("name", VALUES)
def test_everything_that_torch_saves(name, path):
    torch.manual_seed(5)
    value = VALUES[name]()
    torch.save(value, path)
    alike(pt.load(path, dtype="float16"), torch.load(path), torch.float16)


def alike(ours, theirs, dtype):
    """The same, with floating-point and complex tensors in the type. Containers that hold themselves end the walk."""
    seen = set()
    waiting = [(ours, theirs)]
    while waiting:
        a, b = waiting.pop()
        assert type(a) is type(b)
        if isinstance(a, torch.Tensor):
            same_tensor(a, b, dtype)
        elif isinstance(a, torch.storage.TypedStorage):
            assert (a.dtype, a.tolist()) == (b.dtype, b.tolist())
        elif isinstance(a, torch.UntypedStorage):
            assert bytes(a) == bytes(b)
        elif isinstance(a, (dict, list, tuple)) and id(a) not in seen:
            seen.add(id(a))
            assert len(a) == len(b)
            pairs = zip(a.values(), b.values(), strict=True) if isinstance(a, dict) else zip(a, b, strict=True)
            waiting.extend(pairs)


def same_tensor(a, b, dtype):
    assert (a.layout, a.device, a.requires_grad, a.is_quantized) == (
        b.layout,
        b.device,
        b.requires_grad,
        b.is_quantized,
    )
    assert a.is_leaf
    assert vars(a).keys() == vars(b).keys()
    if a.is_quantized:
        assert torch.equal(a.dequantize(), b.dequantize())
        if "channel" in str(a.qscheme()):
            assert a.q_per_channel_scales().dtype == b.q_per_channel_scales().dtype
            assert torch.equal(a.q_per_channel_scales(), b.q_per_channel_scales())
        return
    wanted = dtype if is_converted(b.dtype) else b.dtype
    assert a.dtype == wanted
    if a.is_nested or a.layout == torch.jagged:
        for x, y in zip(a.detach().unbind(), b.detach().unbind(), strict=True):
            same_numbers(x, to(y, wanted))
    elif a.layout != torch.strided:
        same_numbers(
            a.detach().to(torch.float32).to_dense(), to(b.detach(), torch.float32).to_dense().to(wanted).float()
        )
    elif a.is_meta:
        assert (a.shape, a.stride()) == (b.shape, b.stride())
    else:
        expected = to(b.detach().resolve_conj().resolve_neg(), wanted)
        same_numbers(a, expected)
        assert a.stride() == expected.stride() or 0 in b.stride()


def test_tensors_that_are_one_stay_one_and_other_views_part(path):
    base = torch.arange(12.0).reshape(3, 4)
    torch.save(
        {"a": base, "again": base, "same": base.view(3, 4), "turned": base.t(), "row": base[1], "n": [base]}, path
    )
    loaded = pt.load(path, dtype=torch.bfloat16)
    assert loaded["again"] is loaded["a"]
    assert loaded["n"][0] is loaded["a"]
    loaded["a"][1, 2] = 99
    assert loaded["same"][1, 2] == 99
    assert loaded["same"].untyped_storage().data_ptr() == loaded["a"].untyped_storage().data_ptr()
    assert loaded["turned"][2, 1] == 6
    assert loaded["row"].untyped_storage().nbytes() == 8
    torch.save(loaded, path)
    again = torch.load(path)
    assert again["a"].untyped_storage().data_ptr() == again["same"].untyped_storage().data_ptr()


def test_a_module_takes_what_was_loaded(path):
    model = Model()
    torch.save(model.state_dict(), path)
    half = Model().to(torch.float16)
    half.load_state_dict(pt.load(path, dtype="float16"))
    for name, value in model.to(torch.float16).state_dict().items():
        assert torch.equal(half.state_dict()[name], value), name


def test_attributes_and_gradients_stay(path):
    tensor = torch.ones(3, requires_grad=True)
    tensor.tag = "x"
    torch.save([tensor, torch.nn.Parameter(torch.ones(2), requires_grad=False)], path)
    loaded = pt.load(path, dtype="float64")
    assert (loaded[0].tag, loaded[0].requires_grad, loaded[0].is_leaf) == ("x", True, True)
    assert isinstance(loaded[1], torch.nn.Parameter)
    assert not loaded[1].requires_grad


def test_numpys_arrays_in_a_pickle_stay_and_those_of_its_files_become_the_type(path, tmp_path):
    array = np.arange(3.0)
    torch.save({"array": array, "tensor": torch.arange(3.0)}, path)
    loaded = pt.load(path, dtype="float16")
    assert loaded["array"].dtype == np.float64
    assert loaded["tensor"].dtype == torch.float16
    np.savez(tmp_path / "a.npz", x=array, y=np.arange(3))
    np.save(tmp_path / "a.npy", np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3)))
    penstock.save({"x": array}, tmp_path / "a.safetensors")
    assert {k: v.dtype for k, v in pt.load(tmp_path / "a.npz", dtype="half").items()} == {
        "x": torch.float16,
        "y": torch.int64,
    }
    assert pt.load(tmp_path / "a.npy", dtype="float32").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert pt.load(tmp_path / "a.safetensors", dtype="bfloat16")["x"].dtype == torch.bfloat16


@pytest.mark.parametrize("new", [False, True])
def test_parts_open_files_and_old_files(new, path):
    content = {"model": {"module.w": torch.arange(4.0), "module.n": 3, "other": torch.ones(2)}, "rest": torch.ones(9)}
    torch.save(content, path, _use_new_zipfile_serialization=new)
    assert pt.load(path, key="model", dtype="float16")["module.w"].dtype == torch.float16
    with path.open("rb") as file:
        assert pt.load(file, dtype="float16")["rest"].dtype == torch.float16
    part = pt.load(path, key="model", prefix="module.", dtype="float64")
    assert part["n"] == 3
    assert part["w"].dtype == torch.float64


def test_names_are_as_good_as_types(path):
    torch.save(torch.ones(2), path)
    for name in (
        "float16",
        "half",
        "torch.float16",
        torch.float16,
        torch.half,
        np.float16,
        np.dtype("float16"),
        penstock.DType("float16"),
    ):
        assert pt.load(path, dtype=name).dtype == torch.float16
    assert pt.load(path, dtype=None).dtype == torch.float32
    assert pt.load(path, dtype=torch.float32).dtype == torch.float32


# Options that cannot be, and errors of values. penstock.load says the same.
REFUSED = [
    ({"dtype": "int32"}, penstock.InvalidArgumentError),
    ({"dtype": torch.bool}, penstock.InvalidArgumentError),
    ({"dtype": "quint8"}, penstock.InvalidArgumentError),
    ({"dtype": "nonsense"}, penstock.InvalidArgumentError),
    ({"dtype": 3}, penstock.InvalidArgumentError),
    ({"dtype": "float16", "mmap": True}, penstock.UnsupportedError),
    ({"strict": True}, penstock.InvalidArgumentError),
    ({"dtype": "float16", "strict": "yes"}, penstock.DTypeMismatchError),
    ({"dtype": "float32", "strict": True}, penstock.InvalidArgumentError),
]


@pytest.mark.parametrize(("options", "error"), REFUSED, ids=[str(options) for options, _ in REFUSED])
def test_what_cannot_be_is_refused_as_by_penstock_load(options, error, path):
    torch.save({"fits": torch.ones(2), "layer": {"large": torch.tensor([1, 1e300], dtype=torch.float64)}}, path)
    with pytest.raises(error) as ours:
        pt.load(path, **options)
    with pytest.raises(error) as native:
        penstock.load(path, **options)
    assert ours.value.message == native.value.message
    assert (ours.value.path, ours.value.tensor) == (native.value.path, native.value.tensor)


def test_strict_looks_only_where_a_value_is_lost(path):
    torch.save([torch.tensor([1.0, float("inf"), float("nan")], dtype=torch.float64)], path)
    assert pt.load(path, dtype="float32", strict=True)[0].dtype == torch.float32
    assert pt.load(path, dtype="float64", strict=True)[0].dtype == torch.float64


def test_types_that_come_as_arguments(path):
    """A meta tensor and one of a device that is not there have a type in the pickle, besides that of their data."""

    class OfDevice:
        def __init__(self, *args):
            self.args = args

        def __reduce__(self):
            return torch._utils._rebuild_device_tensor_from_cpu_tensor, self.args

    wide = OfDevice(torch.tensor([1.0, 1e300], dtype=torch.float64), torch.float64, "cpu", True)
    torch.save([torch.empty(2, 3, device="meta"), torch.empty(2, dtype=torch.int8, device="meta"), wide], path)
    meta, whole, rebuilt = pt.load(path, dtype="float16")
    assert (meta.dtype, meta.is_meta, whole.dtype) == (torch.float16, True, torch.int8)
    assert (rebuilt.dtype, rebuilt.requires_grad) == (torch.float16, True)
    with pytest.raises(penstock.InvalidArgumentError):
        pt.load(path, dtype="float16", strict=True)


class TestMapLocation:
    @pytest.fixture
    def content(self, path):
        content = {"x": torch.arange(6.0).reshape(2, 3), "n": torch.arange(3), "c": torch.ones(2, dtype=torch.cfloat)}
        content["again"] = content["x"]
        torch.save(content, path)
        return content

    @pytest.mark.parametrize("place", ["cpu", torch.device("cpu"), {"cpu": "cpu"}], ids=str)
    def test_the_host(self, content, path, place):
        alike(pt.load(path, place, dtype="float16"), content, torch.float16)

    def test_a_function_gets_the_storages_that_come_of_it(self, content, path):
        asked = []

        def place(storage, location):
            asked.append((storage.nbytes(), location))
            return storage

        alike(pt.load(path, place, dtype="float16"), content, torch.float16)
        assert sorted(asked) == [(4, "cpu"), (12, "cpu"), (24, "cpu")]

    def test_meta(self, content, path):
        loaded = pt.load(path, "meta", dtype="float16")
        assert {k: v.dtype for k, v in loaded.items()} == {
            "x": torch.float16,
            "n": torch.int64,
            "c": torch.float16,
            "again": torch.float16,
        }
        assert all(v.is_meta and v.shape == content[k].shape for k, v in loaded.items())
        assert loaded["again"] is loaded["x"]

    def test_fake(self, content, path):
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        with FakeTensorMode():
            loaded, theirs = pt.load(path, dtype="float16"), torch.load(path)
        for name, fake in loaded.items():
            assert isinstance(fake, FakeTensor) == isinstance(theirs[name], FakeTensor)
            assert fake.shape == content[name].shape
            assert fake.dtype == (torch.float16 if is_converted(content[name].dtype) else content[name].dtype)
            assert getattr(fake, "fake_device", None) == getattr(theirs[name], "fake_device", None)

    def test_skip_data(self, content, path):
        with torch.serialization.skip_data():
            loaded = pt.load(path, dtype="float16", strict=True)
        assert (loaded["x"].shape, loaded["x"].dtype, loaded["n"].dtype) == ((2, 3), torch.float16, torch.int64)
        assert loaded["x"].untyped_storage().nbytes() == 12

    def test_a_device_that_is_not_there_is_torchs_error(self, content, path):
        if torch.cuda.is_available():
            pytest.skip("it is there")
        with pytest.raises(RuntimeError, match="cuda") as ours:
            pt.load(path, "cuda", dtype="float16")
        with pytest.raises(RuntimeError) as without:
            pt.load(path, "cuda")
        assert type(ours.value) is type(without.value)


def test_the_default_of_mmap_gives_way(path, monkeypatch):
    from torch.utils.serialization import config

    monkeypatch.setattr(config.load, "mmap", True)
    torch.save(torch.ones(2), path)
    assert pt.load(path, dtype="float16").dtype == torch.float16


def test_progress_is_that_of_one_load(path):
    torch.save({"x": torch.ones(3 << 20), "n": torch.ones(1 << 20, dtype=torch.int64)}, path)
    told = []
    pt.load(path, dtype="float16", progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (20 << 20, 20 << 20)
    assert {total for _, total in told} == {20 << 20}

    class StoppedError(Exception):
        pass

    def stop(done, total):
        raise StoppedError

    with pytest.raises(StoppedError):
        pt.load(path, dtype="float16", progress=stop)


def test_damage_is_seen(path):
    torch.save(torch.arange(1000.0), path)
    data = bytearray(path.read_bytes())
    data[data.index(torch.arange(1000.0).numpy().tobytes()) + 100] ^= 1
    path.write_bytes(data)
    with pytest.raises(penstock.ChecksumError):
        pt.load(path, dtype="float16")
    assert pt.load(path, dtype="float16", verify=False).dtype == torch.float16


PEAK = """
import resource, sys
import penstock.torch as pt
pt.load(sys.argv[1], dtype="float16")  # a small file: what a load needs by itself
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
state = pt.load(sys.argv[2], dtype="float16")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_the_file_does_not_lie_in_memory_beside_the_result(tmp_path):
    torch.save({"a": torch.zeros(10)}, tmp_path / "small.pt")
    tensors = {str(i): torch.ones(8, 1 << 20) for i in range(6)}
    torch.save({**tensors, "large": torch.ones(48 << 20)}, tmp_path / "large.pt")
    command = [sys.executable, "-c", PEAK, tmp_path / "small.pt", tmp_path / "large.pt"]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert peak < 192 + 128, "192 MB of result, and 64 MB of the file at a time"
