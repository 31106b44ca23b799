"""The tables of docs/performance.md: each lies between two comments and is drawn from one JSON of bench/results/."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

PAGE = Path("docs/performance.md")


def fill(name: str, table: str, page: Path = PAGE) -> None:
    """Puts the table between the comments of that name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text()
    if begin not in text:
        raise SystemExit(f"{page} has no line {begin!r} to put the figures behind")
    page.write_text(re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{table}{end}", text, flags=re.DOTALL))


def table_of(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, *rows)]
    return lines[0] + f"{'|---' * len(head)}|\n" + "".join(lines[1:])


def place_of(facts: dict) -> str:
    """Where and with what it was measured."""
    peers = "".join(f", {name} {version}" for name, version in facts.get("peers", {}).items())
    return paragraph(
        f"{facts['date']}: {facts['cores']} cores ({facts['cpu']}), {facts['memory_gb']} GB, "
        f"Linux {facts['kernel']}, Python {facts['python']}, torch {facts['torch']}, NumPy {facts['numpy']}, "
        f"safetensors {facts['safetensors']}{peers}. Medians of interleaved runs; warm page cache, but where "
        "a line says cold."
    )


def paragraph(text: str) -> str:
    return f"\n{textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)}\n"
