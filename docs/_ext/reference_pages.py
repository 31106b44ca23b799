"""The pages of the reference, written anew by each build from the module, the headers and the command themselves.

Nobody enters a new function, class, header or command here: what is public gets its page and its heading. Names of
`penstock` stand under the headings of `GROUPS`; those that are not in it stand under "More".
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
HEADERS = ROOT / "include" / "penstock"

GROUPS = {
    "Files": "load load_into load_async open raw save save_async Writer Task Archive LazyTensor WritableArchive Opaque "
    "doctor",
    "Datasets": "rows files packed documents shards dataset zip join subset mix choice with_labels lengths "
    "pack_sequences Dataset pack map_files stream SampleStream",
    "Batches": "DataLoader stack pad pad_to ragged samples Collate",
    "Orders": "Sampler SequentialSampler RandomSampler SubsetSampler WeightedSampler NodeLocalSampler "
    "DistributedSampler BatchSampler length_buckets ranks Ranks",
    "Tensors": "Tensor DType tensor asarray from_dlpack to zeros ones empty full arange rand randn randint Generator",
    "Operations": "cat promote_types result_type",
}
# Public names that `__all__` leaves out, because programs meet them only as results.
RESULTS = ["Extremum", "Task", "Unmatched"]
# Modules of such names, where `penstock` itself does not have them.
ELSEWHERE = {"Task": "penstock._load.task"}

# Modules that a package takes its names from; users import the package.
ROOMS = {
    "penstock.numpy.npz",
    "penstock.numpy.reading",
    "penstock.numpy.writing",
    "penstock.torch.datasets",
    "penstock.torch.loader",
    "penstock.torch.loading",
    "penstock.torch.saving",
    "penstock.torch.serialization",
}

OPERATORS = "__getitem__, __call__, __len__, __iter__, __enter__"


def headed(title: str, lines: list[str], line: str = "=") -> list[str]:
    return [title, line * len(title), "", *lines, ""]


# Packages that only modules for them import (penstock.ray, penstock.dlio), and that need not be here to describe those.
ENGINES = {"ray", "pyarrow", "dlio_benchmark"}


class StandIn(types.ModuleType):
    """A module in which every name is a class."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__class_getitem__": classmethod(lambda kind, _: kind)})


