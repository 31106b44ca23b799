"""Every public callable has a signature, that of the stub, and a docstring that names its parameters."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import penstock

WIDTH = 100
STUB = ast.parse((Path(penstock.__file__).parent / "_core.pyi").read_text())


def public(module):
    return [(f"{module.__name__}.{name}", getattr(module, name)) for name in module.__all__]


def methods(name, kind):
    for attribute in dir(kind):
        if not attribute.startswith("_") and callable(getattr(kind, attribute)):
            yield f"{name}.{attribute}", getattr(kind, attribute)


def callables():
    for name, value in [*public(penstock), *public(penstock.device), *public(penstock.errors)]:
        if callable(value) and not (isinstance(value, type) and issubclass(value, Warning)):
            yield name, value
        if isinstance(value, type) and not issubclass(value, (Exception, tuple)):
            yield from methods(name, value)


CALLABLES = dict(callables())


@pytest.mark.parametrize("name", CALLABLES)
def test_signatures_and_docstrings(name):
    value = CALLABLES[name]
    signature = inspect.signature(value)
    named = [one for one in signature.parameters if one != "self"]
    if not isinstance(value, type) or not issubclass(value, Exception):
        text = inspect.getdoc(value)
        assert text, "no docstring"
        assert max(map(len, text.splitlines())) <= WIDTH
        assert text.splitlines()[0].endswith((".", "...")) or "\n" not in text
        if value not in vars(penstock.errors).values():
            for parameter in named:
                assert re.search(rf"\b{parameter}\b", text), f"{parameter} is not in the docstring"


def bases_in_stub():
    """The classes whose methods stand in Python, by the name of the compiled class."""
    classes = {
        node.name: [ast.unparse(base) for base in node.bases] for node in STUB.body if isinstance(node, ast.ClassDef)
    }
    modules = {
        alias.name: node.module for node in STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    return {
        name: getattr(importlib.import_module(modules[base]), base)
        for name, bases in classes.items()
        for base in bases
        if base in modules
    }


BASES = bases_in_stub()


@pytest.mark.parametrize("name", BASES)
def test_a_compiled_class_has_what_type_checkers_take_for_its_base(name):
    kind, methods = getattr(penstock._core, name), BASES[name]
    inherited = {key: value for base in methods.__mro__[-2::-1] for key, value in vars(base).items()}
    assert kind.__doc__ == methods.__doc__
    for key, value in inherited.items():
        if not key.startswith("__"):
            assert vars(kind)[key] is value, key


@pytest.mark.parametrize("name", CALLABLES)
def test_what_programs_call_is_pythons(name):
    """Signature and docstring stand once, where editors find them."""
    value = CALLABLES[name]
    assert inspect.isfunction(value) or isinstance(value, type), name


def test_bound_methods_and_classes_have_theirs():
    tensor = penstock.ones(2)
    assert list(inspect.signature(tensor.transpose).parameters) == ["dim0", "dim1"]
    assert list(inspect.signature(penstock.Tensor.transpose).parameters) == ["self", "dim0", "dim1"]
    names = list(inspect.signature(penstock.RandomSampler).parameters)
    assert names == ["dataset", "replacement", "num_samples", "compact"]
    assert inspect.signature(penstock.load).bind("x.npy", mmap=True).arguments == {"path": "x.npy", "mmap": True}
    assert inspect.signature(penstock.stack).bind()  # the rule for batches
    assert inspect.signature(penstock.stack).bind([tensor], 0)
    assert tensor.to.__doc__ == penstock.Tensor.to.__doc__


PACKAGES = ["penstock.numpy", "penstock.numpy.safetensors", "penstock.torch", "penstock.torch.safetensors"]


def own_callables(package):
    """Those that are called with arguments, and the methods that a package's own classes define."""
    for name, value in public(importlib.import_module(package)):
        if not callable(value) or (isinstance(value, type) and issubclass(value, (Exception, tuple))):
            continue
        yield name, value
        for attribute, method in vars(value).items() if isinstance(value, type) else ():
            if not attribute.startswith("_") and inspect.isfunction(method):
                yield f"{name}.{attribute}", method


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_over_other_libraries(package):
    """Docstrings in NumPy's style, with an entry for each parameter."""
    pytest.importorskip("torch" if "torch" in package else "numpy")
    for name, value in own_callables(package):
        signature = inspect.signature(value)
        text = inspect.getdoc(value)
        assert text, name
        assert max(map(len, text.splitlines())) <= WIDTH, name
        assert text.splitlines()[0].endswith("."), name
        entries, wanted = entries_of(text), [one for one in signature.parameters if one != "self"]
        assert sorted(entries.get("Parameters", [])) == sorted(wanted), name
        if wanted and not isinstance(value, type) and signature.return_annotation not in {"None", None}:
            assert entries.get("Returns"), name


def entries_of(text):
    """The names in each section of a docstring."""
    found, section = {}, None
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"} and len(below) == len(line):
            section = found.setdefault(line, [])
        elif section is not None and line and not line.startswith(" ") and set(line) != {"-"}:
            section += line.split(", ")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_errors_and_warnings_say_what_they_are(package):
    pytest.importorskip("torch" if "torch" in package else "numpy")
    for name, value in public(importlib.import_module(package)):
        if isinstance(value, type) and issubclass(value, (Exception, Warning)):
            if not issubclass(value, Warning):
                inspect.signature(value)
            assert inspect.getdoc(value), name
            assert max(map(len, inspect.getdoc(value).splitlines())) <= 124, name
