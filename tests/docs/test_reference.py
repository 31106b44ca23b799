"""Every public name is in the site's reference.

Two tests. What generates the pages is compared with the modules and the headers themselves, which needs no Sphinx. When
the site has been built (script/docs), its index of objects is compared too.
"""

from __future__ import annotations

import importlib
import re
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script"))
from api_names import header_names, python_names  # noqa: E402  # the one reader of public names

INVENTORY = ROOT / "build/docs/html/objects.inv"


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "docs/_ext"))
    return importlib.import_module("reference_pages")


def test_pages_name_every_python_name(pages):
    named = set()
    for lines in pages.python_pages().values():
        module = ""
        for line in lines:
            match = re.match(r"\.\. (py:currentmodule|auto\w+|py:\w+):: ([\w.]+)", line)
            if match and match[1] == "py:currentmodule":
                module = match[2]
            elif match:
                named.add(match[2] if match[2].startswith("penstock.") else f"{module}.{match[2]}")
    assert python_names() - named == set()


def test_pages_name_every_header(pages):
    shown = "\n".join(line for lines in pages.header_pages().values() for line in lines)
    headers = [path.name for path in sorted((ROOT / "include/penstock").glob("*.h"))]
    assert [name for name in headers if f".. doxygenfile:: {name}" not in shown] == []


def test_the_built_site_has_every_name():
    if not INVENTORY.exists():
        pytest.skip("the site is not built here (script/docs)")
    lines = zlib.decompress(INVENTORY.read_bytes().split(b"\n", 4)[4]).decode().split("\n")
    python = {line.split(" ")[0] for line in lines if " py:" in line}
    cpp = {line.split(" ")[0].split("::")[-1] for line in lines if " cpp:" in line}
    assert python_names() - python == set()
    declared = {path.name: header_names(path.read_text()) for path in (ROOT / "include/penstock").glob("*.h")}
    missing = {header: sorted(names - cpp) for header, names in declared.items()}
    assert {header: names for header, names in missing.items() if names} == {}
    assert {"Tensor", "load", "DataLoader", "Shape"} <= declared["tensor.h"] | declared["load.h"] | declared[
        "loader.h"
    ] | declared["shape.h"]
