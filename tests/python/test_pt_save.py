"""torch reads the `.pt` that Penstock writes."""

import warnings
import zipfile
from collections import Counter, OrderedDict

import pytest
from pt_pairs import CONTAINERS, DTYPES, SHAPES, example, raw, save

import penstock

torch = pytest.importorskip("torch")
warnings.simplefilter("ignore")


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
