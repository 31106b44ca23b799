"""Files paired by name, fields, choices and crops at one place, as torch's programs see them."""

from __future__ import annotations

import pickle
import warnings

import pytest

import penstock

torch = pytest.importorskip("torch")
import torch.utils.data as td  # noqa: E402

import penstock.torch as pt  # noqa: E402


@pytest.fixture
def sides(tmp_path):
    """Images 1 to 4 and masks 2 to 5, with their number in each."""
    for name, numbers in ("images", range(1, 5)), ("masks", range(2, 6)):
        (tmp_path / name).mkdir()
        for number in numbers:
            torch.save(torch.tensor([number]), tmp_path / name / f"{number}.pt")
    return pt.Files(tmp_path / "images"), pt.Files(tmp_path / "masks")


def pairs_of(dataset, **options):
    (batch,) = pt.DataLoader(dataset, batch_size=len(dataset), **options)
    return [part.flatten().tolist() for part in (batch.values() if isinstance(batch, dict) else batch)]


def test_zip_says_that_names_do_not_pair(sides):
    with pytest.warns(penstock.PairWarning) as caught:
        pairs = pt.Zip(*sides)
    assert [warning.filename for warning in caught] == [__file__]
    assert pairs_of(pairs) == [[1, 2, 3, 4], [2, 3, 4, 5]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.loads(pickle.dumps(pairs))
        assert pairs_of(td.StackDataset(*sides)) == [[1, 2, 3, 4], [2, 3, 4, 5]]
        pt.Zip(sides[0], torch.zeros(4, 1))


def test_zip_by_name(sides):
    images, masks = sides
    with pytest.raises(ValueError, match="none in dataset 'mask'"):
        pt.Zip(image=images, mask=masks, by="stem")
    pairs = pt.Zip(image=images, mask=td.Subset(masks, [2, 1, 0, 3]), by="stem", missing="drop")
    assert pairs_of(pairs) == [[2, 3, 4], [2, 3, 4]]
    assert pairs_of(pickle.loads(pickle.dumps(pairs)), num_workers=2) == pairs_of(pairs)
    assert pairs_of(pt.Zip(images, masks, by=lambda path: path[-4], missing="drop")) == pairs_of(pairs)
    assert "collated natively" in pt.DataLoader(pairs, 2).explain()
    with pytest.raises(ValueError, match="by="):
        pt.Zip(images, masks, missing="drop")
    with pytest.raises(TypeError, match="part 1"):
        pt.Zip(images, masks.map(abs), by="stem")


def test_fields(sides):
    images, _ = sides
    templates = {"image": "{name}", "mask": "../masks/{stem}.pt"}
    with pytest.raises(FileNotFoundError, match=r"masks/1\.pt"):
        images.fields(templates)
    samples = images.fields(templates, missing="drop")
    assert isinstance(samples[0]["mask"], torch.Tensor)
    assert pairs_of(samples, num_workers=2) == [[2, 3, 4], [2, 3, 4]]
    assert pairs_of(samples.map(lambda sample: {"sum": sample["image"] + sample["mask"]})) == [[4, 6, 8]]


def test_choice_follows_the_loaders_seed():
    chosen = pt.Choice(torch.arange(100), penstock.rows(torch.arange(100) + 1000), weights=[1, 1])

    def epochs(workers):
        loader = pt.DataLoader(chosen, 100, num_workers=workers, generator=torch.Generator().manual_seed(4))
        return [next(iter(loader)) for _ in range(2)]

    first, second = epochs(0)
    assert torch.equal(first % 1000, torch.arange(100))
    assert 20 < (first >= 1000).sum() < 80
    assert not torch.equal(first, second)
    assert all(map(torch.equal, epochs(3), (first, second)))
    with pytest.raises(penstock.ShapeMismatchError):
        pt.Choice(torch.arange(3), torch.arange(4))


def test_scales_crop_at_one_place():
    audio, mel = torch.arange(400).expand(20, 400), torch.arange(11).expand(20, 11)
    both = pt.Zip(audio=audio.contiguous(), mel=mel.contiguous()).random_crop(3, scales={"audio": 40, "mel": 1})
    (batch,) = pt.DataLoader(both, 20)
    assert batch["audio"].shape == (20, 120)
    assert torch.equal(batch["audio"][:, 0], batch["mel"][:, 0] * 40)
    assert len(batch["mel"][:, 0].unique()) > 3
