"""Objects whose own code raises where they are asked for an attribute that they lack."""

from __future__ import annotations

import io

import numpy as np
import pytest

import penstock
import penstock.numpy


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

    write = ndim = shape = __dlpack__ = __penstock_dataset__ = read


OBJECTS = [Raises(), Properties()]


class Reader:
    """A file of nothing but bytes."""

    def __init__(self, data):
        self._data = io.BytesIO(data)

    def read(self, count=-1):
        return self._data.read(count)

    def __getattr__(self, name):
        raise KeyError(name)


class Named(io.BytesIO):
    @property
    def name(self):
        raise KeyError("name")


@pytest.mark.parametrize("given", OBJECTS, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize(
    "call",
    [
        penstock.load,
        penstock.open,
        penstock.stream,
        penstock.numpy.load,
        lambda given: penstock.raw(given, "float32"),
        lambda given: penstock.numpy.save(given, np.ones(2)),
        lambda given: penstock.load_into({"a": np.ones(2, "f4")}, given),
        lambda given: penstock.DataLoader(given, 1),
    ],
    ids="load open stream numpy.load raw numpy.save load_into DataLoader".split(),
)
def test_what_they_raise_is_no_error_of_a_call_that_does_not_take_them(call, given):
    with pytest.raises(TypeError, match=type(given).__name__):
        call(given)


@pytest.mark.parametrize("given", [Dict(), *OBJECTS], ids=lambda given: type(given).__name__)
def test_they_are_no_places_for_tensors(tmp_path, given):
    np.save(tmp_path / "a.npy", np.ones(2))
    with pytest.raises(penstock.Error):
        penstock.load_into({"w": given}, tmp_path / "a.npy")


def test_a_stream_of_them_says_what_it_wants():
    with pytest.raises(TypeError, match="the function of stream"):
        next(iter(penstock.DataLoader(penstock.stream(Raises), 1)))


@pytest.mark.parametrize("kind", [Reader, Named])
def test_files_without_other_ways_are_read(kind):
    out = io.BytesIO()
    np.save(out, np.arange(3))
    for load in (penstock.load, penstock.numpy.load):
        assert np.asarray(load(kind(out.getvalue()))).tolist() == [0, 1, 2]


def test_files_without_a_name_are_written():
    out = Named()
    penstock.numpy.save(out, np.arange(3))
    assert np.load(io.BytesIO(out.getvalue())).tolist() == [0, 1, 2]
