"""Slices, windows and nested batches of penstock.torch: what torch's own functions give."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import token_files
import torch
import torch.utils.data as td

import penstock
import penstock.torch as pt


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    """A file of 1,000 tokens, all different."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.npy"
    np.save(path, np.arange(1000, dtype="i4"))
    return path


def test_windows_are_those_of_unfold(tokens):
    whole = torch.arange(1000, dtype=torch.int32)
    data = pt.Rows(tokens).windows(32, stride=8, shift=1)
    assert type(data) is pt.Rows
    pairs = [data[i] for i in range(len(data))]
    torch.testing.assert_close(torch.stack([x for x, _ in pairs]), whole[:-1].unfold(0, 32, 8))
    torch.testing.assert_close(torch.stack([y for _, y in pairs]), whole[1:].unfold(0, 32, 8))
    x, y = next(iter(pt.DataLoader(data.cast(torch.int64), batch_size=len(data), num_workers=2)))
    assert x.dtype == y.dtype == torch.int64
    torch.testing.assert_close(y, whole[1:].unfold(0, 32, 8).long())


def test_slices_are_those_of_split(tokens):
    lengths = [100, 1, 0, 899]
    data = pt.Rows(tokens).slices(lengths=torch.tensor(lengths))
    for sample, part in zip(data, torch.arange(1000, dtype=torch.int32).split(lengths), strict=False):
        torch.testing.assert_close(sample, part)
    assert [len(sample) for sample in data.__getitems__([0, 2, 1])] == [100, 0, 1]
    padded = next(iter(pt.DataLoader(data, batch_size=4, collate_fn=pt.pad(lengths=True))))
    assert padded["lengths"].tolist() == lengths


@pytest.mark.parametrize("workers", [0, 2])
def test_any_loader_takes_them(tokens, workers):
    data = pt.Rows(tokens).windows(100, shift=1)
    ours = list(pt.DataLoader(data, batch_size=4))
    theirs = list(td.DataLoader(data, batch_size=4, num_workers=workers))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(list(one), list(other))
    again = pickle.loads(pickle.dumps(data))
    torch.testing.assert_close(again[3], data[3])


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: rows.random_windows(20, 50, 1),
        lambda rows: rows.slices(lengths=[7] * 142 + [6]).windows(20, shift=1, join="shuffled"),
    ],
    ids=["random", "joined"],
)
def test_a_resumed_loader_draws_the_same(tokens, made):
    def loader():
        data = made(pt.Rows(tokens))
        return pt.DataLoader(
            data, batch_size=4, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(5)
        )

    first = loader()
    epochs = [[x.tolist() for x, _ in first] for _ in range(2)]
    assert epochs[0] != epochs[1]
    again = loader()
    list(again)
    batches = iter(again)
    for _ in range(3):
        next(batches)
    state = again.state_dict()
    resumed = loader()
    resumed.load_state_dict(state)
    assert [x.tolist() for x, _ in resumed] == epochs[1][3:]


def test_documents_of_several_files_resume(tmp_path):
    for shard in range(3):
        corpus = [[np.arange(n, dtype="uint16") + 100 * shard] for n in (7, 30, 1, 40 + shard)]
        token_files.megatron(tmp_path / f"train_{shard}", corpus)
    data = pt.Documents(tmp_path / "train_*.idx").windows(20, shift=1, join="shuffled").cast(torch.int64)
    one = penstock.rows(
        np.concatenate([penstock.load(tmp_path / f"train_{i}.idx")["tokens"].numpy() for i in range(3)])
    )
    lengths = [n for i in range(3) for n in (7, 30, 1, 40 + i)]
    wanted = one.slices(lengths=lengths).windows(20, shift=1, join="shuffled").cast("int64")
    assert len(data) == len(wanted)
    assert [x.tolist() for x, _ in data] == [x.tolist() for x, _ in wanted]

    def loader():
        generator = torch.Generator().manual_seed(5)
        return pt.DataLoader(data, batch_size=2, shuffle=True, num_workers=2, generator=generator)

    whole = [y.tolist() for _, y in loader()]
    first = loader()
    batches = iter(first)
    for _ in range(2):
        next(batches)
    resumed = loader()
    resumed.load_state_dict(first.state_dict())
    assert [y.tolist() for _, y in resumed] == whole[2:]


def samples(lengths=(3, 5, 1, 4)):
    torch.manual_seed(0)
    return [{"x": torch.randn(n, 2), "y": i, "z": (torch.tensor(float(i)), "text")} for i, n in enumerate(lengths)]


