"""penstock.torch.load of tensors of parts, beside torch.load: on the meta device, and of parts that do not fit."""

from __future__ import annotations

import collections
import zipfile

import pytest
import torch
from load_pairs import rewritten_storage, same

import penstock
import penstock.torch as pt


def jagged(**options):
    return torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged, **options)


COMPOSITES = {
    "coo": lambda: torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [1.0, 2.0, 3.0], (2, 3)),
    "coalesced": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(4).to_sparse_csr(),
    "csc": lambda: torch.eye(4).to_sparse_csc(),
    "bsr": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "bsc": lambda: torch.eye(4).to_sparse_bsc((2, 2)),
    "parameter": lambda: torch.nn.Parameter(torch.eye(4).to_sparse()),
    "jagged": jagged,
    "jagged_with_gradient": lambda: jagged(requires_grad=True),
    "jagged_with_lengths": lambda: torch.nested.narrow(
        torch.randn(3, 5, 2), 1, torch.tensor([0, 1, 2]), torch.tensor([2, 3, 1]), layout=torch.jagged
    ),
}


def by_torch(path, made, where=None):
    """What torch reads; where it checks sparse tensors that it loads and refuses these, what was saved."""
    try:
        return torch.load(path, where)
    except (RuntimeError, NotImplementedError):
        return made


@pytest.mark.parametrize("name", COMPOSITES)
@pytest.mark.parametrize("where", ["meta", torch.device("meta"), {"cpu": "meta"}], ids=str)
def test_on_the_meta_device(tmp_path, name, where):
    path = tmp_path / "x.pt"
    made = COMPOSITES[name]()
    torch.save(made, path)
    ours, theirs = pt.load(path, where), by_torch(path, made, where)
    assert ours.device == torch.device("meta")
    assert (type(ours), ours.layout, ours.dtype) == (type(theirs), theirs.layout, theirs.dtype)
    assert ours.requires_grad == theirs.requires_grad
    assert ours.dim() == theirs.dim()
    if ours.layout == torch.jagged:
        assert ours.values().shape == theirs.values().shape
        assert ours.offsets().shape == theirs.offsets().shape
    else:
        assert ours.shape == theirs.shape
        assert ours._nnz() == theirs._nnz()


def test_only_some_parts_on_the_meta_device(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"w": COMPOSITES["csr"]()}, path)

    def first(storage, _, seen=[]):  # noqa: B006 - counts
        seen.append(storage)
        return storage if len(seen) > 1 else torch.UntypedStorage(storage.nbytes(), device="meta")

    with pytest.raises(penstock.CorruptError, match=r"x\.pt: .*sparse CSR"):
        pt.load(path, first)


@pytest.mark.parametrize("shape", [(4,), (5, 3), (2, 3, 4), (3, 0)])
def test_coalesced_tensors_stay_so(tmp_path, shape):
    path = tmp_path / "x.pt"
    torch.save(torch.rand(shape).round().to_sparse(), path)
    found = pt.load(path)
    assert found.is_coalesced()
    same(found, torch.load(path))


UNCOALESCED = {
    "a column twice": [[0, 1, 1], [2, 0, 0]],
    "the first row descends": [[1, 0], [0, 2]],
    "the second row descends": [[1, 1], [2, 0]],
}


@pytest.mark.parametrize("indices", UNCOALESCED.values(), ids=UNCOALESCED)
def test_a_tensor_that_is_not_coalesced_as_it_says_is_refused(tmp_path, indices):
    path = tmp_path / "x.pt"
    tensor = torch.sparse_coo_tensor(indices, torch.ones(len(indices[0])), (2, 3))
    torch.save(tensor, path)
    assert not pt.load(path).is_coalesced()
    torch.save(tensor._coalesced_(True), path)
    with pytest.raises(penstock.CorruptError, match=r"x\.pt: .*not in order"):
        pt.load(path)


