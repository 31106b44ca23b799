"""An argument of a wrong type is named by the error, in words: no signature of C++'s."""

from __future__ import annotations

import inspect
import re
import shutil
import warnings
from pathlib import Path

import pytest
import torch
from wrong_arguments import MADE, NO_ARGUMENTS, TABLE, make_files

import penstock
import penstock.numpy
import penstock.torch

WRONG = {"None": None, "object": object(), "number": 2.5, "text": "a text"}
# What a function takes whatever it is, so that an error is about the content: it may say which class it found.
CONTENT = {"obj", "target", "arr"}
# torch and safetensors raise this where the same is found, and programs may look for it.
AS_PEERS = {"f", "path", "model", "tensor_dict"}
# Of a right type, with which something else has to be said first.
EARLY = {("order", "text"), ("label", "text")}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("wrong"))
        make_files()
        yield


def error_of(function, arguments):
    """The error that a call ends in, also one that goes on beside the program; None where it has a result."""
    remove(WRONG["text"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = function(**arguments)
            if function in (penstock.load_async, penstock.save_async):
                made.result()
        except (TypeError, ValueError, AttributeError, penstock.Error) as error:
            return error
    return None


def remove(path):
    """What an earlier call wrote there."""
    if Path(path).is_dir():
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


def names_of(function):
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one.name for one in parameters if one.kind in kinds and one.name != "self"]


def said(error, name, value):
    """Whether the error says which argument was wrong, or shows the value itself."""
    return re.search(rf"\b{name}\b", str(error)) or (isinstance(value, (str, float)) and str(value) in str(error))


@pytest.mark.parametrize("row", TABLE)
def test_the_argument_is_named(row):
    make, name, arguments = TABLE[row]
    for argument in names_of(getattr(make(), name)):
        for kind, value in WRONG.items():
            error = error_of(getattr(make(), name), {**arguments(), argument: value})
            if error is None:
                continue
            where = f"{row}({argument}={kind}): {type(error).__name__}: {error}"
            assert "incompatible function arguments" not in str(error), where
            assert "Invoked with types" not in str(error), where
            assert isinstance(error, (TypeError, ValueError, penstock.Error)) or argument in AS_PEERS, where
            assert argument in CONTENT or (argument, kind) in EARLY or said(error, argument, value), where


def public_of(module):
    for name in module.__all__:
        value = getattr(module, name)
        if callable(value) and not (isinstance(value, type) and issubclass(value, (Exception, torch.Tensor))):
            yield name


@pytest.mark.parametrize("module", [penstock, penstock.torch, penstock.numpy], ids=lambda module: module.__name__)
def test_every_public_function_has_a_row(module):
    rows = {row.rpartition(".")[2] for row in TABLE if row.rpartition(".")[0] == module.__name__}
    missing = set(public_of(module)) - rows - NO_ARGUMENTS[module.__name__] - MADE
    assert {name for name in missing if names_of_or_none(getattr(module, name))} == set()


def names_of_or_none(function):
    """The arguments that have names; none for a class that programs do not make, as an Archive."""
    try:
        return names_of(function)
    except (TypeError, ValueError):
        return []


def test_a_sentence_says_what_was_found_and_what_is_expected():
    for call, text in {
        lambda: penstock.load("rows.npy", device=None): "found device=None, expected a value; leave it out for its "
        "default, 'cpu'",
        lambda: penstock.load("rows.npy", threads="8"): "found threads='8', expected a whole number or None",
        lambda: penstock.pad(dim=None): "found dim=None, expected a whole number",
        lambda: penstock.files(3.5): "found pattern=3.5, expected a text, a path or several paths",
        lambda: penstock.pad(mode=object()): "found mode=an object of type object, expected a text",
    }.items():
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == text
        assert isinstance(caught.value, penstock.DTypeMismatchError)


def test_functions_of_the_program_keep_their_errors():
    def fails(index):
        raise TypeError("of my own")

    for call in (
        lambda: penstock.dataset(3, fails)[0],
        lambda: penstock.rows("rows.npy").map(fails)[0],
        lambda: penstock.rows("rows.npy").filter(fails),
        lambda: penstock.dataset(fails(i) for i in range(3)),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        assert "of my own" in str(caught.value)


def test_a_call_without_a_function_of_ours_is_told_in_words():
    with pytest.raises(TypeError) as caught:
        penstock.rows("rows.npy")["a"]
    assert "incompatible" not in str(caught.value)
