"""The line `OTHER_PAGES` of an index.md stands for the pages beside it that it does not name: none is forgotten."""

from __future__ import annotations

import re
from pathlib import Path


def when_read(app, docname: str, source: list[str]) -> None:
    if "\nOTHER_PAGES\n" not in source[0]:
        return
    named = set(re.findall(r"^[\w/-]+$", source[0], re.MULTILINE)) | {"index"}
    folder = Path(app.srcdir, docname).parent
    others = sorted(page.stem for page in folder.glob("*.md") if page.stem not in named)
    source[0] = source[0].replace("\nOTHER_PAGES\n", "\n" + "".join(f"{name}\n" for name in others))


def setup(app):
    app.connect("source-read", when_read)
    return {"parallel_read_safe": True}