OUT_OF_ORDER = {
    "csr": lambda: (
        torch.tensor([0, 2, 3]),
        torch.tensor([1, 0, 2]),
        torch.tensor([1.0, 2.0, 3.0]),
        (2, 3),
        torch.sparse_csr,
    ),
    "twice": lambda: (
        torch.tensor([0, 2, 3]),
        torch.tensor([1, 1, 2]),
        torch.tensor([1.0, 2.0, 3.0]),
        (2, 3),
        torch.sparse_csr,
    ),
    "csc": lambda: (
        torch.tensor([0, 2, 3]),
        torch.tensor([1, 0, 2]),
        torch.tensor([1.0, 2.0, 3.0]),
        (3, 2),
        torch.sparse_csc,
    ),
    "bsr": lambda: (torch.tensor([0, 2, 3]), torch.tensor([1, 0, 2]), torch.randn(3, 2, 2), (4, 6), torch.sparse_bsr),
    "bsc": lambda: (torch.tensor([0, 2, 3]), torch.tensor([1, 0, 2]), torch.randn(3, 2, 2), (6, 4), torch.sparse_bsc),
    "batch": lambda: (
        torch.tensor([[0, 2, 3], [0, 1, 3]]),
        torch.tensor([[1, 0, 2], [2, 1, 0]]),
        torch.randn(2, 3),
        (2, 2, 3),
        torch.sparse_csr,
    ),
    "dense": lambda: (torch.tensor([0, 2, 3]), torch.tensor([1, 0, 2]), torch.randn(3, 5), (2, 3, 5), torch.sparse_csr),
}


def compressed(compressed, plain, values, size, layout):
    return torch.sparse_compressed_tensor(compressed, plain, values, size, layout=layout, check_invariants=False)


@pytest.mark.parametrize("name", OUT_OF_ORDER)
def test_columns_out_of_order(tmp_path, name):
    tensor = compressed(*OUT_OF_ORDER[name]())
    torch.save(tensor, tmp_path / "x.pt")
    ours, theirs = pt.load(tmp_path / "x.pt"), by_torch(tmp_path / "x.pt", tensor)
    assert ours.layout == theirs.layout
    same(ours.values(), theirs.values())
    assert torch.equal(ours.to_dense(), theirs.to_dense())


@pytest.mark.parametrize(
    ("compressed_indices", "plain", "size"),
    [
        ([0, 2, 3], [1, 0, 3], (2, 3)),
        ([0, 2, 3], [1, 0, -1], (2, 3)),
        ([0, 2, 4], [1, 0, 2], (2, 3)),
        ([0, 2, 2], [1, 0, 2], (2, 3)),
        ([0, 4, 3], [1, 0, 2], (2, 3)),
        ([-1, 2, 3], [1, 0, 2], (2, 3)),
        ([1, 2, 3], [1, 0, 2], (2, 3)),
        ([0, 2, 3], [1, 0, 2], (3, 3)),
        ([0, -1, 3], [1, 0, 2], (2, 3)),
    ],
)
def test_columns_outside(tmp_path, compressed_indices, plain, size):
    parts = torch.tensor(compressed_indices), torch.tensor(plain), torch.tensor([1.0, 2.0, 3.0])
    try:
        tensor = compressed(*parts, size, torch.sparse_csr)
    except RuntimeError:
        pytest.skip("torch does not make it")
    torch.save({"part": {"w": tensor}}, tmp_path / "x.pt")
    with pytest.raises(penstock.CorruptError, match=r"x\.pt: .*sparse CSR") as caught:
        pt.load(tmp_path / "x.pt")
    with pytest.raises(RuntimeError) as of_torch:
        torch.sparse_compressed_tensor(*parts, size, layout=torch.sparse_csr, check_invariants=True)
    assert caught.value.message.endswith(str(of_torch.value).partition("\n")[0])
    assert caught.value.path == str(tmp_path / "x.pt")
    assert caught.value.tensor == "part.w"


