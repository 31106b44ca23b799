"""Objects of the program's whose own code raises where they are asked for an attribute that they lack."""

from __future__ import annotations

import io

import pytest
import torch

import penstock
import penstock.torch as pt


class Dict(dict):
    """As configurations are often written."""

    __getattr__ = dict.__getitem__


class Raises:
    def __getattr__(self, name):
        raise RuntimeError(name)


class Properties:
    @property
    def read(self):
        raise ValueError("read")

    write = dtype = __dict__ = read


class Named(io.BytesIO):
    @property
    def name(self):
        raise KeyError("name")


@pytest.mark.parametrize("given", [Dict(a=1), Raises(), Properties()], ids=lambda given: type(given).__name__)
def test_what_they_raise_is_no_error_of_load_and_save(tmp_path, given):
    with pytest.raises(AttributeError, match=type(given).__name__):
        pt.load(given)
    with pytest.raises(AttributeError, match=type(given).__name__):
        pt.save(torch.ones(1), given)
    with pytest.raises(penstock.DTypeMismatchError, match=rf"at \['a'\]\[0\].*{type(given).__name__}"):
        pt.save({"a": [given]}, tmp_path / "x.pt")


def test_files_without_a_name_are_written_and_read():
    out = Named()
    pt.save({"a": torch.ones(2)}, out)
    assert pt.load(Named(out.getvalue()))["a"].tolist() == [1, 1]
    torch.save(torch.ones(1), out := Named())
    assert pt.load(Named(out.getvalue())).tolist() == [1]


def test_a_stream_of_them_says_what_it_wants():
    for given in (Raises(), Raises):
        with pytest.raises(TypeError, match="stream"):
            list(pt.Stream(given))
