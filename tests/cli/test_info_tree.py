"""The tree that `penstock info` prints."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
from test_cli import PROGRAM, run
from test_info_json import write_pickle


def tree(path: Path, *options: object) -> list[str]:
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run([PROGRAM, "info", path, *map(str, options)], capture_output=True, env=environment, check=True)
    told = done.stdout.decode()
    return told[told.index("\n\n") + 2 :].splitlines() if "\n\n" in told else []


def rows(path: Path, *options: object) -> list[list[str]]:
    return [line.split() for line in tree(path, *options)[1:]]


@pytest.fixture
def model(tmp_path) -> Path:
    header, data = {}, b""
    for name, shape in {"enc.0.weight": [4, 3], "enc.0.bias": [4], "enc.1.weight": [2, 4], "head": [2]}.items():
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += bytes(size)
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_layers_tell_the_sum_of_what_they_hold(model):
    assert tree(model) == [
        "NAME             TYPE OR VALUE   ELEMENTS     BYTES",
        "├─ enc                                 24  96 bytes",
        "│  ├─ 0                                16  64 bytes",
        "│  │  ├─ weight  float32 (4, 3)        12  48 bytes",
        "│  │  └─ bias    float32 (4,)           4  16 bytes",
        "│  └─ 1                                 8  32 bytes",
        "│     └─ weight  float32 (2, 4)         8  32 bytes",
        "└─ head          float32 (2,)           2   8 bytes",
    ]


def test_depth_sums_up_what_lies_below(model):
    assert rows(model, "--depth", 1) == [
        ["├─", "enc", "24", "96", "bytes"],
        ["└─", "head", "float32", "(2,)", "2", "8", "bytes"],
    ]
    assert tree(model, "--depth", 0) == []
    assert len(rows(model, "--depth", 2)) == 4
    assert run("info", model, "--depth", "-1", code=2).stderr


def test_values_stand_beside_their_keys(tmp_path):
    content = OrderedDict(
        epoch=7,
        name="重み",
        loss=float("nan"),
        hist=list(range(100)),
        betas=(0.9, 0.99),
        empty={},
        none=None,
        deep=[{"a": 1}],
    )
    text = "\n".join(tree(write_pickle(tmp_path / "x.pt", pickle.dumps(content, 2))))
    for line in (
        "├─ epoch    7",
        "├─ name     '重み'",
        "├─ loss     nan",
        "├─ hist     list of 100 items: 0, 1, 2, 3, 4, 5, 6, 7, ...",
        "├─ betas    (0.9, 0.99)",
        "├─ empty    {}",
        "├─ none     None",
        "   └─ [0]",
        "      └─ a  1",
    ):
        assert line in text.splitlines(), text


def test_wide_characters_take_two_columns(tmp_path):
    lines = tree(write_pickle(tmp_path / "x.pt", pickle.dumps({"重み": 1, "ab": 2, "e\u0301": 3}, 2)))
    assert lines[1:] == ["├─ 重み  1", "├─ ab    2", "└─ e\u0301     3"]


def test_what_has_several_places_is_counted_once(tmp_path):
    torch = pytest.importorskip("torch")
    weight = torch.zeros(5)
    part = {"bias": torch.zeros(3)}
    torch.save({"a": weight, "b": weight, "c": part, "d": part}, tmp_path / "x.pt")
    assert rows(tmp_path / "x.pt") == [
        ["├─", "a", "float32", "(5,)", "5", "20", "bytes"],
        ["├─", "b", "float32", "(5,),", "the", "same", "as", "a"],
        ["├─", "c", "3", "12", "bytes"],
        ["│", "└─", "bias", "float32", "(3,)", "3", "12", "bytes"],
        ["└─", "d", "the", "same", "as", "c"],
    ]


def test_array_files_have_one_row(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.int16))
    assert rows(tmp_path / "x.npy") == [["int16", "(2,", "3)", "6", "12", "bytes"]]


def nested(levels: int) -> bytes:
    """A pickle of so many dicts in dicts, each under a key with many dots."""
    key = pickle.dumps(".".join("abcdefgh" * 8), 2)[2:-1]
    return b"\x80\x02" + (b"}(" + key) * levels + b"K\x01" + b"u" * levels + b"."


def test_depth_and_dots_that_are_made_to_hurt(tmp_path):
    """Dots make no levels without bound, and what is said of a part stays short."""
    assert len(tree(write_pickle(tmp_path / "deep.pt", nested(1000)))) > 1000
    name = ".".join("a" * 100_000)
    text = json.dumps(
        {
            name: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
            "a.": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
        }
    ).encode()
    (tmp_path / "dots.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    lines = tree(tmp_path / "dots.safetensors")
    assert len(lines) < 80
    assert max(map(len, lines)) < 400
    for odd in (".", "..", ".a", "a..b", ""):
        text = json.dumps({odd: {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}).encode()
        (tmp_path / "odd.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"12")
        assert rows(tmp_path / "odd.safetensors")[-1][-6:] == ["uint8", "(2,)", "2", "2", "bytes"] or rows(
            tmp_path / "odd.safetensors"
        )[-1][-5:] == ["uint8", "(2,)", "2", "2", "bytes"]


def test_shards_are_named_beside_their_tensors(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    weights = {f"m-{i}.safetensors": {f"w{i}": np.zeros(i + 1, np.float32)} for i in range(2)}
    for name, tensors in weights.items():
        safetensors.save_file(tensors, tmp_path / name)
    index = {"weight_map": {key: name for name, tensors in weights.items() for key in tensors}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    told = rows(tmp_path / "model.safetensors.index.json")
    assert [row[-1] for row in told] == list(weights)