class OfDevice:
    """A tensor as torch saves those of devices that it has no storages for."""

    def __init__(self, rebuild, *args):
        self.rebuild, self.args = rebuild, args

    def __reduce__(self):
        return self.rebuild, self.args


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_tensors_of_other_devices(tmp_path, dtype, requires_grad):
    path = tmp_path / "x.pt"
    data = torch.tensor([1.5, -2.0, 1e9])
    torch.save(OfDevice(torch._utils._rebuild_device_tensor_from_cpu_tensor, data, dtype, "cpu", requires_grad), path)
    same(pt.load(path), torch.load(path))
    of_numpy = torch._utils._rebuild_device_tensor_from_numpy
    torch.save(OfDevice(of_numpy, data.numpy(), dtype, "cpu", requires_grad), path)
    same(pt.load(path), torch.load(path, weights_only=False))


def test_errors_say_which_tensor(tmp_path):
    path = tmp_path / "x.pt"
    nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)])
    torch.save({"n": [nested]}, path)
    rewritten_storage(path, torch.tensor([0, 6]), torch.tensor([0, 60]))
    with pytest.raises(penstock.CorruptError, match=r"x\.pt: .*nested.*tensor 'n\.0'") as caught:
        pt.load(path)
    assert caught.value.tensor == "n.0"


@pytest.mark.parametrize("load", [pt.load, penstock.load])
def test_errors_of_the_structure_say_which_file(tmp_path, load):
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as out:
        out.writestr("x/data.pkl", b"\x80\x02}K\x01" + b"\x85" * 100 + b"K\x01s.")
        out.writestr("x/version", "3\n")
    with pytest.raises(penstock.LimitError, match=r"x\.pt: found a key of a dict") as caught:
        load(tmp_path / "x.pt")
    assert caught.value.path == str(tmp_path / "x.pt")


@pytest.mark.parametrize("where", [3, [], 1.5])
def test_map_locations_of_other_types(tmp_path, where):
    torch.save([torch.ones(3)], tmp_path / "x.pt")
    for load in (torch.load, pt.load):
        with pytest.raises(TypeError):
            load(tmp_path / "x.pt", where)


def test_map_locations_that_give_no_storage(tmp_path):
    torch.save([torch.ones(3)], tmp_path / "x.pt")
    for load in (torch.load, pt.load):
        with pytest.raises(TypeError):
            load(tmp_path / "x.pt", lambda storage, location: location)


def test_empty_views_keep_offset_and_storage(tmp_path):
    base = torch.arange(10.0)
    values = [base[10:], base[3:3], torch.arange(3)[3:], torch.ones(9).as_strided((0, 3), (100, 7), 9), torch.empty(0)]
    for value in (values, values[3]):
        torch.save(value, tmp_path / "x.pt")
        for where in (None, "cpu", "meta", {"cpu": "cpu"}, lambda storage, _: storage):
            ours, theirs = (
                [loaded] if isinstance(loaded, torch.Tensor) else loaded
                for loaded in (pt.load(tmp_path / "x.pt", where), torch.load(tmp_path / "x.pt", where))
            )
            for a, b in zip(ours, theirs, strict=True):
                assert (a.shape, a.stride(), a.storage_offset()) == (b.shape, b.stride(), b.storage_offset())
                assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes()
                assert a.device == b.device or b.device.type == "cpu"


def test_defaultdicts_stay_what_they_are(tmp_path):
    torch.save(collections.defaultdict(None, {"a": torch.ones(2)}), tmp_path / "x.pt")
    for loaded in (pt.load(tmp_path / "x.pt"), penstock.load(tmp_path / "x.pt")):
        assert type(loaded) is collections.defaultdict
        assert loaded.default_factory is None
        assert loaded["a"].tolist() == [1, 1]
        with pytest.raises(KeyError):
            loaded["b"]


