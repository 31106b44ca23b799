"""`penstock.torch.load(shared=True)`: tensors that go to other processes without a copy."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import pytest
import torch
from load_pairs import bytes_of

import penstock
import penstock.sharing
import penstock.torch as pt

STATE = {
    "model": {"w": torch.arange(300_000.0).reshape(300, 1000), "b": torch.ones(5, dtype=torch.bfloat16)},
    "turned": torch.arange(6.0).reshape(2, 3).T,
    "conj": torch.tensor([1 + 2j]).conj(),
    "grad": torch.ones(3, requires_grad=True),
    "empty": torch.empty(0, 2),
    "step": 17,
}


@pytest.fixture
def path(tmp_path):
    torch.save(STATE | {"tied": STATE["model"]["w"]}, tmp_path / "m.pt")
    return tmp_path / "m.pt"


def fill(state):
    """Run by another process: it sees the tensors of the first, and writes to them."""
    state["model"]["b"].fill_(float(state["model"]["w"][1, 1]) + state["step"])


def test_the_values_are_those_of_a_load(path):
    loaded, plain = pt.load(path, shared=True), pt.load(path)
    assert list(loaded) == list(plain)
    for name in ("turned", "conj", "grad", "empty"):
        assert torch.equal(loaded[name], plain[name])
        assert loaded[name].stride() == plain[name].stride()
        assert loaded[name].requires_grad == plain[name].requires_grad
    assert torch.equal(loaded["model"]["w"], plain["model"]["w"])
    assert loaded["tied"].data_ptr() == loaded["model"]["w"].data_ptr()
    assert loaded["model"]["w"].is_shared()
    again = io.BytesIO()
    pt.save(loaded["model"]["b"], again)
    assert len(again.getvalue()) < 10_000
    again.seek(0)
    assert torch.equal(torch.load(again, weights_only=True), plain["model"]["b"])


CORPUS = Path(__file__).parents[3] / "fuzz/corpus"


def parts_of(value, above=()):
    """What there is in it, to be compared."""
    kind = type(value).__name__
    if isinstance(value, torch.Tensor) and (value.layout != torch.strided or value.is_nested or value.is_quantized):
        return kind, repr(value)
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":
        place = value.stride() if value.numel() else None
        return kind, value.dtype, value.shape, place, value.requires_grad, value.is_conj(), bytes_of(value)
    if id(value) in above:
        return kind, "once more"
    if isinstance(value, dict):
        return kind, [(repr(key), parts_of(item, (*above, id(value)))) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return kind, [parts_of(item, (*above, id(value))) for item in value]
    return kind, value.tobytes() if kind == "ndarray" else None if hasattr(value, "__dict__") else repr(value)


@pytest.mark.parametrize("format", ["pt", "pt_legacy", "safetensors", "npy", "npz"])
@pytest.mark.filterwarnings("ignore")
def test_odd_files_load_alike(format):
    for path in sorted((CORPUS / format).iterdir()):
        if "object" in path.name:  # NumPy's arrays of objects, which come without memory of tensors
            continue
        try:
            plain = pt.load(path, unknown="keep")
        except Exception as error:
            with pytest.raises(type(error)):
                pt.load(path, unknown="keep", shared=True)
        else:
            assert parts_of(plain) == parts_of(pt.load(path, unknown="keep", shared=True)), path


def test_tensors_go_to_another_process_without_a_copy(path):
    loaded = pt.load(path, shared=True)
    loaded.pop("conj")  # whose view no pickle of torch's keeps
    loaded.pop("grad")  # torch sends none that is no leaf of its own
    process = torch.multiprocessing.get_context("spawn").Process(target=fill, args=(loaded,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert torch.equal(loaded["model"]["b"], torch.full((5,), 1018.0, dtype=torch.bfloat16))


def test_a_name_leads_to_them_too(path):
    loaded = pt.load(path, shared=True)
    name = penstock.sharing.share({key: loaded[key] for key in ("model", "turned", "grad", "empty", "step")})
    there = pt.attach(name)
    there["model"]["b"].fill_(3)
    assert loaded["model"]["b"].tolist() == [3] * 5
    assert there["turned"].stride() == (1, 3)
    assert there["grad"].requires_grad
    assert there["empty"].shape == (0, 2)
    assert there["step"] == 17
    assert penstock.sharing.attach(name)["model"]["w"].shape == (300, 1000)
    del loaded, there
    gc.collect()
    with pytest.raises(penstock.NotFoundError):
        pt.attach(name)


def test_a_description_that_reaches_behind_the_memory_is_refused(path, monkeypatch):
    loaded = pt.load(path, shared=True)
    described = penstock.sharing._described
    monkeypatch.setattr(penstock.sharing, "_described", lambda *given: ["tensor", 1 << 20, *described(*given)[2:]])
    name = penstock.sharing.share(loaded["model"]["w"])
    with pytest.raises(penstock.CorruptError, match="reaches behind the memory"):
        pt.attach(name)
    with pytest.raises(penstock.Error):
        penstock.sharing.attach(name)


@pytest.mark.parametrize("others", [{"mmap": True}])
def test_what_cannot_be_shared_is_refused(path, others):
    with pytest.raises(penstock.UnsupportedError, match="leave out one of"):
        pt.load(path, shared=True, **others)
    with pytest.raises(penstock.UnsupportedError, match="map_location='cpu'"):
        pt.load(path, lambda storage, place: storage, shared=True)
    with pytest.raises(penstock.InvalidArgumentError, match="beside ranks"):
        pt.load(path, report={})
    with pytest.raises(penstock.DTypeMismatchError, match="True or False"):
        pt.load(path, shared="yes")


def test_ranks_without_others_read_alone(path):
    report = {}
    assert pt.load(path, ranks="auto", report=report)["step"] == 17
    assert report["way"] == "alone"


def test_conjugated_and_negated_views_lie_in_the_block_with_their_values(tmp_path):
    base = torch.arange(6).reshape(2, 3).to(torch.complex64) * (1 + 2j)
    state = {"turned": base.T.conj(), "base": base, "alone": torch.arange(3.0)._neg_view(), "plain": torch.ones(2)}
    torch.save(state, tmp_path / "m.pt")
    loaded = penstock.load(tmp_path / "m.pt", shared=True)
    there = penstock.sharing.attach(penstock.sharing.share(loaded))
    for name, tensor in state.items():
        assert torch.equal(torch.from_dlpack(loaded[name]), tensor.resolve_conj().resolve_neg()), name
        assert there[name].equal(loaded[name]), name
        assert loaded[name].strides == penstock.load(tmp_path / "m.pt")[name].strides


def test_tensors_are_converted_on_their_way_into_the_block(path):
    loaded, plain = pt.load(path, shared=True, dtype=torch.float16), pt.load(path, dtype=torch.float16)
    assert parts_of(loaded) == parts_of(plain)
    assert loaded["tied"].data_ptr() == loaded["model"]["w"].data_ptr()
    name = penstock.sharing.share(loaded)
    assert torch.equal(pt.attach(name)["model"]["w"], plain["model"]["w"])
    torch.save({"w": torch.tensor([1e30])}, path)
    with pytest.raises(penstock.InvalidArgumentError, match="strict cast"):
        pt.load(path, shared=True, dtype=torch.float16, strict=True)
