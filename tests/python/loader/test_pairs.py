"""Samples of several datasets put together: by place, by name, by templates, by chance, and cropped at one place."""

from __future__ import annotations

import os
import pickle
import re
import warnings

import numpy as np
import pytest

import penstock


def write(folder, names, behind=""):
    """Files whose content is the number in their name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        np.save(folder / f"{name}{behind}.npy", np.array([name]))
    return penstock.files(folder)


def values(dataset):
    """The number in each part of each sample."""
    samples = [dataset[i] for i in range(len(dataset))]
    return [tuple(int(part[0]) for part in (s.values() if isinstance(s, dict) else s)) for s in samples]


@pytest.fixture
def sides(tmp_path):
    """Images 1 to 4 and masks 2 to 5."""
    return write(tmp_path / "images", range(1, 5)), write(tmp_path / "masks", range(2, 6))


def test_zip_says_once_that_names_do_not_pair(sides):
    with pytest.warns(penstock.PairWarning, match=r"images/2\.npy is paired with .*masks/3\.npy.*join\(\)") as caught:
        pairs = penstock.zip(*sides)
    assert [warning.filename for warning in caught] == [__file__]
    assert values(pairs) == [(1, 2), (2, 3), (3, 4), (4, 5)]
    with pytest.warns(penstock.PairWarning) as caught:
        named = penstock.zip(image=sides[0], mask=sides[1])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert values(pickle.loads(pickle.dumps(named))) == values(pairs)
        assert values(pickle.loads(pickle.dumps(pairs))) == values(pairs)
        penstock.zip(sides[0], sides[0], penstock.rows(np.zeros((4, 1))))
        with pytest.raises(penstock.PairWarning):
            penstock.zip(*sides)


def test_zip_is_silent_about_names_that_say_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        masks = write(tmp_path / "masks", range(1, 5), "_mask")
        images = write(tmp_path / "images", range(1, 5))
        penstock.zip(images, masks)
        penstock.zip(images.take(3), images.skip(1))
        penstock.zip(images, write(tmp_path / "others", range(100, 104)))


def test_join_pairs_by_name(sides, tmp_path):
    images, masks = sides
    with pytest.raises(
        ValueError, match=r"1 file has none in dataset 0: .*masks/5\.npy; 1 file has none in dataset 1: "
    ):
        penstock.join(images, masks)
    joined = penstock.join(images, masks, by="stem", missing="drop")
    assert values(joined) == [(2, 2), (3, 3), (4, 4)]
    assert joined.paths == images.paths[1:]
    assert values(penstock.join({"a": masks, "b": images}, missing="drop")) == values(joined)
    named = penstock.join(image=images, mask=images)
    assert list(named[0]) == ["image", "mask"]
    assert values(pickle.loads(pickle.dumps(joined))) == values(joined)
    for method in (lambda d: d.map(lambda s: s), lambda d: d.cast("int32"), lambda d: penstock.subset(d, [3, 2, 1])):
        assert sorted(values(penstock.join(method(images), masks, missing="drop"))) == values(joined)
    raw = penstock.files(tmp_path / "masks" / "*.npy", raw=True)
    assert penstock.join(images, raw, missing="drop")[0][1].dtype.name == "uint8"


def test_join_by_what_the_program_says(tmp_path):
    write(tmp_path / "mel", [1, 2, 3], "-mel")
    write(tmp_path / "pitch", [3, 2, 1], "-pitch")
    mel, pitch = (penstock.files(tmp_path / name) for name in ("mel", "pitch"))
    with pytest.raises(ValueError, match=r"'1-mel'.*'1-pitch'.*function"):
        penstock.join(mel, pitch, missing="drop")
    expected = [(1, 1), (2, 2), (3, 3)]
    assert values(penstock.join(mel, pitch, by=lambda path: os.path.basename(path).split("-")[0])) == expected
    by = re.compile(r"(\d+)-\w+\.npy$")
    joined = penstock.join(mel, pitch, by=by)
    assert values(joined) == expected
    assert values(pickle.loads(pickle.dumps(joined))) == expected
    assert values(penstock.join(mel, pitch, by=re.compile(r"(\d+)(-)\w+\.npy$"))) == expected
    assert values(penstock.join(mel, pitch, by=re.compile(r"\d+-(?=\w+\.npy$)"))) == expected
    with pytest.raises(ValueError, match=r"finds nothing in the path"):
        penstock.join(mel, pitch, by=re.compile(r"\d+-mel\.npy$"))
    with pytest.raises(ZeroDivisionError):
        penstock.join(mel, pitch, by=lambda path: 1 / 0)
    with pytest.raises(TypeError, match=r"type int, expected text"):
        penstock.join(mel, pitch, by=len)


def test_join_by_path_and_name(tmp_path):
    for side, names in ("images", ("cat", "dog")), ("masks", ("cat", "dog")):
        for name in names:
            write(tmp_path / side / name, [1, 2])
    images, masks = (penstock.files(tmp_path / side / "**/*.npy") for side in ("images", "masks"))
    with pytest.raises(ValueError, match=r"two files of dataset 0 have the name '1': .*cat/1\.npy and .*dog/1\.npy"):
        penstock.join(images, masks)
    assert values(penstock.join(images, masks, by="path")) == [(1, 1), (2, 2)] * 2
    with pytest.raises(ValueError, match="two files"):
        penstock.join(images, masks, by="name")


def test_join_refuses_the_rest(sides):
    images, masks = sides
    for by in ("stern", 3, None):
        with pytest.raises(ValueError, match="by="):
            penstock.join(images, masks, by=by)
    with pytest.raises(ValueError, match="missing="):
        penstock.join(images, masks, missing="ignore")
    with pytest.raises(ValueError, match="not files"):
        penstock.join(images, penstock.rows(np.zeros((4, 1))))
    with pytest.raises(ValueError, match="names and without"):
        penstock.join(images, mask=masks)
    with pytest.raises(ValueError, match="nothing to join"):
        penstock.join()
    with pytest.raises(ValueError, match="behind the join"):
        penstock.join(images.random_flip(), images.random_flip())


def test_a_join_is_shuffled_and_goes_on(tmp_path):
    names = list(range(40))
    images, masks = write(tmp_path / "images", names), write(tmp_path / "masks", names[::-1])
    joined = penstock.join(image=images, mask=masks)

    def loader():
        return penstock.DataLoader(joined, batch_size=7, shuffle=True, seed=3, num_workers=2)

    first = loader()
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    rest = [batch["image"].tolist() for batch in batches]
    second = loader()
    second.load_state_dict(state)
    assert [batch["mask"].tolist() for batch in second] == rest


def test_names_that_are_no_utf8(tmp_path):
    for side in "ab":
        (tmp_path / side).mkdir()
        for name in (b"\xff", b"\xfe{stem}"):
            with open(os.fsencode(tmp_path / side) + b"/" + name + b".npy", "wb") as file:
                np.save(file, np.array([name[0]]))
    a, b = (penstock.files(tmp_path / side) for side in "ab")
    assert values(penstock.join(a, b)) == [(254, 254), (255, 255)]
    assert values(penstock.join(a, b, by=os.path.basename)) == [(254, 254), (255, 255)]
    assert values(a.fields({"x": "{name}", "y": "../b/{stem}.npy"})) == [(254, 254), (255, 255)]


def test_fields_follow_from_templates(tmp_path):
    images = write(tmp_path / "images", [1, 2, 3])
    write(tmp_path / "masks", [1, 3], "_mask")
    templates = {"image": "{name}", "mask": "../masks/{stem}_mask.npy"}
    with pytest.raises(FileNotFoundError, match=r"1 file .*masks/2_mask\.npy \(mask\)") as caught:
        images.fields(templates)
    assert caught.value.path == str(tmp_path / "masks/2_mask.npy")
    samples = images.fields(templates, missing="drop")
    assert values(samples) == [(1, 1), (3, 3)]
    assert list(samples[0]) == ["image", "mask"]
    assert samples.paths == [images.paths[0], images.paths[2]]
    assert values(pickle.loads(pickle.dumps(samples))) == values(samples)
    unchecked = images.fields(templates, check=False)
    assert len(unchecked) == 3
    with pytest.raises(FileNotFoundError, match="2_mask"):
        unchecked[1]
    raw = images.fields(templates, missing="drop", raw="mask")
    assert [part.dtype.name for part in raw[0].values()] == ["int64", "uint8"]
    assert images.fields({"x": "{name}"}, raw=True)[0]["x"].dtype.name == "uint8"
    assert penstock.files(images.paths, raw=True).fields({"x": "{name}"}, raw=False)[0]["x"].dtype.name == "int64"
    batch = next(iter(penstock.DataLoader(samples.map(lambda s: s["image"] + s["mask"]), batch_size=2)))
    assert batch.tolist() == [[2], [6]]


def test_fields_of_files_that_the_program_opens(tmp_path):
    write(tmp_path, [1, 2])
    stored = penstock.files(["s://1.npy", "s://2.npy"], source=lambda path: tmp_path / path.removeprefix("s://"))
    samples = stored.fields({"a": "{name}", "b": "{stem}.npy"})
    del stored
    assert values(samples) == [(1, 1), (2, 2)]


def test_fields_refuse_the_rest(tmp_path):
    files = write(tmp_path, [1])
    for templates, text in (({}, "no fields"), ({"x": "{stem"}, "brace"), ({"x": "{step}"}, "did you mean 'stem'")):
        with pytest.raises(ValueError, match=text):
            files.fields(templates)
    with pytest.raises(TypeError, match="expected a dict"):
        files.fields("{stem}.npy")
    with pytest.raises(ValueError, match="missing="):
        files.fields({"x": "{name}"}, missing="later")
    with pytest.raises(ValueError, match="come behind"):
        files.cast("float32").fields({"x": "{name}"})


def test_choice_draws_by_seed_epoch_and_index():
    parts = [penstock.rows(np.arange(500) + 1000 * k) for k in range(3)]
    chosen = penstock.choice(parts, [1, 2, 0])

    def epoch(number, workers=1, seed=5):
        loader = penstock.DataLoader(chosen, batch_size=500, num_workers=workers, seed=seed)
        loader.set_epoch(number)
        (batch,) = loader
        return np.asarray(batch)

    first = epoch(3)
    assert (first % 1000 == np.arange(500)).all()
    counts = np.bincount(first // 1000, minlength=3)
    assert counts[2] == 0
    assert abs(counts[1] - 500 * 2 / 3) < 5 * np.sqrt(500 * 2 / 9)
    assert (epoch(3, 4) == first).all()
    assert (epoch(4) != first).any()
    assert (epoch(3, seed=6) != first).any()
    assert [int(chosen[i]) for i in range(500)] == epoch(0, seed=0).tolist()
    assert [int(pickle.loads(pickle.dumps(chosen))[i]) for i in range(9)] == [int(chosen[i]) for i in range(9)]
    ranked = [
        penstock.DataLoader(
            chosen, batch_size=10, seed=5, sampler=penstock.DistributedSampler(500, 2, rank, shuffle=False)
        )
        for rank in range(2)
    ]
    for rank, loader in enumerate(ranked):
        loader.set_epoch(3)
        assert np.concatenate([np.asarray(batch) for batch in loader]).tolist() == first[rank::2].tolist()


def test_choice_refuses_the_rest():
    four = penstock.rows(np.zeros((4, 1)))
    with pytest.raises(penstock.ShapeMismatchError, match="number 1 has 3 samples"):
        penstock.choice([four, four.take(3)])
    with pytest.raises(ValueError, match="nothing to choose"):
        penstock.choice([])
    for weights in ([], [1], [1, -1], [0, 0], [1, float("nan")]):
        with pytest.raises(ValueError, match="weight"):
            penstock.choice([four, four], weights)
    with pytest.raises(penstock.UnsupportedError, match="lengths"):
        penstock.lengths(penstock.choice([four, four]))


@pytest.mark.parametrize("workers", [0, 3])
def test_scales_crop_at_one_place(workers):
    """Audio of 160 elements a frame of its mel, which has a frame more: the crop is what NumPy cuts at the place."""
    random = np.random.default_rng(1)
    audio = random.standard_normal((50, 160 * 30 + 7)).astype("float32")
    mel = random.standard_normal((50, 80, 31)).astype("float32")
    pairs = penstock.zip(audio=penstock.rows(audio), mel=penstock.rows(mel), id=penstock.rows(np.arange(50)))
    cropped = penstock.DataLoader(
        pairs.random_crop(4, scales={"audio": 160, "mel": 1}), batch_size=10, shuffle=True, num_workers=workers, seed=2
    )
    begins = set()
    for batch in cropped:
        for x, y, i in zip(np.asarray(batch["audio"]), np.asarray(batch["mel"]), batch["id"].tolist(), strict=True):
            (begin,) = np.flatnonzero([np.array_equal(y, mel[i, :, b : b + 4]) for b in range(28)])
            assert np.array_equal(x, audio[i, 160 * begin : 160 * (begin + 4)])
            begins.add(int(begin))
    assert len(begins) > 10
    assert max(begins) <= 26


def test_scales_of_tuples_and_the_rest():
    pairs = penstock.zip(penstock.rows(np.arange(60).reshape(2, 30)), penstock.rows(np.arange(20).reshape(2, 10)))
    cropped = pairs.random_crop([2], scales=[3, 1])
    for dataset in (cropped, pickle.loads(pickle.dumps(cropped))):
        for i in range(2):
            a, b = dataset[i]
            assert a.tolist() == list(range(3 * int(b[0]), 3 * int(b[0]) + 6))
    for scales in ({}, {"0": 0}, {"0": 1.5}, [1, -1]):
        with pytest.raises((ValueError, TypeError)):
            pairs.random_crop(2, scales=scales)
    with pytest.raises(ValueError, match="keys beside scales"):
        pairs.random_crop(2, keys="x", scales={"x": 1})
    with pytest.raises(KeyError, match="'y'"):
        pairs.random_crop(2, scales={"y": 1})[0]


def test_one_flip_for_all_parts():
    """Parts of unlike sizes flip together, whatever their lengths."""
    a, b = (penstock.rows(np.tile(np.arange(length), (40, 1))) for length in (30, 7))
    pairs = penstock.zip(a=a, b=b)
    flipped = pairs.random_flip()
    sides = {(bool(s["a"][0] > 0), bool(s["b"][0] > 0)) for s in (flipped[i] for i in range(40))}
    assert sides == {(False, False), (True, True)}
