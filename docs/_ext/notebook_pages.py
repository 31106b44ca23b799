"""`{notebook} examples/notebooks/x.ipynb`: the cells of a notebook with what they show, run while the site is built.

Its first line, a heading, is left out: the page has one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from gallery import BUILD, ROOT
from notebook_cells import cells_of
from sphinx.util.docutils import SphinxDirective


def shown_by_cells(path: Path) -> list[dict[str, str]]:
    search = os.pathsep.join([str(BUILD / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [sys.executable, Path(__file__).with_name("notebook_cells.py"), path]
    done = subprocess.run(command, env={**os.environ, "PATH": search}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{path} failed while its page was made:\n{done.stderr}")
    return json.loads(done.stdout)


def literal(text: str, language: str) -> nodes.literal_block:
    block = nodes.literal_block(text, text)
    block["language"] = language
    return block


def output_of(shown: dict[str, str]) -> list[nodes.Node]:
    out: list[nodes.Node] = [literal(shown[key].rstrip("\n"), "text") for key in ("printed", "text") if key in shown]
    if "html" in shown:
        box = nodes.container(classes=["notebook-output"])
        box += nodes.raw("", shown["html"], format="html")
        out.append(box)
    return out


class Notebook(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = ROOT / self.arguments[0]
        self.env.note_dependency(str(path))
        shown = iter(shown_by_cells(path))
        out: list[nodes.Node] = []
        for number, (kind, text) in enumerate(cells_of(path)):
            if kind == "code":
                out += [literal(text, "python"), *output_of(next(shown))]
            else:
                told = text.partition("\n")[2] if number == 0 else text
                out += self.parse_text_to_nodes(told, allow_section_headings=True)
        return out


def setup(app):
    app.add_directive("notebook", Notebook)
    return {"parallel_read_safe": True}
