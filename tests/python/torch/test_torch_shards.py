"""pt.Shards: tar shards for torch's loader and ours, in the same order and with the same values."""

import io
import pickle
import tarfile

import pytest
import torch
import torch.utils.data as torch_data

import penstock
import penstock.torch as pt

COUNTS = (5, 3, 9)


def file_of(value):
    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


@pytest.fixture
def shards(tmp_path):
    first = 0
    for number, count in enumerate(COUNTS):
        with tarfile.open(tmp_path / f"{number}.tar", "w") as tar:
            for i in range(first, first + count):
                fields = {
                    "pt": file_of({"x": torch.full((2, 3), float(i)), "n": i}),
                    "cls": b"%d" % i,
                    "txt": b"t%d" % i,
                }
                for name, content in fields.items():
                    info = tarfile.TarInfo(f"{i:04}.{name}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        first += count
    return str(tmp_path / "{0..2}.tar")


def test_samples_are_torchs_tensors(shards):
    dataset = pt.Shards(shards, index=False)
    assert len(dataset) == sum(COUNTS)
    sample = dataset[6]
    assert list(sample) == ["__key__", "pt", "cls", "txt"]
    assert torch.equal(sample["pt"]["x"], torch.full((2, 3), 6.0))
    assert (sample["__key__"], sample["cls"], sample["txt"]) == ("0006", 6, "t6")
    assert dataset[-1]["cls"] == 16
    assert isinstance(dataset, torch_data.Dataset)
    raw = pt.Shards(shards, "txt", raw=True, index=False)
    assert raw[3]["txt"] == b"t3"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("keys", [None, ["pt", "cls"]])
def test_both_loaders_give_the_same(shards, workers, keys):
    dataset = pt.Shards(shards, keys, index=False)
    ours = list(pt.DataLoader(dataset, batch_size=4, num_workers=workers))
    theirs = list(torch_data.DataLoader(dataset, batch_size=4, num_workers=workers))
    assert len(ours) == len(theirs) == 5
    for mine, their in zip(ours, theirs, strict=True):
        assert list(mine) == list(their)
        assert torch.equal(mine["pt"]["x"], their["pt"]["x"])
        assert torch.equal(mine["pt"]["n"], their["pt"]["n"])
        assert torch.equal(mine["cls"], their["cls"])
        assert mine.get("txt") == their.get("txt")


def test_a_shuffle_takes_each_sample_once_and_resumes(shards):
    def made():
        return pt.DataLoader(pt.Shards(shards, ["cls"], index=False), batch_size=3, shuffle=True)

    torch.manual_seed(3)
    loader = made()
    iterator = iter(loader)
    taken = [next(iterator)["cls"].tolist() for _ in range(2)]
    state = loader.state_dict()
    rest = [batch["cls"].tolist() for batch in iterator]
    assert sorted(n for batch in taken + rest for n in batch) == list(range(17))
    again = made()
    again.load_state_dict(state)
    assert [batch["cls"].tolist() for batch in again] == rest


def test_it_is_pickled_mapped_and_streamed(shards):
    dataset = pickle.loads(pickle.dumps(pt.Shards(shards, ["cls", "pt"], index=False)))
    assert dataset[2]["cls"] == 2
    stream = pt.Stream(penstock.stream(penstock.shards(shards, ["cls"], index=False)))
    assert [int(s["cls"]) for s in stream] == list(range(17))
    split = torch_data.random_split(dataset, [10, 7], torch.Generator().manual_seed(1))
    assert sorted(s["cls"] for part in split for s in part) == list(range(17))
