"""`penstock.torch.Files(names, source=function)`: files that a function of the program opens."""

from __future__ import annotations

import copy
import io
import pickle
import time

import pytest
import torch
import torch.utils.data as td
from own_sources import ways_to_give

import penstock
import penstock.torch as pt


def content(number):
    file = io.BytesIO()
    torch.save({"x": torch.full((4,), float(number)), "y": number}, file)
    return file.getvalue()


NAMES = [f"store://{'cat' if i % 2 else 'dog'}/{i}.pt" for i in range(6)]
STORE = {name: content(i) for i, name in enumerate(NAMES)}


def from_store(name):
    return STORE[name]


def labels(loader):
    return [batch["y"].tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_are_what_the_function_opens(workers):
    files = pt.Files(NAMES, source=from_store)
    assert files.paths == NAMES
    loader = pt.DataLoader(files, batch_size=3, num_workers=workers)
    assert loader.native is not None
    batches = list(loader)
    assert [b["y"].tolist() for b in batches] == [[0, 1, 2], [3, 4, 5]]
    assert batches[1]["x"][2].tolist() == [5.0] * 4
    assert files[4]["x"].tolist() == [4.0] * 4
    assert [s["y"] for s in files.__getitems__([5, 1])] == [5, 1]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_torchs_own_workers(context):
    files = pt.Files(NAMES, source=from_store)
    assert labels(td.DataLoader(files, batch_size=3, num_workers=2, multiprocessing_context=context)) == [
        [0, 1, 2],
        [3, 4, 5],
    ]


def test_mapped_in_processes():
    files = pt.Files(NAMES, source=from_store).map(doubled, processes=True)
    assert labels(pt.DataLoader(files, batch_size=3, num_workers=2)) == [[0, 2, 4], [6, 8, 10]]


def doubled(sample):
    return {"y": sample["y"] * 2}


def test_the_function_gives_bytes_paths_files_or_sources(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(content(7))
    makers = ways_to_give(path)
    files = pt.Files(list(makers), source=lambda name: makers[name]())
    for i, name in enumerate(makers):
        assert files[i]["y"] == 7, name


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda files: pickle.loads(pickle.dumps(files))])
def test_copies_and_pickles_keep_it(again):
    files = again(pt.Files(NAMES, source=from_store))
    assert type(files) is pt.Files
    assert files[3]["y"] == 3
    assert files.paths == NAMES


def test_a_function_without_a_name_does_not_pickle():
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(pt.Files(NAMES, source=lambda name: STORE[name]))


def test_keys_types_and_classes():
    files = pt.Files(NAMES, "x", source=from_store, dtype=torch.float16)
    assert list(files[1]) == ["x"]
    assert files[1]["x"].dtype == torch.float16
    assert files.classes == ["cat", "dog"]
    assert files.targets == [1, 0, 1, 0, 1, 0]


class Reduced:
    def __reduce__(self):
        return time.sleep, (0,)


def odd(name):
    file = io.BytesIO()
    torch.save({"sparse": torch.eye(2).to_sparse(), "set": {1, 2}, "y": int(name)}, file)
    return file.getvalue()


@pytest.mark.parametrize("opened", [odd, lambda name: io.BytesIO(odd(name))], ids=["bytes", "file"])
def test_what_has_no_native_form_comes_from_it_too(opened):
    files = pt.Files(["3", "5"], source=opened)
    assert files[1]["sparse"].is_sparse
    assert files[1]["set"] == {1, 2}
    assert pt.Files(["3", "5"], ["y", "set"], source=opened)[1] == {"y": 5, "set": {1, 2}}
    samples = next(iter(pt.DataLoader(files, 2, num_workers=1, collate_fn=list)))
    assert [sample["y"] for sample in samples] == [3, 5]


def test_errors_of_what_has_no_native_form_name_the_file():
    file = io.BytesIO()
    torch.save({"set": {1}, "what": Reduced()}, file)
    files = pt.Files(["store://unknown"], source=lambda name: file.getvalue())
    with pytest.raises(pt.UnknownGlobalsError, match=r"time\.sleep") as caught:
        files[0]
    assert caught.value.path == "store://unknown"


def test_what_it_raises_keeps_its_type():
    files = pt.Files(["store://missing"], source=from_store)
    with pytest.raises(KeyError, match="store://missing"):
        files[0]
    with pytest.raises(KeyError, match="store://missing"):
        next(iter(pt.DataLoader(files, num_workers=1)))
    with pytest.raises(penstock.DTypeMismatchError, match="found an object of type int, expected a path"):
        pt.Files(["x"], source=lambda name: 3)[0]


def test_what_is_no_function_and_patterns_are_refused():
    with pytest.raises(penstock.DTypeMismatchError, match="source= takes a function"):
        pt.Files(["x"], source="s3")
    with pytest.raises(penstock.InvalidArgumentError, match="list of the paths"):
        pt.Files("store://*", source=from_store)


def test_a_resumed_loader_goes_on():
    loader = pt.DataLoader(pt.Files(NAMES, source=from_store), batch_size=2, num_workers=2)
    batches = iter(loader)
    next(batches)
    again = pt.DataLoader(pt.Files(NAMES, source=from_store), batch_size=2, num_workers=2)
    again.load_state_dict(loader.state_dict())
    assert labels(again) == [[2, 3], [4, 5]]
