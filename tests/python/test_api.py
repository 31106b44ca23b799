"""Public names since the last release: what came, went or changed is named in the changelog's newest section."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script"))
import api_names  # noqa: E402


def last_release():
    files = (ROOT / "tests/api").glob("*.txt")
    return max(files, key=lambda path: [int(number) for number in path.stem.split(".")], default=None)


def test_changes_since_the_last_release_are_in_the_changelog():
    pytest.importorskip("torch")
    last = last_release()
    if last is None:
        pytest.skip("nothing is released yet, so tests/api has no file of a release")
    old, new = last.read_text().splitlines(), api_names.lines()
    assert api_names.unlisted(old, new, (ROOT / "CHANGELOG.md").read_text()) == []


def test_the_names_are_the_modules_and_the_commands():
    pytest.importorskip("torch")
    lines = api_names.lines()
    names = {line.partition("(")[0] for line in lines}
    assert {"python penstock.load", "python penstock.torch.load", "python penstock.DataLoader"} <= names
    assert {"c++ loader.h DataLoader.next", "command penstock ls", "command penstock ls --json"} <= names
    assert len(lines) > 1500
    assert not [line for line in lines if " at 0x" in line]
