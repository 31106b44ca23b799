"""What notebooks show of Penstock's objects (`_repr_html_`): a few lines, and a table of at most 20 rows.

All texts are escaped, since names in files are anybody's, and what cannot be seen in them is written out as `repr` of a
str has it. There is no script, no style sheet and nothing to load, so that a notebook's own theme applies.
"""

from __future__ import annotations

from penstock._core import Archive, Dataset, LazyTensor, Tensor
from penstock.errors import InvalidArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

# What a notebook has room for.
MOST_ROWS = 20
MOST_TEXT = 200


def _text(value: object, most: int = MOST_TEXT) -> str:
    import html

    text = str(value)
    shown = text if len(text) <= most else text[:most] + "..."
    seen = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in shown)
    return html.escape(seen)


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.95:
            return f"{count:.1f} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1000
    return f"{count:.1f} TB"


def _heading(kind: str, facts: Iterable[object]) -> str:
    return f"<div><b>{_text(kind)}</b> {_text(', '.join(str(fact) for fact in facts), 500)}</div>"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    titles = "".join(f"<th>{_text(title)}</th>" for title in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _more(left: int) -> str:
    return f"<div>and {left:,} more</div>" if left > 0 else ""


def _tensor(tensor: Tensor) -> str:
    facts = [tensor.dtype, tuple(tensor.shape), tensor.device, _size(tensor.nbytes)]
    return f"{_heading('Tensor', facts)}<pre>{_text(repr(tensor), 4000)}</pre>"


def _lazy(entry: LazyTensor) -> str:
    return _heading(f"LazyTensor {entry.name}", [entry.dtype, tuple(entry.shape), _size(entry.nbytes), "not loaded"])


def _archive(archive: Archive) -> str:
    try:
        names = list(archive.keys())
    except InvalidArgumentError:
        return _heading("Archive", ["closed"])
    entries = [archive[name] for name in names[:MOST_ROWS]]
    rows = [(entry.name, entry.dtype, tuple(entry.shape), _size(entry.nbytes)) for entry in entries]
    heading = _heading("Archive", [archive.path, archive.format, f"{len(names):,} tensors"])
    return heading + _table(["name", "type", "shape", "bytes"], rows) + _more(len(names) - MOST_ROWS)


def _dataset(dataset: Dataset) -> str:
    return f"<pre>{_text(repr(dataset), 2000)}</pre>"


def figures(stats: Mapping[str, Any]) -> str:
    """What a notebook shows of `loader.stats()`, whose module asks for it when it is shown."""
    rows = [
        (name, f"{value:.4g}" if isinstance(value, float) else f"{value:,}")
        for name, value in stats.items()
        if isinstance(value, int | float)
    ]
    return f"<pre>{_text(stats, 4000)}</pre><details><summary>figures</summary>{_table(['figure', ''], rows)}</details>"


_SHOWN: dict[type, Callable[[Any], str]] = {
    Tensor: _tensor,
    LazyTensor: _lazy,
    Archive: _archive,
    Dataset: _dataset,
}


def shown(thing: object) -> str:
    """The `_repr_html_` of an object of a class in `_SHOWN`."""
    return next(show for kind, show in _SHOWN.items() if isinstance(thing, kind))(thing)
