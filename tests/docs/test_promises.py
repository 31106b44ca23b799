"""docs/design/promises.md names tests that are there, for each of the documents that promise something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/design/promises.md"
DOCUMENTS = (
    "SECURITY.md",
    "docs/remote.md",
    "docs/settings.md",
    "docs/guide",
    "docs/howto/faq.md",
    "docs/stability.md",
)


def rows(page: str) -> dict[str, list[tuple[str, str]]]:
    """The rows (promise, tests) of each section's table."""
    out: dict[str, list[tuple[str, str]]] = {}
    section = ""
    for line in page.splitlines():
        if line.startswith("## "):
            section = line[3:]
            out[section] = []
        elif line.startswith("| ") and line != "| promise | test |":
            promise, tests = line.strip("| ").rsplit(" | ", 1)
            out[section].append((promise, tests))
    return out


def named_tests(cell: str) -> list[tuple[str, list[str]]]:
    """The files of a cell, each with the tests in it that the cell names."""
    out: list[tuple[str, list[str]]] = []
    for quoted in re.findall(r"`([^`]+)`", cell):
        if "/" in quoted:
            out.append((quoted, []))
        else:
            out[-1][1].append(quoted)
    return out


def is_defined(name: str, text: str) -> bool:
    if name.startswith("test_"):
        return re.search(rf"^\s*(async )?def {name}\(", text, re.MULTILINE) is not None
    suite, _, case = name.partition(".")
    return re.search(rf"^\s*(TYPED_)?TEST(_F|_P)?\({suite},\s*{case}\)", text, re.MULTILINE) is not None


def problems(page: str, root: Path) -> list[str]:
    out = []
    for section, table in rows(page).items():
        for promise, tests in table:
            named = named_tests(tests)
            if not named:
                out.append(f"{section}: no test holds: {promise}")
            for path, names in named:
                if not (root / path).exists():
                    out.append(f"{section}: there is no {path}")
                    continue
                text = (root / path).read_text() if names else ""
                out += [f"{section}: {path} has no {name}" for name in names if not is_defined(name, text)]
    return out


def test_all_named_tests_are_there():
    assert problems(PAGE.read_text(), ROOT) == []


def test_each_document_has_a_section():
    table = rows(PAGE.read_text())
    assert list(table) == list(DOCUMENTS)
    for document in DOCUMENTS:
        assert (ROOT / document).exists()
        assert len(table[document]) >= 5


@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("`tests/a_test.cpp` `A.IsThere`; `tests/test_a.py` `test_is_there`", None),
        ("`tests/a_test.cpp`", None),
        ("`tests/a_test.cpp` `A.IsGone`", "tests/a_test.cpp has no A.IsGone"),
        ("`tests/a_test.cpp` `A.Is`", "tests/a_test.cpp has no A.Is"),
        ("`tests/test_a.py` `test_is_there`, `test_is`", "tests/test_a.py has no test_is"),
        ("`tests/gone.py` `test_is_there`", "there is no tests/gone.py"),
        ("by hand", "no test holds: it holds"),
    ],
)
def test_what_is_gone_is_told(cell, problem, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/a_test.cpp").write_text("TEST_F(A, IsThere) {}\n")
    (tmp_path / "tests/test_a.py").write_text("def test_is_there():\n    pass\n")
    page = f"## X.md\n\n| promise | test |\n|---|---|\n| it holds | {cell} |\n"
    assert problems(page, tmp_path) == ([f"X.md: {problem}"] if problem else [])


def test_each_format_has_a_fuzzer_and_a_corpus():
    """The rows of the table of formats, and packed samples, which lie in `.safetensors`."""
    table = (ROOT / "src/format/formats.cpp").read_text()
    listed = re.search(r"kFormats\{(.*?)\}", table, re.DOTALL)[1]
    names = re.findall(r"k(\w+)Format\b", listed)
    assert len(names) >= 8
    for name in [*names, "Packed"]:
        fuzzer = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("dcp_shards", "shards")
        assert (ROOT / f"fuzz/{fuzzer}.cpp").exists(), name
        assert list((ROOT / "fuzz/corpus" / fuzzer).iterdir()), name
