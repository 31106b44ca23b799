"""`{root-file} SECURITY.md`: the text of a Markdown file of the repository's root, its links turned to pages."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from outside_links import on_site
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")


def page_of(target: str) -> str:
    """From the root a link to docs/x.md is the page /x.md."""
    shown = on_site(target, "")
    return "/" + shown.removeprefix("docs/") if shown.startswith("docs/") else shown


class RootFile(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        text = LINK.sub(lambda match: page_of(match[0]), path.read_text())
        return self.parse_text_to_nodes(text.partition("\n")[2], allow_section_headings=True)


def setup(app):
    app.add_directive("root-file", RootFile)
    return {"parallel_read_safe": True}
