"""Files of each format, cut at every byte: an error, or what is whole without its end."""

import json
from pathlib import Path

import numpy as np
import pytest

import penstock

CORPUS = Path(__file__).resolve().parents[2] / "fuzz/corpus"
FILES = [
    path
    for folder in ("npy", "npz", "pt", "pt_legacy", "safetensors")
    for path in sorted((CORPUS / folder).iterdir(), key=lambda path: (path.stat().st_size, path.name))
    if path.stat().st_size <= 16384
]


def loads(content: bytes) -> bool:
    try:
        penstock.load(memoryview(content))
    except penstock.Error:
        return False
    return True


def some_of(folder: str) -> list[Path]:
    """Some of the files that load, of different sizes."""
    good = [path for path in FILES if path.parent.name == folder and loads(path.read_bytes())]
    return good[:: max(1, len(good) // 6)]


@pytest.mark.parametrize("folder", ["npy", "npz", "pt", "pt_legacy", "safetensors"])
def test_a_cut_file_is_an_error_or_whole(folder):
    files = some_of(folder)
    assert len(files) >= 3
    for path in files:
        content = path.read_bytes()
        whole = [length for length in range(len(content)) if loads(content[:length])]
        assert whole == list(range(len(content) - len(whole), len(content))), path


def test_a_cut_index_is_an_error(tmp_path):
    penstock.save({"w": np.arange(4.0)}, tmp_path / "m.safetensors")
    index = tmp_path / "m.safetensors.index.json"
    text = json.dumps({"metadata": {"total_size": 32}, "weight_map": {"w": "m.safetensors"}})
    index.write_text(text)
    assert list(penstock.load(index)) == ["w"]
    for length in range(len(text)):
        index.write_text(text[:length])
        with pytest.raises(penstock.Error):
            penstock.load(index)
