"""The package's modules import each other in one direction, so that each can be read without those above it."""

import ast
import importlib.util
from pathlib import Path

PACKAGE = Path(importlib.util.find_spec("penstock").origin).parent

# Rooms of penstock.torch, each importing only those before it; modules beside the rooms are in the first.
ROOMS = ["", "loading", "saving", "datasets", "loader", "dcp"]

# What users look up, and what is made of such names; it lies above all rooms.
FACADES = {f"penstock.torch{name}" for name in ("", ".serialization", ".safetensors", "._transformers")}

# Inside of a function, for a dataset of torch's, whose program has imported torch.
FOR_TORCHS_DATASETS = {("penstock.ray._loader", "penstock.torch")}

# Engines that are programs of torch; inside of a function, too.
FOR_ENGINES = {("penstock.vllm", "penstock.torch"), ("penstock.sglang", "penstock.torch")}

# Imports inside of functions that would be a circle at the top, and why each has to be.
HIDDEN: dict[tuple[str, str], str] = {}


def files() -> dict[str, Path]:
    """Each module's file by the module's name."""
    out = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("penstock", *path.relative_to(PACKAGE).with_suffix("").parts)
        out[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return out


MODULES = files()


def named_by(node: ast.AST) -> set[str]:
    """Modules of ours that an import statement names; `from package import module` names the module."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names if alias.name in MODULES}
    if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
        inner = {f"{node.module}.{alias.name}" for alias in node.names}
        own = {node.module} if any(f"{node.module}.{a.name}" not in MODULES for a in node.names) else set()
        return {name for name in inner | own if name in MODULES}
    return set()


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imports_of(tree: ast.AST) -> tuple[set[str], set[str]]:
    """What runs when the module is imported, and what runs later, in functions. Names for type checkers count as the
    latter: a reader has to follow them too."""
    top: set[str] = set()
    later: set[str] = set()

    def visit(node: ast.AST, out: set[str]) -> None:
        out |= named_by(node)
        inside = later if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_for_types(node) else out
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, top)
    return top, later


IMPORTS = {name: imports_of(ast.parse(path.read_text())) for name, path in MODULES.items()}


def reached_from(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for name in edges[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


TOP = {name: top for name, (top, _) in IMPORTS.items()}


def test_no_circle_at_the_top():
    assert {name for name in MODULES if name in reached_from(name, TOP)} == set()


def test_no_circle_is_hidden_in_a_function():
    hidden = {
        (name, other)
        for name, (_, later) in IMPORTS.items()
        for other in later
        if other == name or name in reached_from(other, TOP)
    }
    assert hidden == set(HIDDEN)


def room_of(module: str) -> int:
    room = module.split(".")[2] if module.count(".") > 1 else ""
    return ROOMS.index(room) if room in ROOMS else 0


def test_rooms_import_only_those_before_them():
    wrong = [
        f"{name} imports {other}"
        for name, imports in IMPORTS.items()
        for other in set.union(*imports)
        if name.startswith("penstock.torch.") and name not in FACADES
        if other in FACADES or (other.startswith("penstock.torch.") and room_of(other) > room_of(name))
    ]
    assert wrong == []


def test_what_needs_no_torch_does_not_import_it():
    wrong = [
        f"{name} imports {other}"
        for name, imports in IMPORTS.items()
        for other in set.union(*imports)
        if not name.startswith("penstock.torch") and other.startswith("penstock.torch")
        if (name, other) not in FOR_TORCHS_DATASETS | FOR_ENGINES
    ]
    assert wrong == []


def test_modules_for_engines_are_imported_by_nobody():
    """`import penstock` brings none of them."""
    for engine in ("penstock.ray", "penstock.grain", "penstock.dlio", "penstock.sglang"):
        assert engine in MODULES
        by = {name for name, imports in IMPORTS.items() for other in set.union(*imports) if other.startswith(engine)}
        assert {name for name in by if not name.startswith(engine)} == set()


def test_every_folder_is_a_known_room():
    folders = {path.name for path in (PACKAGE / "torch").iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ROOMS) - {""}


def test_a_circle_would_be_noticed():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert {name for name in edges if name in reached_from(name, edges)} == {"a", "b", "c"}
    source = "import penstock.errors\ndef f():\n  from penstock import numpy\n  from penstock._text import plural"
    assert imports_of(ast.parse(source)) == ({"penstock.errors"}, {"penstock.numpy", "penstock._text"})
