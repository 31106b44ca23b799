"""Windows, slices, pairs and derived fields that cannot be: each is refused before anything is read."""

import numpy as np
import pytest

import penstock

ROWS = penstock.rows(np.arange(100, dtype="u2"))
HUGE = 2**62
INVALID = penstock.InvalidArgumentError
NO_NUMBER = penstock.DTypeMismatchError
NO_FIT = penstock.ShapeMismatchError
OUTSIDE = penstock.IndexOutOfRangeError


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"length": 0}, INVALID),
        ({"length": -1}, INVALID),
        ({"length": 2**63}, INVALID),
        ({"length": HUGE}, NO_FIT),
        ({"length": 101}, NO_FIT),
        ({"length": 1.0}, NO_NUMBER),
        ({"length": "5"}, NO_NUMBER),
        ({"length": None}, NO_NUMBER),
        ({"length": 5, "stride": 0}, INVALID),
        ({"length": 5, "stride": -1}, INVALID),
        ({"length": 5, "stride": 1.5}, NO_NUMBER),
        ({"length": 5, "shift": -1}, INVALID),
        ({"length": 5, "shift": 96}, NO_FIT),
        ({"length": 5, "shift": HUGE, "stride": HUGE}, NO_FIT),
        ({"length": 5, "shift": 2**63 - 1}, INVALID),
        ({"length": 5, "join": "odd"}, INVALID),
        ({"length": 5, "join": "shuffled"}, INVALID),
    ],
)
def test_windows_that_cannot_be(arguments, error):
    with pytest.raises(error):
        ROWS.windows(**arguments)
    if not {"stride", "join"} & set(arguments):
        with pytest.raises(error):
            ROWS.random_windows(count=3, **arguments)


def test_the_largest_that_can_be():
    assert len(ROWS.windows(100)) == 1
    assert len(ROWS.windows(5, shift=95)) == 1
    assert len(ROWS.windows(5, stride=HUGE)) == 1
    many = ROWS.random_windows(5, HUGE)
    assert len(many) == HUGE
    assert len(many[HUGE - 1]) == 5


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, INVALID),
        ({"starts": [3]}, INVALID),
        ({"lengths": []}, NO_FIT),
        ({"lengths": [50, 51]}, NO_FIT),
        ({"lengths": [-1, 101]}, OUTSIDE),
        ({"lengths": [True, 99]}, NO_NUMBER),
        ({"starts": [0, 1], "lengths": [1]}, NO_FIT),
        ({"starts": [-1], "lengths": [2]}, OUTSIDE),
        ({"starts": [99], "lengths": [2]}, OUTSIDE),
        ({"starts": [2**63 - 1], "lengths": [2]}, OUTSIDE),
        ({"starts": [1], "lengths": [2**63 - 1]}, OUTSIDE),
        ({"starts": [0.5], "lengths": [1]}, NO_NUMBER),
        ({"starts": [[0]], "lengths": [[1]]}, NO_NUMBER),
        ({"starts": [0], "lengths": ["1"]}, NO_NUMBER),
        ({"starts": [0], "lengths": np.ones(1, "f4")}, NO_NUMBER),
        ({"starts": np.array([2**64 - 1], "u8"), "lengths": [1]}, INVALID),
    ],
)
def test_slices_that_cannot_be(arguments, error):
    with pytest.raises(error):
        ROWS.slices(**arguments)


@pytest.fixture
def pairs(tmp_path):
    for folder in ("images", "masks", "other/0", "other/1"):
        (tmp_path / folder).mkdir(parents=True)
        for number in range(2):
            np.save(tmp_path / folder / f"{number}.npy", np.arange(number + 2))
    return [penstock.files(tmp_path / folder / "**/*.npy") for folder in ("images", "masks", "other")]


@pytest.mark.parametrize(
    ("by", "error"),
    [
        ("stern", INVALID),
        (3, INVALID),
        (lambda path: None, NO_NUMBER),
        (lambda path: 1, NO_NUMBER),
        (lambda path: "x", INVALID),
        (lambda path: 1 // 0, ZeroDivisionError),
    ],
    ids=["name", "number", "none", "gives_number", "one_for_all", "raises"],
)
def test_pairs_that_cannot_be(pairs, by, error):
    images, masks, other = pairs
    with pytest.raises(error):
        penstock.join(images, masks, by=by)
    with pytest.raises(INVALID, match="two files"):
        penstock.join(images, other, by="stem")
    with pytest.raises(INVALID, match="not files of their own"):
        penstock.join(images, ROWS, by="stem")
    with pytest.raises(INVALID, match="missing="):
        penstock.join(images, masks, by="stem", missing="odd")


@pytest.mark.parametrize(
    ("templates", "error"),
    [
        ({}, INVALID),
        ({"m": ""}, INVALID),
        ({"m": "{what}.npy"}, INVALID),
        ({"m": "{stem.npy"}, INVALID),
        ({"m": "a\0b"}, INVALID),
        ({"m": 3}, TypeError),
        ({"m": "../nowhere/{stem}.npy"}, penstock.NotFoundError),
    ],
)
def test_fields_that_cannot_be(pairs, templates, error):
    with pytest.raises(error):
        pairs[0].fields(templates)
