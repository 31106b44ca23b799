"""Datasets, archives, entries and positions go to other processes and into copies."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle

import numpy as np
import pytest

import penstock


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(24, dtype=np.float32).reshape(6, 4))
    penstock.save({"a": penstock.tensor(np.arange(6)), "b": penstock.tensor(np.ones((3, 4)))}, tmp_path / "m.pt")
    (tmp_path / "clips").mkdir()
    for i in range(4):
        penstock.save({"x": penstock.tensor([i, i + 1]), "y": i}, tmp_path / "clips" / f"{i}.pt")
    return tmp_path


MAKERS = {
    "rows of a file": lambda f: penstock.rows(f / "x.npy"),
    "rows by key": lambda f: penstock.rows(f / "m.pt", key="b"),
    "rows of an array": lambda f: penstock.rows(np.arange(12).reshape(4, 3)),
    "rows of a tensor": lambda f: penstock.rows(penstock.tensor([[1, 2], [3, 4]])),
    "rows of an entry": lambda f: penstock.rows(penstock.open(f / "m.pt")["b"][1:]),
    "files": lambda f: penstock.files(f / "clips"),
    "files by glob": lambda f: penstock.files(str(f / "clips" / "*.pt"), keys=["y"]),
    "files of an iterator": lambda f: penstock.files(iter([f / "clips" / "2.pt", f / "clips" / "0.pt"]), keys="x"),
    "zip": lambda f: penstock.zip(penstock.rows(f / "x.npy"), penstock.rows(np.arange(6))),
    "concat": lambda f: penstock.rows(f / "x.npy").concat(penstock.rows(np.ones((2, 4), np.float32))),
    "take, skip and repeat": lambda f: penstock.rows(f / "x.npy").take(5).skip(2).repeat(2),
    "subset": lambda f: penstock.subset(penstock.rows(f / "x.npy"), iter([5, 0, 0])),
}


def content(value):
    if isinstance(value, penstock.Tensor):
        return (value.dtype.name, value.tolist())
    if isinstance(value, dict):
        return {key: content(item) for key, item in value.items()}
    return tuple(map(content, value)) if isinstance(value, tuple) else value


def samples(dataset):
    return [content(dataset[i]) for i in range(len(dataset))]


@pytest.mark.parametrize("kind", MAKERS)
def test_datasets(folder, kind):
    dataset = MAKERS[kind](folder)
    expected = samples(dataset)
    for protocol in (2, 5):
        assert samples(pickle.loads(pickle.dumps(dataset, protocol))) == expected
    assert copy.copy(dataset) is dataset
    assert samples(copy.deepcopy([dataset])[0]) == expected


def test_lists_and_dicts_may_change_behind_a_dataset(folder):
    numbers, texts, arrays = [1, 2], ["a", "b"], [np.ones(2), np.zeros(2)]
    given = {path: number for number, path in enumerate(penstock.files(folder / "clips").paths)}
    datasets = [penstock.rows(each) for each in (numbers, texts, arrays)]
    datasets.append(penstock.with_labels(penstock.files(folder / "clips"), given))
    before = [samples(dataset) for dataset in datasets]
    numbers[0], texts[0], arrays[0][0] = 7, "z", 9
    numbers.append(3)
    given.update(dict.fromkeys(given, 5))
    assert [samples(pickle.loads(pickle.dumps(dataset))) for dataset in datasets] == before


def test_archives_and_entries(folder):
    archive = penstock.open(folder / "m.pt")
    again = pickle.loads(pickle.dumps(archive))
    assert again.keys() == archive.keys()
    entry = archive["b"][1:, ::2][0]
    restored = pickle.loads(pickle.dumps(entry))
    assert restored.shape == entry.shape
    assert restored.load().tolist() == entry.load().tolist()
    assert copy.copy(entry).load().tolist() == entry.load().tolist()
    (folder / "m.pt").unlink()
    with pytest.raises(penstock.UnsupportedError, match="cannot be pickled"):
        pickle.dumps(archive)


def test_bytes_in_memory_do_not_become_the_file_of_their_name(folder):
    """Whoever gave the bytes chose the name."""
    content = io.BytesIO((folder / "m.pt").read_bytes())
    content.name = str(folder / "other.pt")
    penstock.save({"secret": penstock.zeros((2,))}, folder / "other.pt")
    archive = penstock.open(content)
    assert "b" in archive
    for value in (archive, archive["b"]):
        with pytest.raises(penstock.UnsupportedError, match="cannot be pickled"):
            pickle.dumps(value)


def test_positions(folder):
    loader = penstock.DataLoader(penstock.files(folder / "clips"), shuffle=True, seed=3)
    iterator = iter(loader)
    next(iterator)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    expected = [[batch["y"].tolist() for batch in epoch] for epoch in (iterator, loader, loader)]
    again = penstock.DataLoader(penstock.files(folder / "clips"), shuffle=True, seed=3)
    again.load_state_dict(state)
    assert [[batch["y"].tolist() for batch in again] for _ in range(3)] == expected


def send_samples(dataset, results):
    loader = penstock.DataLoader(dataset, batch_size=2, num_workers=2)
    results.put([batch["y"].tolist() for batch in loader])


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_other_processes(folder, method):
    context = multiprocessing.get_context(method)
    dataset = penstock.files(folder / "clips")
    # Threads of this loader stay behind when the process forks.
    here = [batch["y"].tolist() for batch in penstock.DataLoader(dataset, batch_size=2, num_workers=2)]
    results = context.Queue()
    process = context.Process(target=send_samples, args=(dataset, results))
    process.start()
    assert results.get(timeout=60) == here
    process.join(60)
    assert process.exitcode == 0
