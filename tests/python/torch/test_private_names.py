"""Names that torch keeps to itself are used in one file, and a torch without one of them is told by name."""

import ast
import os
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import penstock
from penstock.torch import _private

PACKAGE = Path(penstock.__file__).parent
TREES = {
    str(path.relative_to(PACKAGE)): ast.parse(path.read_text())
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] not in ("ray", "dlio.py", "grain.py")
}

# Private names of others than torch, and why they are used.
OTHERS = {
    "_TemporaryFileWrapper": "what tempfile gives, which has no public type",
    "_current_frames": "of sys, documented",
    "_getframe": "of sys, documented",
    "_is_gil_enabled": "of sys, documented",
    "_exit": "of os, documented",
    "_args_from_interpreter_flags": "of subprocess, which multiprocessing takes from there too",
    "_fields": "of named tuples, documented",
    "_replace": "of named tuples, documented",
    "_dataclass_setstate": "of dataclasses; None where it is gone",
    "_member_type_": "of enums, documented",
    "_target": "of threads: the function, until they end; None where it is gone",
}
LISTED = {name for names in _private.ATTRIBUTES.values() for name in names}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_names() -> set[str]:
    """Private names that the package itself gives to something, the compiled module among it."""
    out = set()
    for tree in [*TREES.values(), ast.parse((PACKAGE / "_core.pyi").read_text())]:
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                out.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                out.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                out.add(node.attr)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock"):
                out.update(alias.name for alias in node.names)
    return out


def torch_imports(tree: ast.AST):
    """Private names and modules of torch that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in found:
            if name.partition(".")[0] == "torch" and any(map(is_private, name.split("."))):
                yield name


def torch_attributes(tree: ast.AST):
    """Private attributes that begin at a module of torch, such as torch._C._x."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in LISTED:
            text = ast.unparse(node)
            if text.startswith(("torch.", "torch_data.", "dist.")):
                yield text


@pytest.mark.parametrize("file", sorted(set(TREES) - {"torch/_private.py"}))
def test_private_names_of_torch_are_used_in_one_file_alone(file):
    assert list(torch_imports(TREES[file])) == []
    assert list(torch_attributes(TREES[file])) == []


