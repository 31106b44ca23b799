"""The first screen of README and the site: figures are those of the table, the picture is what the command prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README, SITE = (ROOT / "README.md").read_text(), (ROOT / "docs/index.md").read_text()
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build/release"))


@pytest.mark.parametrize("page", [README, SITE], ids=["README", "site"])
def test_the_figure_in_words_is_that_of_the_table(page):
    words = " ".join(page.split())
    said = re.search(r"([\d,]+) small `.pt` files a second, (\d+) times .*? gets through ([\d,]+)", words)
    row = re.search(r"^\| 10,000 \.pt of 16 KB .*$", (ROOT / "docs/performance.md").read_text(), re.MULTILINE)[0]
    ours, _, floor, times = (cell.strip() for cell in row.split("|")[2:6])
    taken = [float(re.match(r"[\d,.]+", cell)[0].replace(",", "")) for cell in (ours, times, floor)]
    told = [float(number.replace(",", "")) for number in said.groups()]
    assert round(taken[0], -3) == told[0]
    assert int(taken[1]) == told[1]
    assert round(taken[2], -4) == told[2]


@pytest.mark.parametrize(("page", "picture"), [(README, "docs/terminal.svg"), (SITE, "terminal.svg")])
def test_the_picture_is_there(page, picture):
    assert f"]({picture})" in page


def test_the_picture_is_what_the_command_prints():
    if not (BUILD / "bin/penstock").exists():
        pytest.skip("the command is not built here (script/build)")
    done = subprocess.run(
        [sys.executable, ROOT / "script/terminal_picture.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_first_screen_has_what_a_stranger_looks_for():
    """What it is, a figure, how to install it, ten lines that run, before anything else."""
    first = README[: README.index("## Try it")]
    assert first.index("## Install") < first.index("pip install") < first.index("```python")
    code = re.search(r"```python\n(.*?)```", first, re.DOTALL)[1]
    assert len([line for line in code.splitlines() if line]) <= 10
    assert len(first.splitlines()) < 60
