"""What notebooks show: figures that are right, texts that are escaped, and little of what is large."""

from __future__ import annotations

import html.parser

import numpy as np
import pytest
from safetensors.numpy import save_file

import penstock

HOSTILE = [
    "</td><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'&amp;",
    "left\u202eright\u2028",
    "long" * 900,
]
TAGS = {"div", "b", "pre", "table", "thead", "tbody", "tr", "th", "td", "details", "summary"}


class Reader(html.parser.HTMLParser):
    """Fails at tags and attributes that are not ours, and at tags that are not closed. Cells are lists of text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        assert tag in TAGS
        assert attrs == []
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open:
            self.cells[-1] += data


def shown(thing: object) -> Reader:
    return Reader(thing._repr_html_())


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 4), (1000, 1000)], ids=str)
def test_tensors_show_type_shape_and_elements(shape):
    tensor = penstock.from_dlpack(np.ones(shape, "f4"))
    text = shown(tensor).text
    assert f"float32, {shape}, cpu, " in text
    assert repr(tensor) in text
    assert len(text) < 5000


def test_archives_show_their_first_tensors(tmp_path):
    save_file({f"layer{i:03}": np.zeros((i, 2), "f2") for i in range(100)}, tmp_path / "a.safetensors")
    archive = penstock.open(tmp_path / "a.safetensors")
    page = shown(archive)
    assert "safetensors, 100 tensors" in page.text
    assert "and 80 more" in page.text
    assert len(page.cells) == 80
    assert page.cells[12:16] == ["layer003", "float16", "(3, 2)", "12 B"]
    assert "layer003, " not in shown(archive["layer003"]).text
    assert "float16, (3, 2), 12 B, not loaded" in shown(archive["layer003"]).text
    archive.close()
    assert shown(archive).text == "Archive closed"


def test_names_from_files_are_text(tmp_path):
    save_file({name: np.zeros(1) for name in HOSTILE}, tmp_path / "a<b>.safetensors")
    archive = penstock.open(tmp_path / "a<b>.safetensors")
    page = shown(archive)
    names = page.cells[::4]
    assert set(HOSTILE[:3]) <= set(names)
    assert "left\\u202eright\\u2028" in names
    assert max(map(len, names)) == 203
    assert "a<b>.safetensors" in page.text
    for name in HOSTILE:
        assert "LazyTensor" in shown(archive[name]).text


def test_datasets_and_figures_of_loaders(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((40, 3)))
    dataset = penstock.rows(tmp_path / "a.npy")
    assert shown(dataset).text == repr(dataset)
    loader = penstock.DataLoader(dataset, batch_size=8, num_workers=0)
    assert sum(1 for _ in loader) == 5
    page = shown(loader.stats())
    assert "5 batches, 40 samples" in page.text
    assert dict(zip(page.cells[::2], page.cells[1::2], strict=True))["samples"] == "40"
