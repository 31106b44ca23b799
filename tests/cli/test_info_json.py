"""`penstock info --json` against the pickles that it describes: no key and no value is lost, and each is told once."""

from __future__ import annotations

import builtins
import json
import os
import pickle
import random
import subprocess
import zipfile
from collections import OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
PROGRAM = str(BUILD / "bin" / "penstock")


def output(*args: object) -> str:
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, check=True).stdout


def write_pickle(path: Path, pickled: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("x/data.pkl", pickled)
        out.writestr("x/version", "3")
        out.writestr("x/data/0", b"\0" * 4)
    return path


def info(path: Path) -> dict:
    return json.loads(output("info", "--json", path))


class Reader:
    """Python's values from what docs/guide/command.md says of the form."""

    def __init__(self, facts: dict):
        self.shared, self.known = facts["shared"], {}

    def value(self, form):
        if isinstance(form, list):
            return [self.value(item) for item in form]
        if not isinstance(form, dict):
            return form
        read = getattr(self, f"read_{next(iter(form), None)}", None)
        if read is None:
            return {key: self.value(item) for key, item in form.items()}
        return read(**form)

    def read_shared(self, shared):
        if shared not in self.known:
            self.known[shared] = "a cycle"
            self.known[shared] = self.value(self.shared[shared])
        return self.known[shared]

    def read_dict(self, dict, type="dict", state=None):
        pairs = dict.items() if hasattr(dict, "items") else [(self.value(key), item) for key, item in dict]
        return {key: self.value(item) for key, item in pairs}

    def read_tuple(self, tuple, type=None):
        return (*map(self.value, tuple),)

    def read_set(self, set, type="set"):
        return frozenset(map(self.value, set))

    def read_int(self, int):
        return json.loads(int)

    def read_float(self, float):
        return {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[float]

    def read_complex(self, complex):
        return builtins.complex(*map(self.value, complex))

    def read_bytes(self, bytes):
        return bytes.encode("latin-1")


def read_back(tmp_path: Path, value, protocol: int = 2):
    facts = info(write_pickle(tmp_path / "x.pt", pickle.dumps(value, protocol)))
    return Reader(facts).value(facts["structure"])


TEXTS = [
    "",
    "a",
    "tensor",
    "shared",
    "dict",
    "int",
    "é",
    "重み",
    "\x9b2J",
    "\u202e",
    "\x7f",
    '\\"',
    "x" * 200,
    "😀",
    "\0",
]
NUMBERS = [0, 1, -1, True, False, None, 2**63 - 1, -(2**63), 2**70, -(2**100), 1.0, -0.0, 1e300, 0.1, 1e16, 5e-324]
OTHERS = [float("inf"), -float("inf"), complex(-0.0, 2), complex(1, float("inf")), b"", b"\xff\0ab", b"z" * 100, ()]


def make(random_: random.Random, depth: int = 0):
    kind = random_.randrange(8 if depth < 4 else 4)
    if kind < 4:
        return random_.choice((TEXTS, NUMBERS, OTHERS)[kind % 3])
    parts = [make(random_, depth + 1) for _ in range(random_.randrange(4))]
    if kind == 4:
        return parts
    if kind == 5:
        return tuple(parts)
    keys = [make(random_, 9) for _ in parts]
    return OrderedDict(zip(keys, parts, strict=True)) if kind == 6 else dict(zip(keys, parts, strict=True))


def plain(value):
    """As `Reader` gives it: OrderedDict is a dict."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(plain, value))
    return value


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_no_key_and_no_value_is_lost(tmp_path, protocol):
    random_ = random.Random(protocol)
    for _ in range(40):
        value = make(random_)
        assert repr(read_back(tmp_path, value, protocol)) == repr(plain(value))


def test_keys_that_look_alike_stay_apart(tmp_path):
    value = {1: "int", "1": "str", 1.5: "float", "1.5": "text", None: "none", "None": "name", (1, "1"): "tuple"}
    assert read_back(tmp_path, value) == value
    assert read_back(tmp_path, {True: 1, "True": 2, b"a": 3, "a": 4}) == {True: 1, "True": 2, b"a": 3, "a": 4}


def test_a_dict_of_names_is_a_plain_object(tmp_path):
    value = {"epoch": 3, "lr": 0.5, "nested": {"a": [1, None]}}
    facts = info(write_pickle(tmp_path / "x.pt", pickle.dumps(value, 2)))
    assert facts["structure"] == value
    assert facts["shared"] == []


def test_what_a_dict_says_is_not_taken_for_the_form(tmp_path):
    for value in ({"tensor": "w"}, {"shared": 0}, {"x": {"dict": [[1, 2]]}}, {"float": "nan"}, ["...", "nan", "{}"]):
        assert read_back(tmp_path, value) == value


def test_classes_are_named(tmp_path):
    value = {"d": defaultdict(int, {"a": 1}), "s": {1, 2}, "f": frozenset([3])}
    structure = info(write_pickle(tmp_path / "x.pt", pickle.dumps(value, 2)))["structure"]
    assert structure["s"] == {"set": [1, 2]} | ({"type": "set"} if "type" in structure["s"] else {})
    assert structure["f"]["type"].endswith("frozenset")
    assert "defaultdict" in json.dumps(structure["d"])


def test_shared_values_are_told_once(tmp_path):
    part, long = [1, 2], "y" * 500
    value = [part, part, {long: 1, "b": long}, long.encode(), [long]]
    facts = info(write_pickle(tmp_path / "x.pt", pickle.dumps(value, 4)))
    assert facts["structure"][0] == facts["structure"][1] == {"shared": 0}
    assert json.dumps(facts).count(long) == 2
    assert Reader(facts).value(facts["structure"]) == value


def test_a_cycle_ends(tmp_path):
    ring: list = [1]
    ring.append(ring)
    facts = info(write_pickle(tmp_path / "x.pt", pickle.dumps(ring, 2)))
    assert facts["structure"] == {"shared": 0}
    assert facts["shared"] == [[1, {"shared": 0}]]


def test_deep_nesting_is_told_in_parts_that_any_reader_takes(tmp_path):
    value = None
    for _ in range(300):
        value = {"k": value}
    assert read_back(tmp_path, value) == value


SMALL = {
    "long text": b"](V" + b"a" * 100_000 + b"\nq\x00" + b"h\x00" * 10_000 + b"e.",
    "long keys": b"](V" + b"k" * 20_000 + b"\nq\x00" + b"}h\x00Ns" * 2_000 + b"e.",
    "a list at many places": b"\x80\x02](]q\x00(" + b"N" * 100 + b"e" + b"h\x00" * 20_000 + b"e.",
    "deep": b"\x80\x02" + b"](" * 500 + b"N" * 20_000 + b"e" * 500 + b".",
    "empty dicts": b"(" + b"}" * 20_000 + b"l.",
}


@pytest.mark.parametrize("kind", SMALL)
def test_a_small_pickle_prints_little(tmp_path, kind):
    printed = output("info", write_pickle(tmp_path / "x.pt", SMALL[kind]), "--json")
    json.loads(printed)
    assert len(printed) < 40 * len(SMALL[kind]) + 2_000


@pytest.mark.slow
def test_many_tensors_are_told_in_time_that_grows_with_them(tmp_path):
    count = 100_000
    spans = {f"w{i}": {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i in range(count)}
    header = json.dumps(spans).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(count))
    facts = info(path)
    assert facts["structure"] == {name: {"tensor": name} for name in spans}
    assert [entry["name"] for entry in facts["tensors"]] == list(spans)


@pytest.mark.parametrize("hidden", "\x7f\x9b\u061c\u200f\u202e\u2066\ufeff\U000e0041")
def test_json_writes_out_what_deceives(tmp_path, hidden):
    name = f"a{hidden}b"
    header = json.dumps({name: {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    path = tmp_path / f"{hidden}.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    for args in (["info"], ["ls"], ["cat"], ["verify"], ["convert", tmp_path / f"to{hidden}.npz"]):
        printed = output(args[0], path, *args[1:], "--json")
        assert hidden not in printed
        facts = json.loads(printed)
        assert args[0] == "verify" or hidden in json.dumps(facts, ensure_ascii=False)


def test_paths_that_are_no_utf8_are_those_of_python(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\x9b.npy"
    with open(path, "wb") as file:
        np.save(file, np.arange(3))
    done = subprocess.run([PROGRAM.encode(), b"ls", b"--json", path], capture_output=True, check=True)
    assert os.fsencode(json.loads(done.stdout.decode("ascii"))["path"]) == path
