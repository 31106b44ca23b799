"""What `penstock cat` prints of elements that are no numbers, beside NumPy, and names as `ls --names` prints them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PENSTOCK = str(Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release")) / "bin" / "penstock")


def run(*words, code=0):
    done = subprocess.run([PENSTOCK, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def values(path, *words):
    return json.loads(run("cat", path, *words, "--json"))["values"]


ERA = 146_097 * 86_400
"""Seconds of 400 years, after which the calendar repeats."""


def date_of(seconds, fraction=""):
    """As NumPy writes it, also of a number of seconds that its 64 bits do not hold."""
    era, rest = divmod(seconds, ERA)
    year, behind = str(np.datetime64(rest, "s")).split("-", 1)
    year = int(year) + 400 * era
    return f"{'-' if year < 0 else ''}{abs(year):0{3 if year < 0 else 4}}-{behind}{fraction}"


EDGES = [0, 1, -1, 59, 60, 86399, 86400, -86401, 951782400, 951868800, 4102444800, -62135596800, 253402300799]


@pytest.mark.parametrize(
    "unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "7D", "3M", "10us"]
)
def test_dates_are_those_of_numpy(tmp_path, unit):
    numbers = np.array([*EDGES, *(10**k for k in range(19)), *(-(7**k) for k in range(20))], "i8")
    if unit in {"Y", "M", "W", "D", "7D", "3M", "h", "m"}:
        numbers = numbers[np.abs(numbers) < 10**6]
    if unit in {"25s", "10us"}:
        numbers = numbers[np.abs(numbers) < 10**17]
    dates = np.append(numbers.view(f"M8[{unit}]"), np.datetime64("NaT"))
    np.save(tmp_path / "d.npy", dates)
    expected = [str(date) for date in dates]
    assert run("cat", tmp_path / "d.npy").split() == expected
    assert values(tmp_path / "d.npy") == expected


@pytest.mark.parametrize(("step", "unit", "digits"), [(25, "s", 0), (86399, "s", 0), (10, "us", 6), (999, "ns", 9)])
def test_steps_that_are_more_than_64_bits(tmp_path, step, unit, digits):
    """NumPy's own text of them is of the low 64 bits: it shows another date."""
    numbers = [*EDGES, *(sign * 10**k for k in range(19) for sign in (1, -1)), 2**63 - 1, 1 - 2**63]
    assert any(abs(number * step) >= 2**63 for number in numbers)
    np.save(tmp_path / "d.npy", np.array(numbers, "i8").view(f"M8[{step}{unit}]"))
    expected = []
    for number in numbers:
        seconds, fraction = divmod(number * step, 10**digits)
        expected.append(date_of(seconds, f".{fraction:0{digits}}" if digits else ""))
        if abs(number * step) < 2**63:
            assert expected[-1] == str(np.datetime64(number, f"{step}{unit}"))
    assert run("cat", tmp_path / "d.npy").split() == expected


@pytest.mark.parametrize("order", "<>")
def test_durations(tmp_path, order):
    np.save(tmp_path / "d.npy", np.array([5, -3, "NaT"], f"{order}m8[25s]"))
    assert run("cat", tmp_path / "d.npy").split() == ["5", "-3", "NaT"]
    assert values(tmp_path / "d.npy") == [5, -3, "NaT"]


def test_texts_have_quotes(tmp_path):
    texts = ["a b", "", "it's", 'say "no"', "both ' and \"", "back\\slash", "new\nline", "é", "\x1b[1m"]
    np.save(tmp_path / "t.npy", np.array(texts))
    line = run("cat", tmp_path / "t.npy").rstrip("\n")
    assert line == " ".join(repr(text) for text in texts)
    assert values(tmp_path / "t.npy") == texts
    np.save(tmp_path / "b.npy", np.array([b"a b", b"", b"it's \xff\x00x", b"\\"]))
    assert run("cat", tmp_path / "b.npy").rstrip("\n") == "b'a b' b'' b'it\\'s \\xff\\x00x' b'\\\\'"


RECORDS = {
    "plain": (
        [("a", "<i4"), ("b", "<f8"), ("s", "S3"), ("u", "<U2")],
        [(1, 2.5, b"ab", "é"), (-3, np.nan, b"", "x y")],
    ),
    "big": ([("a", ">i4"), ("b", ">f8"), ("u", ">U2"), ("c", ">c8")], [(1, 2.5, "é", 1 + 2j), (-3, 0.1, "x", 0)]),
    "nested": ([("v", ">i2", (2, 2)), ("n", [("x", "u1"), ("in]ner", "?", (2,))]), ("d", "M8[D]")],
               [([[1, 2], [3, 4]], (5, [True, False]), "2024-02-29"), ([[0, 0], [0, 7]], (255, [True, True]), "NaT")]),
    "one": ([("only", "i8")], [(7,), (8,)]),
    "padded": (
        np.dtype({"names": ["a", "b"], "formats": ["u1", "<i4"], "offsets": [0, 4], "itemsize": 12}),
        [(1, 2), (3, 4)],
    ),
    "titled": ([(("Title", "a"), "<i4"), ("b", "<f2")], [(1, 0.5), (2, 1.5)]),
}  # fmt: skip


def as_json(value):
    if isinstance(value, np.void):
        return {name: as_json(value[name]) for name in value.dtype.names}
    if isinstance(value, np.ndarray):
        return [as_json(item) for item in value.ravel()]
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, (complex, np.complexfloating)):
        return [value.real, value.imag]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (float, np.floating)) and np.isnan(value):
        return "nan"
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize("kind", RECORDS)
def test_records_have_their_fields(tmp_path, kind):
    dtype, rows = RECORDS[kind]
    array = np.array(rows, dtype)
    np.save(tmp_path / "r.npy", array)
    assert values(tmp_path / "r.npy") == [as_json(row) for row in array]
    assert values(tmp_path / "r.npy", "--slice", "1:") == [as_json(array[1])]
    text = run("cat", tmp_path / "r.npy")
    assert text.startswith("(")
    assert "0x" not in text


def test_records_as_text(tmp_path):
    fields = [("a", "i4"), ("b", "f8"), ("s", "S3"), ("v", "i2", 2)]
    np.save(tmp_path / "r.npy", np.array([(1, 2.5, b"ab", [3, 4])], fields))
    assert run("cat", tmp_path / "r.npy") == "(1, 2.5, b'ab', [3, 4])\n"


NAMES = ["weird\nname", "tab\t", "back\\slash", "a[0]", "plain", "bell\x07", "line\u2028end"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_taken_as_they_are_printed(tmp_path, name):
    path = tmp_path / "m.npz"
    np.savez(path, **{each: np.full((2, 2), i) for i, each in enumerate(NAMES)})
    printed = run("ls", "--names", path).splitlines()[NAMES.index(name)]
    number = str(NAMES.index(name))
    assert set(run("cat", path, printed).split()) == {number}
    assert set(run("cat", path, name).split()) == {number}
    for command in ("stats", "hash", "ls"):
        found = json.loads(run(command, path, printed, "--json"))
        assert [tensor["name"] for tensor in found["tensors"]] == [name]
    assert json.loads(run("show", path, printed, "--json"))["name"] == name
    run("convert", path, tmp_path / "o.npz", "--only", printed)
    assert list(np.load(tmp_path / "o.npz")) == [name]
    run("convert", path, tmp_path / "p.npy", "--part", printed)
    assert np.load(tmp_path / "p.npy").max() == NAMES.index(name)