class StandIns:
    """Finds a stand-in for what is not installed of the engines."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        is_engines = name.partition(".")[0] in ENGINES
        return importlib.machinery.ModuleSpec(name, StandIns, is_package=True) if is_engines else None

    @staticmethod
    def create_module(spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return StandIn(spec.name)

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        pass


def python_modules() -> list[str]:
    """The public modules below penstock, each of which has an `__all__`."""
    import penstock

    if StandIns not in sys.meta_path:
        sys.meta_path.append(StandIns)
    found = [each.name for each in pkgutil.walk_packages(penstock.__path__, "penstock.")]
    public = [name for name in found if "._" not in name and name not in ROOMS]
    return [name for name in public if hasattr(importlib.import_module(name), "__all__")]


def python_names(module: str) -> list[str]:
    return [name for name in importlib.import_module(module).__all__ if not name.startswith("__")]


class PythonPages:
    """Describes each object once, where it is first met, and refers to that place from its other names."""

    def __init__(self) -> None:
        self.pages: dict[str, list[str]] = {}
        self.first: dict[int, str] = {}

    def add(self, page: str, title: str, module: str, names: list[str], opening: list[str] | None = None) -> None:
        items = [line for name in names for line in self.item(module, name)]
        lines = [f".. py:currentmodule:: {module}", "", *(opening or []), "", *self.list_of(module, names), *items]
        self.pages[f"python-{page}"] = headed(title, lines)

    @staticmethod
    def list_of(module: str, names: list[str]) -> list[str]:
        """A line for each name, so that a page can be looked over before it is read."""
        lines = [".. list-table::", "   :widths: auto", ""]
        for name in names:
            full = f"{ELSEWHERE.get(name, module)}.{name}"
            lines += [f"   * - :py:obj:`{name} <{full}>`", f"     - {as_rst(first_sentence(full))}"]
        return [*lines, ""] if names else []

    def item(self, module: str, name: str) -> list[str]:
        module = ELSEWHERE.get(name, module)
        item, full = getattr(importlib.import_module(module), name), f"{module}.{name}"
        if not callable(item):
            return [f".. py:data:: {name}", ""]
        kind = "class" if inspect.isclass(item) else "function"
        role = {"class": "class", "function": "func"}[kind]
        if id(item) in self.first:
            return [f".. py:{kind}:: {name}", "", f"   The same as :py:{role}:`{self.first[id(item)]}`.", ""]
        self.first[id(item)] = full
        options = {
            "function": [],
            "class": [":members:", ":undoc-members:", f":special-members: {OPERATORS}", ":show-inheritance:"],
        }[kind]
        if kind == "class" and issubclass(item, BaseException):
            options = [":show-inheritance:"]
        if kind == "class" and any(base.__module__ == "penstock._core" for base in item.__bases__):
            options.append(":inherited-members: object")
        return [f".. auto{kind}:: {full}", *[f"   {option}" for option in options], ""]


def first_sentence(full: str) -> str:
    """What the docstring of a name begins with, behind its signatures. Empty for what is no function and no class."""
    module, _, name = full.rpartition(".")
    item = getattr(importlib.import_module(module), name)
    text = (inspect.getdoc(item) or "") if callable(item) else ""
    prose = [line for line in text.split("\n") if not re.match(r"(@overload|\d+\. )?``?\w+\(|\w+\(.*\)( ->|$)", line)]
    paragraph = " ".join("\n".join(prose).strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.:]) ", paragraph)[0].rstrip(":")


def python_pages() -> dict[str, list[str]]:
    import penstock

    names = [*penstock.__all__, *RESULTS]
    groups = {title: text.split() for title, text in GROUPS.items()}
    known = {name for group in groups.values() for name in group}
    groups["More"] = [name for name in names if name not in known]
    pages = PythonPages()
    # Deeper modules first: a package has the names of its modules again.
    for module in sorted(python_modules(), key=lambda name: (-name.count("."), name)):
        opening = (inspect.getdoc(importlib.import_module(module)) or "").split("\n\n")[0].split("\n")
        pages.add(module, module, module, python_names(module), opening)
    for title, group in groups.items():
        pages.add(title.lower(), f"penstock: {title.lower()}", "penstock", [name for name in group if name in names])
    order = [f"python-{title.lower()}" for title in groups] + sorted(f"python-{module}" for module in python_modules())
    return {name: pages.pages[name] for name in order}


def as_rst(text: str) -> str:
    """Prose with code in single backticks as reStructuredText: what else has a meaning there is escaped."""
    pieces = re.split(r"(`[^`]*`)", text)
    plain = [re.sub(r"(?<=\w)_(?!\w)|[*|]", r"\\\g<0>", piece) for piece in pieces[::2]]
    return "".join(piece for pair in zip(plain, [*pieces[1::2], ""], strict=True) for piece in pair)


# Stands for a colon while napoleon looks at the text of a property, which it would take for "type: text".
COLON = "\ue000"


def with_sections_ended(lines: list[str]) -> list[str]:
    """Prose behind a list of parameters stands two empty lines below it, which ends the list for napoleon."""
    out = []
    for above, line, below in zip(["x", *lines], lines, [*lines[1:], ""], strict=False):
        is_prose = line and not line.startswith(" ") and not below.startswith((" ", "--"))
        out += ["", line] if is_prose and not above else [line]
    return out


def before_napoleon(app, what, name, obj, options, lines: list[str]) -> None:
    kept = (">>>", "...")
    lines[:] = with_sections_ended([line if line.lstrip().startswith(kept) else as_rst(line) for line in lines])
    if what in ("property", "attribute"):
        lines[:] = [line.replace(":", COLON) for line in lines]


def behind_napoleon(app, what, name, obj, options, lines: list[str]) -> None:
    lines[:] = [line.replace(COLON, ":") for line in lines]


def header_opening(text: str) -> list[str]:
    """The comment that a header begins with: how its parts fit."""
    lines = text.removeprefix("#pragma once\n").lstrip("\n").split("\n")
    opening = []
    for line in lines:
        if not line.startswith("///"):
            break
        opening.append(line.removeprefix("///").strip())
    return opening


def header_pages() -> dict[str, list[str]]:
    pages = {}
    for path in sorted(HEADERS.glob("*.h")):
        lines = [f"``#include <penstock/{path.name}>``", "", *map(as_rst, header_opening(path.read_text())), ""]
        lines += [f".. doxygenfile:: {path.name}", "   :project: penstock", ""]
        pages[f"cpp-{path.stem}"] = headed(f"penstock/{path.name}", lines)
    return pages


def said_by(*arguments: str) -> str:
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.check_output([BUILD / "bin" / "penstock", *arguments], text=True, env=environment)


def commands() -> list[str]:
    """The names under "Subcommands:" of the command's help."""
    listed = said_by("--help").partition("Subcommands:\n")[2]
    return re.findall(r"^  (\w[\w-]*)", listed, re.MULTILINE)


def command_page() -> list[str]:
    def block(text: str) -> list[str]:
        return [".. code-block:: text", "", *[f"   {line}".rstrip() for line in text.strip("\n").split("\n")], ""]

    lines = [
        "What ``penstock COMMAND --help`` prints; ``penstock man | man -l -`` shows the same as a manual page.",
        "",
    ]
    lines += block(said_by("--help"))
    for name in commands():
        lines += headed(f"penstock {name}", block(said_by(name, "--help")), "-")
    return headed("The command", lines)


def index_page(pages: dict[str, list[str]], title: str, prefix: str) -> list[str]:
    entries = [f"   {name}" for name in pages if name.startswith(prefix)]
    return headed(title, [".. toctree::", "   :maxdepth: 1", "", *entries])


def write_pages(app) -> None:
    pages = {**python_pages(), **header_pages()}
    pages["command"] = command_page()
    pages["python"] = index_page(pages, "Python", "python-")
    pages["cpp"] = index_page(pages, "C++", "cpp-")
    folder = Path(app.srcdir) / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, lines in pages.items():
        path, text = folder / f"{name}.rst", "\n".join(lines)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app):
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", behind_napoleon, priority=900)
    return {"parallel_read_safe": True}