class Samples(td.Dataset):
    """Not one of Penstock's."""

    def __init__(self, parts):
        self.parts = parts

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, index):
        return self.parts[index]


@pytest.fixture
def folder(tmp_path):
    for i, sample in enumerate(samples()):
        torch.save(sample, tmp_path / f"{i}.pt")
    return tmp_path


def test_nested_is_torchs(folder):
    expected = torch.nested.nested_tensor([sample["x"] for sample in samples()], layout=torch.jagged)
    native = pt.DataLoader(pt.Files(folder), 4, collate_fn=pt.nested())
    assert native.native is not None
    for loader in (native, td.DataLoader(Samples(samples()), 4, collate_fn=pt.nested())):
        (batch,) = loader
        assert batch["x"].is_nested
        assert batch["x"].layout == torch.jagged
        torch.testing.assert_close(batch["x"].values(), expected.values())
        torch.testing.assert_close(batch["x"].offsets(), expected.offsets())
        assert batch["x"]._max_seqlen == 5
        assert batch["y"].tolist() == [0, 1, 2, 3]
        assert batch["z"][0].tolist() == [0, 1, 2, 3]
        assert torch.nn.Linear(2, 3)(batch["x"]).values().shape == (13, 3)


def test_joined_is_the_same_on_both_roads(folder):
    for rule in (pt.ragged(cu_seqlens=True), pt.ragged(cu_seqlens=True, keys="x")):
        (native,) = pt.DataLoader(pt.Files(folder), 4, collate_fn=rule)
        (other,) = pt.DataLoader(Samples(samples()), 4, collate_fn=rule)
        for batch in (native, other):
            torch.testing.assert_close(batch["x"]["values"], torch.cat([sample["x"] for sample in samples()]))
            assert batch["x"]["cu_seqlens"].tolist() == [0, 3, 8, 9, 13]
            assert batch["x"]["cu_seqlens"].dtype == torch.int32
            assert batch["x"]["max_seqlen"] == 5
            assert batch["z"][0].tolist() == [0, 1, 2, 3]


def test_nested_of_tensors_alone_and_behind_a_map(tokens):
    data = pt.Rows(tokens).slices(lengths=[300, 600, 100])
    (batch,) = pt.DataLoader(data, 3, collate_fn=pt.nested())
    assert [len(part) for part in batch.unbind()] == [300, 600, 100]
    (mapped,) = pt.DataLoader(data.map(lambda x: x + 1), 3, collate_fn=pt.nested())
    torch.testing.assert_close(mapped.values(), batch.values() + 1)


def test_a_dict_of_these_names_stays_a_dict():
    values = [{"values": torch.ones(n), "cu_seqlens": torch.tensor(n), "max_seqlen": n} for n in (2, 3)]
    for dataset in (penstock.dataset([{k: np.asarray(v) for k, v in one.items()} for one in values]), Samples(values)):
        (batch,) = pt.DataLoader(dataset, 2, collate_fn=pt.nested())
        assert batch.keys() == {"values", "cu_seqlens", "max_seqlen"}
        assert batch["values"].is_nested
        assert batch["cu_seqlens"].tolist() == [2, 3]


def test_rules_are_values():
    for rule in (pt.nested(), pt.nested("x"), pt.ragged(), pt.ragged(True), pt.ragged(True, ["x", "y"])):
        assert pickle.loads(pickle.dumps(rule)) == copy.copy(rule) == rule
    assert pt.nested() != pt.ragged(True)
    assert pt.nested("x") != pt.nested()


def test_what_cannot_be_joined_is_refused(folder):
    for dataset in (pt.Files(folder), Samples(samples((2, 2, 2, 2)))):
        with pytest.raises(KeyError, match="tokens"):
            list(pt.DataLoader(dataset, 4, collate_fn=pt.nested("tokens")))
    for shapes in (((2, 3), (2, 4)), ((2,), (2, 3))):
        parts = [torch.zeros(shape) for shape in shapes]
        with pytest.raises(penstock.ShapeMismatchError, match="joining changes dimension 0 alone"):
            list(pt.DataLoader(Samples(parts), 2, collate_fn=pt.nested()))
    with pytest.raises(penstock.DTypeMismatchError):
        list(pt.DataLoader(Samples([torch.zeros(2), torch.zeros(2, dtype=torch.int8)]), 2, collate_fn=pt.nested()))
    with pytest.raises(ValueError, match="int32"):
        list(pt.DataLoader(Samples([torch.empty(1 << 30, 0)] * 2), 2, collate_fn=pt.ragged(True)))
    with pytest.raises(ValueError, match="cu_seqlens"):
        pt.ragged(keys="x")
