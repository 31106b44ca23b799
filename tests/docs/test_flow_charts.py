"""Flow charts of the pages are in the part of Mermaid that the site's builder reads."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHART = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHARTS = [
    pytest.param(chart, id=f"{page.stem}-{number}")
    for page in sorted((ROOT / "docs").rglob("*.md"))
    for number, chart in enumerate(CHART.findall(page.read_text()))
]


@pytest.fixture(scope="module")
def dot_of():
    """The builder's function, which needs no Sphinx."""
    spec = importlib.util.spec_from_file_location("flow_charts", ROOT / "docs/_ext/flow_charts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dot_of


def test_there_are_charts():
    assert len(CHARTS) >= 4


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_of_a_page_becomes_a_graph(dot_of, chart):
    assert dot_of(chart).startswith("digraph {")


@pytest.mark.parametrize("line", ['a[("text")]', "a{text}", 'a["text"] ==> b'])
def test_another_form_is_refused(dot_of, line):
    with pytest.raises(ValueError, match=r'a node of a flow chart is written id\["text"\]'):
        dot_of(f"flowchart TD\n  {line}\n")
