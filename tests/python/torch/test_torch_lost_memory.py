"""Tensors whose memory is not there: every way in says so and names the tensor, and no foreign byte is read."""

from __future__ import annotations

import io
from collections import defaultdict

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import penstock
import penstock.numpy as pn
import penstock.torch as pt
import penstock.torch.safetensors as st

SIZE = 1000


def resized(nbytes, dtype=torch.float32, view=lambda whole: whole):
    """The view of a tensor whose storage is cut afterwards."""
    tensor = view(torch.ones(SIZE, dtype=dtype))
    tensor.untyped_storage().resize_(nbytes)
    return tensor


def fake():
    with FakeTensorMode():
        return torch.ones(SIZE)


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (SIZE,))

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError(str(function))


SHORT = {
    "freed": lambda: resized(0),
    "one byte short": lambda: resized(4 * SIZE - 1),
    "16 bytes": lambda: resized(16),
    "a view behind the end": lambda: resized(2 * SIZE, view=lambda whole: whole[750:]),
    "a strided view over the end": lambda: resized(2 * SIZE, view=lambda whole: whole[::2]),
    "a conjugate": lambda: resized(0, torch.complex64, torch.conj),
    "a negative": lambda: resized(16, torch.complex64, lambda whole: whole.conj().imag),
    "wants a gradient": lambda: resized(16).requires_grad_(),
}
NO_MEMORY = {
    "zero": lambda: torch._efficientzerotensor((SIZE,)),
    "functional": lambda: torch._to_functional_tensor(torch.ones(SIZE)),
    "fake": fake,
    "wrapper": Wrapper,
}
KINDS = {**SHORT, **NO_MEMORY}


@pytest.fixture
def target(tmp_path):
    """A folder, and in it the file that targets are filled from."""
    pt.save({"lost": torch.zeros(SIZE), "n": torch.ones(3)}, tmp_path / "x.pt")
    st.save_file({"lost": torch.zeros(SIZE)}, tmp_path / "x.safetensors")
    return tmp_path


def nested(tensor):
    return {"sound": torch.ones(3), "a": [1, {"lost": tensor}]}


def of_size(tensor, path):
    pt.save({"lost": torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)}, path)
    return path


# Each takes a tensor and a folder. Those of NAMED say where it lies.
NAMED = {
    "pt.save": lambda t, at: pt.save(nested(t), at / "o.pt"),
    "pt.save to a file": lambda t, at: pt.save(nested(t), io.BytesIO()),
    "pt.save by torch": lambda t, at: pt.save({"lost": t, "d": defaultdict(list)}, at / "o.pt"),
    "pt.save, protocol 4": lambda t, at: pt.save(nested(t), at / "o.pt", pickle_protocol=4),
    "save .pt": lambda t, at: penstock.save(nested(t), at / "o.pt"),
    "save .npz": lambda t, at: penstock.save({"lost": t}, at / "o.npz"),
    "save .safetensors": lambda t, at: penstock.save({"lost": t}, at / "o.safetensors"),
    "safetensors.save": lambda t, at: st.save({"lost": t}),
    "safetensors.save_file": lambda t, at: st.save_file({"lost": t}, at / "o.safetensors"),
    "numpy.savez": lambda t, at: pn.savez(at / "o.npz", lost=t),
    "numpy.savez_compressed": lambda t, at: pn.savez_compressed(at / "o.npz", lost=t),
    "load_into": lambda t, at: pt.load_into({"lost": t}, of_size(t, at / "x.pt"), strict=False),
}
UNNAMED = {
    "save .npy": lambda t, at: penstock.save(t, at / "o.npy"),
    "numpy.save": lambda t, at: pn.save(at / "o.npy", t),
    "pt.Rows": lambda t, at: pt.Rows(t),
    "pt.Rows of two": lambda t, at: pt.Rows(torch.ones(SIZE), t),
    "rows": lambda t, at: penstock.rows(t),
    "from_dlpack": lambda t, at: penstock.from_dlpack(t),
    "asarray": lambda t, at: penstock.asarray(t),
    "tensor": lambda t, at: penstock.tensor(t),
    "tensor of a list": lambda t, at: penstock.tensor([t, t]),
    "add": lambda t, at: penstock.zeros((SIZE,)) + t,
}
ROADS = {**NAMED, **UNNAMED}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("road", ROADS)
def test_every_way_in_refuses_it(road, kind, target):
    tensor = KINDS[kind]()
    with pytest.raises((penstock.Error, TypeError)) as caught:
        ROADS[road](tensor, target)
    if road in NAMED:
        refused = (
            (penstock.UnsupportedError, penstock.DTypeMismatchError) if kind == "wrapper" else penstock.UnsupportedError
        )
        assert isinstance(caught.value, refused)
        assert "lost" in str(caught.value)
        assert any(reason in str(caught.value) for reason in ("storage", "no memory", "of class"))
    assert not [path for path in target.iterdir() if path.name.startswith(("o.", ".penstock"))]


