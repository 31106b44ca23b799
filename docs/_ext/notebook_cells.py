"""Runs the cells of a notebook one after the other, in one process, and tells what each of them shows.

    python notebook_cells.py FILE

prints a list in JSON, one object for each code cell: `printed`, what it wrote to standard output; and of the expression
that it ends with, if any, `html`, what the value has for notebooks, or else `text`, its repr. The first cell that fails
ends the run with its number. Cells are Python alone, without magics.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path


def cells_of(path: Path) -> list[tuple[str, str]]:
    """Each cell's kind ("markdown", "code") and text."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    if notebook["nbformat"] != 4:
        raise ValueError(f"{path}: expected a notebook of nbformat 4, found {notebook['nbformat']}")
    return [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]


def shown_by(code: str, names: dict) -> dict[str, str]:
    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if last else None
    shown = {"printed": printed.getvalue()} if printed.getvalue() else {}
    if value is None:
        return shown
    if hasattr(value, "_repr_html_"):
        return shown | {"html": value._repr_html_()}
    return shown | {"text": repr(value)}


def run(path: Path) -> list[dict[str, str]]:
    names = {"__name__": "__main__"}
    shown = []
    for number, (kind, text) in enumerate(cells_of(path)):
        if kind != "code":
            continue
        try:
            shown.append(shown_by(text, names))
        except Exception as error:
            raise RuntimeError(f"{path}: cell {number} failed:\n{text}") from error
    return shown


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))))
