"""penstock.Opaque: its text, whatever a file makes of its parts."""

from __future__ import annotations

import collections
import zipfile

import pytest

import penstock


def test_the_text_says_what_it_is():
    assert repr(penstock.Opaque("a.B")) == "penstock.Opaque('a.B')"
    parts = ([1, 2.5, "x"], {"k": (1,)}, set(), frozenset({2}), collections.OrderedDict(a=b"1"))
    text = "args=([1, 2.5, 'x'], {'k': (1,)}, set(), frozenset({2}), OrderedDict({'a': b'1'})), state={'n': None}"
    assert repr(penstock.Opaque("a.B", parts, {"n": None})) == f"penstock.Opaque('a.B', {text})"


def test_an_object_within_itself():
    items = []
    opaque = penstock.Opaque("a.B", (items,))
    items.append(opaque)
    assert repr(opaque) == "penstock.Opaque('a.B', args=([...],))"


class Holder:
    """An object with a repr of its own, which asks for those of its parts."""

    def __init__(self, *parts):
        self.parts = parts

    def __repr__(self):
        return f"Holder{self.parts!r}"


def test_shared_parts_do_not_multiply():
    opaque = holder = penstock.Opaque("a.B", (1,))
    for _ in range(60):
        opaque = penstock.Opaque("a.B", (opaque, opaque), [opaque])
    for _ in range(12):
        holder = penstock.Opaque("a.B", (Holder(holder, holder),))
    for shared in (opaque, holder):
        assert len(repr(shared)) <= 2000
        assert repr(shared).endswith("...")


@pytest.mark.parametrize("wide", [range(10**6), ["x" * 10**6] * 1000, [b"x" * 10**6]])
def test_long_parts_are_cut(wide):
    assert len(repr(penstock.Opaque("a.B", tuple(wide)))) <= 2000
    assert len(repr(penstock.Opaque("n" * 10**6))) < 200


def test_a_small_file_has_a_small_text(tmp_path):
    pickled = b"\x80\x02cfoo\nbar\nK\x01\x85Rq\x00"
    for i in range(1, 200):
        pickled += b"0cfoo\nbar\nh" + bytes([i - 1]) + b"h" + bytes([i - 1]) + b"\x86Rq" + bytes([i])
    with zipfile.ZipFile(tmp_path / "x.pt", "w") as out:
        out.writestr("x/data.pkl", pickled + b".")
        out.writestr("x/version", "3\n")
    assert len(str(penstock.load(tmp_path / "x.pt"))) <= 2000