@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize("rule", [pt.stack(), pt.ragged(), pt.pad(), pt.pad_to(5)], ids=lambda r: type(r).__name__)
def test_collation_refuses_samples_whose_storage_is_short(kind, rule):
    samples = [{"x": torch.ones(SIZE)}, {"x": SHORT[kind]()}]
    with pytest.raises(penstock.UnsupportedError, match=r"sample 1 of the batch, at \['x'\]: .*storage"):
        rule(samples)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", ["sparse", "csr", "quantized", "nested", "jagged", "storage", "attribute", "parameter"]
)
def test_parts_of_composites_are_looked_at(kind, tmp_path):
    made = {
        "sparse": lambda: torch.eye(50).to_sparse(),
        "csr": lambda: torch.eye(50).to_sparse_csr(),
        "quantized": lambda: torch.quantize_per_tensor(torch.ones(SIZE), 0.1, 0, torch.qint8),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(30), torch.ones(20)]),
        "jagged": lambda: torch.nested.nested_tensor([torch.ones(30), torch.ones(20)], layout=torch.jagged),
        "storage": lambda: torch._efficientzerotensor((SIZE,)).untyped_storage(),
        "attribute": lambda: torch.ones(3),
        "parameter": lambda: torch.nn.Parameter(torch.ones(SIZE)),
    }[kind]()
    if kind == "sparse":
        made._values().untyped_storage().resize_(16)
    elif kind == "csr":
        made.col_indices().untyped_storage().resize_(0)
    elif kind == "attribute":
        made.note = {"deep": resized(8)}
    elif kind == "jagged":
        made._values.untyped_storage().resize_(16)
    elif kind != "storage":
        made.untyped_storage().resize_(16)
    with pytest.raises(penstock.Error, match=r"at \['k'\].*(storage|memory)"):
        pt.save({"k": made}, tmp_path / "o.pt")
    assert not list(tmp_path.iterdir())


def test_nothing_of_a_target_is_filled_when_one_has_no_memory(target):
    sound = torch.full((3,), 7.0)
    with pytest.raises(penstock.UnsupportedError, match="lost"):
        pt.load_into({"n": sound, "lost": resized(16)}, target / "x.pt")
    assert sound.tolist() == [7, 7, 7]


def test_a_module_whose_weights_were_freed(tmp_path):
    module = torch.nn.Linear(30, 20)
    path, tensors = tmp_path / "m.pt", tmp_path / "m.safetensors"
    pt.save(module.state_dict(), path)
    st.save_model(module, tensors)
    module.weight.untyped_storage().resize_(0)
    for call in (
        lambda: pt.load_into(module, path),
        lambda: st.load_model(module, tensors),
        lambda: st.save_model(module, tmp_path / "o.safetensors"),
        lambda: pt.save(module.state_dict(), tmp_path / "o.pt"),
    ):
        with pytest.raises(penstock.UnsupportedError, match=r"weight.*storage"):
            call()
    assert pt.load_into(module, path, assign=True) == ([], [])
    assert module.weight.shape == (20, 30)


