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


def test_labels_that_look_like_numbers(folder):
    files = penstock.files(folder / "*/*.npy")
    header = "file,label\n"
    path = folder / "labels.csv"
    for text, wanted in (
        ("1, 5\n2,\t7 \n./b/ü,+9\n", [5, 7, 9]),
        ("1,5\r2,7\rü,9\r", [5, 7, 9]),
        ("1,5,,\n2,7\nü,9,\n", [5, 7, 9]),
        ("1,+.5\n2, 1e1\nü,9\n", [0.5, 10.0, 9.0]),
    ):
        path.write_text(header + text, encoding="utf-8", newline="")
        assert labels(penstock.with_labels(files, path)) == wanted, text
    for text, why in (
        ("1,5\n2,\nü,9\n", r"a/2\.npy.*empty label"),
        ("1,5\n2,  \nü,9\n", r"a/2\.npy.*empty label"),
        ("1,1,5\n2,7\nü,9\n", "line 2 has 3 columns"),
        ("1,99999999999999999999\n2,7\nü,9\n", "'99999999999999999999' does not fit"),
    ):
        path.write_text(header + text, encoding="utf-8")
        with pytest.raises(ValueError, match=why):
            penstock.with_labels(files, path)
    path.write_text(header + "1,5\n2,7\nü,9\n", encoding="utf-16")
    with pytest.raises(ValueError, match="UTF-16"):
        penstock.with_labels(files, path)


def test_labels_of_a_dict_are_text_or_numbers(folder):
    files = penstock.files(folder / "*/*.npy")
    for given, wanted in (
        ([True, True, False], [1, 1, 0]),
        ([np.int64(5), np.uint8(7), 9], [5, 7, 9]),
        ([np.float32(0.5), np.bool_(True), penstock.tensor(3)], [0.5, 1.0, 3.0]),
        (["ox", "ox", np.str_("cow")], [1, 1, 0]),
    ):
        assert labels(penstock.with_labels(files, dict(zip(("1", "2", "ü"), given, strict=True)))) == wanted
    for wrong in (None, [1], object(), b"x"):
        with pytest.raises(TypeError, match="label of type"):
            penstock.with_labels(files, {"1": wrong, "2": 1, "ü": 1})


def test_a_name_labels_all_files_that_it_stands_for(tmp_path):
    for part in ("cat", "dog"):
        (tmp_path / part).mkdir()
        np.save(tmp_path / part / "7.npy", np.zeros(1))
    files = penstock.files(tmp_path / "*/*.npy")
    assert labels(penstock.with_labels(files, {"7": 1})) == [1, 1]
    assert labels(penstock.with_labels(files, {"7": 1, "dog/7": 2})) == [1, 2]
