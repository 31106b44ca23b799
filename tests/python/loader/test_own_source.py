"""`files(names, source=function)`: files that a function of the program opens."""

from __future__ import annotations

import gc
import io
import pickle
import weakref

import numpy as np
import pytest
from own_sources import ways_to_give

import penstock


def content(number):
    file = io.BytesIO()
    np.save(file, np.full(4, number, np.float32))
    return file.getvalue()


STORE = {f"store://{i % 2}/{i}.npy": content(i) for i in range(6)}


def from_store(name):
    return STORE[name]


def first(batch):
    return np.asarray(batch)[:, 0].tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_are_what_the_function_opens(workers):
    clips = penstock.files(list(STORE), source=from_store)
    assert clips.paths == list(STORE)
    assert [first(b) for b in penstock.DataLoader(clips, batch_size=3, num_workers=workers)] == [[0, 1, 2], [3, 4, 5]]
    assert clips[4].tolist() == [4, 4, 4, 4]


def test_the_function_gives_bytes_paths_files_or_sources(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(content(7))
    makers = ways_to_give(path)
    clips = penstock.files(list(makers), source=lambda name: makers[name]())
    for i, name in enumerate(makers):
        assert clips[i].tolist() == [7] * 4, name


def test_bytes_are_content_though_they_look_like_a_path():
    assert bytes(penstock.files(["x"], raw=True, source=lambda name: b"P6 1 1")[0].tolist()) == b"P6 1 1"


def test_classes_types_and_pickles():
    clips = penstock.files(list(STORE), source=from_store, class_folders=True, dtype="float64")
    assert clips.classes == ["0", "1"]
    for dataset in (clips, pickle.loads(pickle.dumps(clips))):
        assert dataset[3][0].dtype == "float64"
        assert dataset[3][1] == 1


def test_what_it_raises_keeps_its_type_and_names_the_sample():
    clips = penstock.files(["store://missing"], source=from_store)
    with pytest.raises(KeyError) as caught:
        next(iter(penstock.DataLoader(clips, num_workers=1)))
    assert "store://missing" in str(caught.value)
    with pytest.raises(penstock.DTypeMismatchError, match="found an object of type int, expected a path"):
        penstock.files(["x"], source=lambda name: 3)[0]


def test_what_is_no_function_and_patterns_are_refused():
    with pytest.raises(penstock.DTypeMismatchError, match="source= takes a function"):
        penstock.files(["x"], source="s3")
    with pytest.raises(penstock.InvalidArgumentError, match="list of the paths"):
        penstock.files("store://*", source=from_store)


def test_the_function_goes_with_the_dataset():
    class Opener:
        def __call__(self, name):
            return STORE[name]

    opener = Opener()
    seen = weakref.ref(opener)
    clips = penstock.files(list(STORE), source=opener).cast("float64")
    opener.clips = clips  # a circle
    del opener
    gc.collect()
    assert clips[1].tolist() == [1] * 4
    del clips
    gc.collect()
    assert seen() is None