@pytest.mark.parametrize("nbytes", [0, 16])
def test_what_still_fits_passes(nbytes, tmp_path):
    whole = torch.ones(SIZE)
    part, empty = whole[: nbytes // 4], whole[:0]
    whole.untyped_storage().resize_(nbytes)
    pt.save({"part": part, "empty": empty, "e2": torch.empty(0, 3)}, tmp_path / "o.pt")
    assert torch.load(tmp_path / "o.pt")["part"].shape == (nbytes // 4,)
    assert penstock.asarray(part).shape == part.shape


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("view", [lambda whole: whole, lambda whole: whole[::3], lambda whole: whole[10:]])
@pytest.mark.parametrize("nbytes", [0, 16])
def test_batches_of_what_a_function_gives(nbytes, view, workers):
    """torch's own collation reads past the storage's end, or ends the process."""
    lost = pt.Rows(np.arange(4)).map(lambda row: {"x": [resized(nbytes, view=view)], "y": row})
    with pytest.raises(penstock.UnsupportedError, match=r"sample 0 of the batch, at \['x'\]: .*shorter"):
        next(iter(pt.DataLoader(lost, batch_size=2, num_workers=workers)))
    whole = pt.Rows(np.arange(4)).map(lambda _: (torch.ones(1).expand(5), torch.ones(4, 6).t()[::2], torch.ones(0, 3)))
    assert [part.shape for part in next(iter(pt.DataLoader(whole, batch_size=2)))] == [(2, 5), (2, 3, 4), (2, 0, 3)]


def test_meta_tensors_are_saved_as_such_and_read_nowhere_else(tmp_path):
    meta = torch.ones(SIZE, device="meta")
    pt.save({"m": meta}, tmp_path / "m.pt")
    assert torch.load(tmp_path / "m.pt")["m"].is_meta
    for call in (penstock.rows, penstock.asarray, penstock.from_dlpack, penstock.tensor):
        with pytest.raises(penstock.UnsupportedError, match="no memory"):
            call(meta)
    with pytest.raises(penstock.UnsupportedError, match=r"at \['m'\].*no memory"):
        penstock.save({"m": meta}, tmp_path / "m.npz")


def test_tensors_of_transforms_have_no_memory_of_their_own():
    def taken(tensor):
        with pytest.raises(penstock.UnsupportedError, match="no memory"):
            penstock.asarray(tensor)
        return tensor.sum()

    torch.vmap(taken)(torch.ones(3, 4))
    torch.func.grad(taken)(torch.ones(3))


def test_the_storage_behind_rows_is_not_resized():
    tensor = torch.arange(12.0).reshape(4, 3)
    rows = pt.Rows(tensor[1:])
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.untyped_storage().resize_(0)
    tensor[1] = 7
    assert rows[0].tolist() == [7, 7, 7]


@pytest.mark.parametrize("address", [0, 1, 4095])
def test_array_interfaces_without_an_address(address):
    class Foreign:
        pass

    described = {"shape": (3,), "typestr": "<f4", "version": 3, "data": (address, False)}
    for change in ({}, {"strides": (-4,)}, {"strides": (8,)}):
        array = Foreign()
        array.__array_interface__ = {**described, **change}
        with pytest.raises(penstock.UnsupportedError, match="without memory"):
            penstock.asarray(array)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": (-3,)},
        {"shape": (-3, 0)},
        {"shape": (2**62, 4)},
        {"shape": (2**40, 2**40)},
        {"shape": (3,), "strides": (2**63 - 4,)},
        {"shape": (3, 3), "strides": (2**62, 2**62)},
        {"shape": (3,), "strides": ()},
        {"shape": (1,) * 65},
    ],
    ids=str,
)
def test_array_interfaces_of_impossible_sizes(change):
    class Foreign:
        pass

    backing = np.ones(3, "f4")
    array = Foreign()
    array.__array_interface__ = {**backing.__array_interface__, **change}
    with pytest.raises(penstock.Error):
        penstock.asarray(array)
