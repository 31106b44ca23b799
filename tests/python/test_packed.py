"""pack and packed: the same samples and batches as from the small files, in files that safetensors itself reads."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import penstock
import penstock.torch


def clips(folder: Path, lengths: list[int]) -> list[dict]:
    folder.mkdir()
    samples = []
    for i, length in enumerate(lengths):
        sample = {"x": torch.randn(length, 3), "label": i, "weight": (0.5 * i, i % 3 == 0)}
        torch.save(sample, folder / f"{i:04d}.pt")
        samples.append(sample)
    return samples


LENGTHS = {"equal": [4] * 50, "many": [i % 7 for i in range(50)], "two": [2] * 20 + [3] * 20}


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("shard_bytes", [1, 500, 1 << 28])
def test_gives_the_samples_back(tmp_path, lengths, shard_bytes):
    samples = clips(tmp_path / "clips", lengths)
    done = penstock.pack(penstock.files(tmp_path / "clips"), tmp_path / "shards", shard_bytes=shard_bytes)
    shards = sorted((tmp_path / "shards").iterdir())
    assert done == {
        "samples": len(samples),
        "shards": len(shards),
        "bytes": sum(shard.stat().st_size for shard in shards),
    }
    back = penstock.packed(tmp_path / "shards")
    assert len(back) == len(samples)
    for sample, found in zip(samples, back, strict=True):
        assert np.array_equal(np.asarray(found["x"]), sample["x"].numpy())
        assert found["label"].item() == sample["label"]
        assert isinstance(found["weight"], tuple)
        assert tuple(part.item() for part in found["weight"]) == sample["weight"]


def test_safetensors_reads_the_shards(tmp_path):
    samples = clips(tmp_path / "clips", [3, 5, 0, 2])
    penstock.pack(penstock.files(tmp_path / "clips"), tmp_path / "shards")
    arrays = load_file(tmp_path / "shards" / "00000.safetensors")
    assert set(arrays) == {"x", "x.offsets", "label", "weight.0", "weight.1"}
    assert arrays["x.offsets"].tolist() == [0, 3, 8, 8, 10]
    assert torch.equal(arrays["x"], torch.cat([sample["x"] for sample in samples]))
    assert arrays["label"].tolist() == [0, 1, 2, 3]
    assert arrays["weight.1"].dtype == torch.bool


@pytest.mark.parametrize("num_workers", [0, 2])
def test_batches_are_those_of_the_files(tmp_path, num_workers):
    clips(tmp_path / "clips", [1 + i * 5 % 7 for i in range(60)])
    penstock.pack(penstock.files(tmp_path / "clips"), tmp_path / "shards", shard_bytes=700)

    def batches(dataset):
        generator = torch.Generator().manual_seed(3)
        loader = penstock.torch.DataLoader(
            dataset, 8, shuffle=True, num_workers=num_workers, collate_fn=penstock.torch.pad(), generator=generator
        )
        return list(loader)

    wanted = batches(penstock.files(tmp_path / "clips"))
    found = batches(penstock.torch.Packed(tmp_path / "shards"))
    assert len(wanted) == len(found) == 8
    for one, other in zip(wanted, found, strict=True):
        torch.testing.assert_close(other, one, rtol=0, atol=0)


def test_what_any_dataset_gives_can_be_packed(tmp_path):
    rows = penstock.rows(np.arange(24, dtype=np.uint8).reshape(6, 4))
    both = penstock.subset(penstock.zip(rows, rows), [5, 0, 3])
    assert penstock.pack(both, tmp_path / "s")["samples"] == 3
    back = penstock.packed(tmp_path / "s")
    assert [np.asarray(part).tolist() for part in back[0]] == [[20, 21, 22, 23]] * 2
    assert len(penstock.packed(str(tmp_path / "s" / "*.safetensors"))) == 3


def test_pickles_as_its_path(tmp_path):
    penstock.pack(penstock.rows(np.arange(6)), tmp_path / "s")
    back = pickle.loads(pickle.dumps(penstock.packed(tmp_path / "s")))
    assert [sample.item() for sample in back] == [0, 1, 2, 3, 4, 5]


def test_bad_input(tmp_path):
    dataset = penstock.rows(np.arange(6))
    penstock.pack(dataset, tmp_path / "s")
    with pytest.raises(penstock.InvalidArgumentError, match="new folder"):
        penstock.pack(dataset, tmp_path / "s")
    with pytest.raises(penstock.InvalidArgumentError, match="shard_bytes=0"):
        penstock.pack(dataset, tmp_path / "t", shard_bytes=0)
    with pytest.raises(penstock.DTypeMismatchError, match="Dataset"):
        penstock.pack([1, 2], tmp_path / "t")
    with pytest.raises(FileNotFoundError):
        penstock.packed(tmp_path / "none")
    penstock.save(np.arange(6), tmp_path / "plain.safetensors")
    with pytest.raises(penstock.InvalidArgumentError, match="not written by pack"):
        penstock.packed(tmp_path / "plain.safetensors")
    torch.save({"name": "text", "x": torch.ones(2)}, tmp_path / "text.pt")
    with pytest.raises(penstock.UnsupportedError, match=r"text\.pt: found a string at \['name'\]"):
        penstock.pack(penstock.files(tmp_path / "text.pt"), tmp_path / "t")
    assert penstock.pack(penstock.files(tmp_path / "text.pt", keys="x"), tmp_path / "t")["samples"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain.safetensors", "s", "t", "text.pt"]


@pytest.mark.parametrize("array", [np.array(["a", "b"]), np.zeros(2, "D"), np.zeros(2, [("a", "i4")])], ids=str)
def test_what_a_shard_has_no_type_for_is_named_by_its_sample(tmp_path, array):
    np.save(tmp_path / "odd.npy", array)
    with pytest.raises(penstock.UnsupportedError, match="which has no type for") as found:
        penstock.pack(penstock.files(tmp_path / "odd.npy"), tmp_path / "shards")
    assert found.value.path == str(tmp_path / "odd.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["odd.npy"]


def test_a_key_that_safetensors_keeps_for_itself_is_packed(tmp_path):
    torch.save({"__metadata__": torch.ones(2), "x": 3}, tmp_path / "odd.pt")
    penstock.pack(penstock.files(tmp_path / "odd.pt"), tmp_path / "shards")
    sample = penstock.packed(tmp_path / "shards")[0]
    assert sample["__metadata__"].tolist() == [1, 1]
    assert sample["x"].item() == 3


@pytest.fixture
def shards(tmp_path):
    """A folder of four shards."""
    penstock.pack(penstock.rows(np.arange(3000.0).reshape(-1, 3)), tmp_path / "shards", shard_bytes=6000)
    assert len(list((tmp_path / "shards").iterdir())) == 4
    return tmp_path / "shards"


def test_a_copy_under_the_name_of_another_shard_is_noticed(shards):
    shutil.copy(shards / "00000.safetensors", shards / "00001.safetensors")
    for pattern in (shards, shards / "*.safetensors"):
        with pytest.raises(
            penstock.NotFoundError, match=r"'00001.safetensors' \(the file of that name is another shard"
        ):
            penstock.packed(pattern)


def test_a_shard_of_another_packing_is_noticed(shards, tmp_path):
    penstock.pack(penstock.rows(np.arange(900.0).reshape(-1, 3)), tmp_path / "other", shard_bytes=6000)
    shutil.copy(tmp_path / "other" / "00001.safetensors", shards)
    with pytest.raises(penstock.NotFoundError, match="another packing"):
        penstock.packed(shards)


def test_a_copy_beside_the_shards_is_noticed(shards):
    shutil.copy(shards / "00002.safetensors", shards / "copy.safetensors")
    with pytest.raises(
        penstock.CorruptError, match=r"'00002.safetensors' and 'copy.safetensors' are both shard 2 of 4"
    ):
        penstock.packed(shards)


def test_two_whole_packings_may_lie_in_one_folder(shards):
    for shard in sorted(shards.iterdir()):
        shutil.copy(shard, shards / f"b{shard.name}")
    assert len(penstock.packed(shards)) == 2000
    assert len(penstock.packed(shards / "b*")) == 1000
    assert len(penstock.packed(shards / "00001.safetensors")) == 250