class Wrapped(torch.Tensor):
    """A tensor that is others, as torch.distributed's are."""

    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


def test_wrappers_are_named_as_in_the_file(tmp_path):
    torch.save({"w": Wrapped(torch.ones(2))}, tmp_path / "x.pt")
    with pytest.raises(pt.UnknownGlobalsError, match=r"test_torch_load_composites\.Wrapped") as caught:
        pt.load(tmp_path / "x.pt")
    assert "wrapper_subclass" not in str(caught.value)
    assert isinstance(pt.load(tmp_path / "x.pt", unknown="keep")["w"], penstock.Opaque)


@pytest.mark.parametrize("allowed", [False, True])
def test_distributed_tensors_come_with_advice(tmp_path, allowed):
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as out:
        out.writestr("x/data.pkl", b"\x80\x02ctorch.distributed.tensor\nDTensor\n)R.")
        out.writestr("x/version", "3\n")
    names = [(torch.nn.Linear, "torch.distributed.tensor.DTensor")] if allowed else []
    advice = pytest.raises(pt.UnknownGlobalsError, match=r"full_tensor\(\)|import torch\.distributed\.tensor first")
    with torch.serialization.safe_globals(names), advice:
        pt.load(tmp_path / "x.pt")


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("kind", [torch.Tensor, torch.nn.Parameter], ids=["tensor", "parameter"])
@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_want_gradients_as_torch_keeps_it(tmp_path, kind, wanted):
    path = tmp_path / "x.pt"
    tensor = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
    tensor = torch.nn.Parameter(tensor, wanted) if kind is torch.nn.Parameter else tensor.requires_grad_(wanted)
    for save in (torch.save, pt.save):
        save([tensor], path)
        for load in (torch.load, pt.load):
            (loaded,) = load(path)
            assert (type(loaded), loaded.requires_grad) == (kind, wanted)


def bounds(tensor):
    return {name: bound.shape[0] for name, bound in tensor._metadata_cache.items()}


@pytest.mark.parametrize("save", [torch.save, pt.save], ids=["torch", "penstock"])
@pytest.mark.parametrize("asked", [(), ("_get_max_seqlen",), ("_get_max_seqlen", "_get_min_seqlen")], ids=len)
def test_the_bounds_that_jagged_tensors_keep(tmp_path, save, asked):
    path = tmp_path / "x.pt"
    values = [
        COMPOSITES["jagged"](),
        torch.nested.nested_tensor_from_jagged(torch.randn(6, 2), torch.tensor([0, 2, 6])),
        torch.nested.nested_tensor_from_jagged(torch.randn(6, 2), torch.tensor([0, 2, 6]), torch.tensor([1, 3])),
    ]
    for value in values:
        for ask in asked:
            getattr(value, ask)()
    save(values, path)
    expected = [bounds(value) for value in torch.load(path)]
    assert expected == [bounds(value) for value in values]
    assert [bounds(value) for value in pt.load(path)] == expected
    for loaded in pt.load(path, map_location="meta"):
        assert all(bound.is_meta for bound in loaded._metadata_cache.values())


@pytest.mark.parametrize(("name", "bound"), [("max_seqlen", 3), ("min_seqlen", 3)])
def test_bounds_that_rows_exceed_are_corrupt(tmp_path, name, bound):
    path = tmp_path / "x.pt"
    value = COMPOSITES["jagged"]()
    value._metadata_cache[name] = torch.zeros(bound, 0)
    torch.save([value], path)
    with pytest.raises(penstock.CorruptError, match=name):
        pt.load(path)


def test_factories_that_are_no_types_of_data_are_not_set(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(collections.defaultdict(eval, a=1), path)
    with pytest.raises(penstock.UnsafeError, match="eval"):
        pt.load(path)
    kept = pt.load(path, unknown="keep")
    assert type(kept) is collections.defaultdict
    assert kept == {"a": 1}
    assert kept.default_factory is None
