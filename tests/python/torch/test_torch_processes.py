"""penstock.torch's datasets and loaders in other processes, in copies and in pickles."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle

import numpy as np
import pytest
import torch
import torch.utils.data as td
from load_pairs import same

import penstock
import penstock.torch as pt

METHODS = ["spawn", "fork", "forkserver"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "files").mkdir()
    for i in range(10):
        torch.save({"x": torch.full((2,), i), "y": i}, tmp_path / "files" / f"{i}.pt")
    np.save(tmp_path / "x.npy", np.arange(20, dtype=np.float32).reshape(10, 2))
    np.save(tmp_path / "y.npy", np.arange(10))
    return tmp_path


def doubled(sample):
    return {"x": sample["x"] * 2, "y": sample["y"]}


MAKERS = {
    "files": lambda f: pt.Files(f / "files"),
    "some keys": lambda f: pt.Files(f / "files", keys=["y"]),
    "rows": lambda f: pt.Rows(f / "x.npy", f / "y.npy"),
    "mapped": lambda f: pt.Files(f / "files").map(doubled),
    "part": lambda f: td.Subset(pt.Files(f / "files"), [3, 1]),
    "joined": lambda f: td.ConcatDataset([pt.Files(f / "files"), pt.Files(f / "files")]),
}


def samples(dataset):
    return [dataset[i] for i in range(len(dataset))]


@pytest.mark.parametrize("name", MAKERS)
def test_datasets_pickle_and_copy(folder, name):
    dataset = MAKERS[name](folder)
    expected = samples(dataset)
    for again in (pickle.loads(pickle.dumps(dataset)), copy.copy(dataset), copy.deepcopy(dataset)):
        same(samples(again), expected)
        same(list(pt.DataLoader(again, 4)), list(pt.DataLoader(dataset, 4)))


def send_batches(dataset, results):
    torch.set_num_threads(1)
    loader = pt.DataLoader(dataset, 4, num_workers=2)
    results.put([(batch["x"].tolist(), batch["y"].tolist()) for batch in loader])


@pytest.mark.parametrize("name", ["files", "mapped"])
@pytest.mark.parametrize("method", METHODS)
def test_loaders_in_other_processes(folder, method, name):
    dataset = MAKERS[name](folder)
    # Threads of this loader stay behind when the process forks.
    iterator = iter(pt.DataLoader(dataset, 4, num_workers=2))
    expected = [(batch["x"].tolist(), batch["y"].tolist()) for batch in iterator]
    context = multiprocessing.get_context(method)
    results = context.Queue()
    process = context.Process(target=send_batches, args=(dataset, results))
    process.start()
    assert results.get(timeout=120) == expected
    process.join(60)
    assert process.exitcode == 0


@pytest.mark.parametrize("method", METHODS)
def test_as_datasets_of_torchs_workers(folder, method):
    options = {"batch_size": 4, "num_workers": 2, "multiprocessing_context": method}
    for name in ("files", "rows"):
        dataset = MAKERS[name](folder)
        same(list(td.DataLoader(dataset, **options)), list(td.DataLoader(dataset, batch_size=4)))
    if method != "fork":  # which a program with threads, as this one, is refused: test_torch_worker_processes.py
        mapped = pt.Files(folder / "files").map(doubled, processes=True)
        same(list(pt.DataLoader(mapped, **options)), list(pt.DataLoader(MAKERS["mapped"](folder), 4)))


def test_an_iterator_of_before_a_fork_says_so(folder):
    iterator = iter(pt.DataLoader(MAKERS["files"](folder), 2, num_workers=2))
    next(iterator)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(iterator)
        except penstock.InvalidArgumentError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        assert "before this process was forked" in said.read()
    os.waitpid(child, 0)
    assert len(list(iterator)) == 4


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_pickle_and_copy(folder, workers):
    loader = pt.DataLoader(MAKERS["files"](folder), 4, num_workers=workers)
    expected = list(loader)
    for again in (pickle.loads(pickle.dumps(loader)), copy.copy(loader), copy.deepcopy(loader)):
        same(list(again), expected)
    same(list(loader), expected)