def private_attributes(tree: ast.AST):
    """Private attributes, those that getattr asks for by their text among them, and their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
            name = getattr(node.args[1], "value", "")
            if is_private(str(name)):
                yield name, node.lineno


def test_every_other_private_attribute_is_our_own_or_is_listed():
    used = {
        name: f"{file}:{line}"
        for file, tree in TREES.items()
        if file != "torch/_private.py"
        for name, line in private_attributes(tree)
    }
    known = own_names() | LISTED | set(OTHERS)
    assert {name: place for name, place in used.items() if name not in known} == {}
    assert LISTED - set(used) == set(), "what nothing uses is not to be listed"


def test_this_torch_has_all_names():
    assert _private.GONE == []
    for name in _private.LATE:
        assert isinstance(getattr(_private, name), type)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _private.nothing_of_the_kind  # noqa: B018


def owner(path: str):
    value = torch
    for part in path.split(".")[1:]:
        value = getattr(value, part) if hasattr(value, part) else import_module(f"{value.__name__}.{part}")
    return value


@pytest.mark.parametrize("path", [path for path in _private.ATTRIBUTES if not path.startswith("of ")])
def test_classes_of_torch_have_the_attributes(path):
    assert [name for name in _private.ATTRIBUTES[path] if not hasattr(owner(path), name)] == []


def iterator(workers: int):
    return iter(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(4)), num_workers=workers))


OBJECTS = {
    "of torch.utils.data.dataloader._BaseDataLoaderIter": lambda: iterator(0),
    "of torch.utils.data.dataloader._SingleProcessDataLoaderIter": lambda: iterator(0),
    "of torch.utils.data.dataloader._MultiProcessingDataLoaderIter": lambda: iterator(1),
    "of torch._subclasses.fake_tensor.FakeTensorMode": lambda: FakeTensorMode(),
    "of torch.utils._python_dispatch.TorchDispatchMode": lambda: TorchDispatchMode(_private.DispatchKey.PreDispatch),
    "of torch.nn.Module": lambda: torch.nn.Linear(1, 1),
    "of torch.nested._internal.nested_tensor.NestedTensor": lambda: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], layout=torch.jagged
    ),
    "of torch.storage.TypedStorage": lambda: torch.storage.TypedStorage(
        wrap_storage=torch.UntypedStorage(4), dtype=torch.float32, _internal=True
    ),
    "of torch.distributed.ProcessGroup": None,
}


def test_objects_of_each_kind_are_made_here():
    assert set(OBJECTS) == {path for path in _private.ATTRIBUTES if path.startswith("of ")}


@pytest.mark.parametrize("path", [path for path, made in OBJECTS.items() if made])
def test_objects_of_torch_have_the_attributes(path):
    made = OBJECTS[path]()
    assert [name for name in _private.ATTRIBUTES[path] if not hasattr(made, name)] == []


def test_groups_of_processes_have_the_attributes(tmp_path):
    code = (
        "import sys, torch.distributed as dist\n"
        f"dist.init_process_group('gloo', init_method='file://{tmp_path}/store', rank=0, world_size=1)\n"
        "print(*(hasattr(dist.group.WORLD, name) for name in sys.argv[1:]))\n"
        "dist.destroy_process_group()\n"
    )
    names = _private.ATTRIBUTES["of torch.distributed.ProcessGroup"]
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, timeout=300, check=True)
    assert set(done.stdout.split()) == {"True"}


def output_of(code: str, path: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    return done.stdout + done.stderr


def stub(folder: Path, version: str) -> str:
    """What `import penstock.torch` says of a torch of that version, which has nothing else."""
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    return output_of("import penstock.torch", folder)


@pytest.mark.parametrize("version", ["1.13.1", "2.9.1+cpu", "2.10.0a0+git1234"])
def test_a_torch_that_is_too_old_is_told_with_both_versions(tmp_path, version):
    text = stub(tmp_path, version)
    assert f"ImportError: penstock.torch needs torch 2.11 or later, and this is torch {version} (in {tmp_path}" in text
    assert "It was tried with 2.11.0, 2.13.0 and 2.14.1" in text


def test_a_torch_that_lacks_what_all_need_is_told_by_name(tmp_path):
    text = stub(tmp_path, "3.0.0")
    assert "ImportError: penstock.torch needs torch 2.11 or later, and this is torch 3.0.0: No module named" in text


def test_a_missing_torch_is_told():
    text = output_of("import sys; sys.modules['torch'] = None; import penstock.torch")
    assert "ModuleNotFoundError: penstock.torch needs PyTorch: pip install torch" in text


def test_what_single_functions_need_is_told_when_they_are_called(tmp_path):
    torch.save({"t": torch.ones(2), "n": torch.nested.nested_tensor([torch.ones(2)])}, tmp_path / "n.pt")
    torch.save({"t": torch.ones(2)}, tmp_path / "t.pt")
    code = (
        "import torch; del torch._nested_view_from_buffer\n"
        "import penstock.torch as pt\n"
        f"print(pt.load('{tmp_path}/t.pt'))\n"
        f"pt.load('{tmp_path}/n.pt')\n"
    )
    text = output_of(code)
    assert "{'t': tensor([1., 1.])}" in text
    assert f"this is torch {torch.__version__}, which has no torch._nested_view_from_buffer" in text


def test_what_is_late_is_told_by_name():
    code = (
        "import torch.distributed.checkpoint.filesystem as f; del f._StorageInfo\n"
        "import penstock.torch\n"
        "import penstock.torch.dcp\n"
    )
    assert "which has no torch.distributed.checkpoint.filesystem._StorageInfo" in output_of(code)


def test_a_name_that_is_gone_does_not_pickle_silently():
    with pytest.raises(NotImplementedError, match=r"which has no torch\._gone"):
        pickle.loads(pickle.dumps(_private._Gone("torch._gone")))()
