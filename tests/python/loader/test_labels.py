"""Labels of files from a table."""

import csv
import pickle

import numpy as np
import pytest

import penstock


@pytest.fixture
def folder(tmp_path):
    for name in ("a/1.npy", "a/2.npy", "b/ü.npy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.save(tmp_path / name, np.zeros(2))
    return tmp_path


def table(folder, rows):
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return folder / "labels.csv"


def labels(pairs):
    return [pairs[i][1] for i in range(len(pairs))]


def test_tables_are_joined_by_name(folder):
    files = penstock.files(folder / "*/*.npy")
    path = table(folder, [["file", "label"], ["b/ü", 7], ["a/1.npy", 5], ["2", 6], ["other", 1]])
    pairs = pickle.loads(pickle.dumps(penstock.with_labels(files, path)))
    assert labels(pairs) == [5, 6, 7]
    (batch,) = penstock.DataLoader(pairs, batch_size=3)
    assert batch[1].tolist() == [5, 6, 7]
    assert pairs.paths == files.paths
    assert penstock.lengths(pairs) == [2, 2, 2]
    path = table(folder, [["label", "name"], ['say "cat", twice', "1"], ["ox", "2"], ["ox", "ü"]])
    pairs = penstock.with_labels(files, path, file="name", label="label")
    assert pairs.classes == ["ox", 'say "cat", twice']
    assert labels(pairs) == [1, 0, 0]
    assert labels(penstock.with_labels(files, {"1": 0.5, "2.npy": 1, "b/ü.npy": 2})) == [0.5, 1.0, 2.0]


def test_tables_that_do_not_fit(folder):
    files = penstock.files(folder / "*/*.npy")
    with pytest.raises(ValueError, match=r"no label.*a/2\.npy|a/2\.npy.*no label"):
        penstock.with_labels(files, {"1": 0})
    with pytest.raises(ValueError, match="did you mean 'file'"):
        penstock.with_labels(files, table(folder, [["file", "label"]]), file="files")
    with pytest.raises(ValueError, match="two labels"):
        penstock.with_labels(files, table(folder, [["f", "l"], ["1", 1], ["1", 2]]))
    with pytest.raises(FileNotFoundError):
        penstock.with_labels(files, folder / "none.csv")
    with pytest.raises(ValueError, match="not files"):
        penstock.with_labels(penstock.rows([1, 2]), {"1": 0})
    with pytest.raises(ValueError, match="columns"):
        penstock.with_labels(files, {"1": 0}, label="x")
