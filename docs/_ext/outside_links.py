"""Links from the pages to files that are not pages lead to the pages that show those files.

In the repository a page says `[HACKING.md](../HACKING.md)`, which works for a reader of the files. On the site a page
of its own includes that file; `SHOWN_BY` names it. A link to another file outside of docs/ stays as it is, and Sphinx
warns about it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath

SHOWN_BY = {
    "README.md": "/index.md",
    "HACKING.md": "/project/hacking.md",
    "SECURITY.md": "/explanation/safety.md",
    "CHANGELOG.md": "/project/changelog.md",
    "docs/formats": "/explanation/formats.md",
    "docs/design": "/design/README.md",
    "examples": "/gallery.md",
}
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def on_site(target: str, folder: str) -> str:
    """The same target as a page of the site; `folder` is where the linking file lies in the repository."""
    path = PurePosixPath(posixpath.normpath(posixpath.join(folder, target)))
    for place in (path, *path.parents):
        if str(place) in SHOWN_BY:
            return SHOWN_BY[str(place)] if place == path or not path.suffix else target
    return target


def rewritten(text: str, folder: str) -> str:
    return LINK.sub(lambda match: on_site(match[0], folder), text)


def when_read(app, docname: str, source: list[str]) -> None:
    source[0] = rewritten(source[0], posixpath.join("docs", posixpath.dirname(docname)))


def setup(app):
    app.connect("source-read", when_read)
    return {"parallel_read_safe": True}
