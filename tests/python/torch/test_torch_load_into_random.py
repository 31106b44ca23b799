"""penstock.torch.load_into with made-up nested targets: like the file, and with one thing too many or too few."""

from __future__ import annotations

import collections
import copy
import io
import random

import pytest
import torch
from load_pairs import same

import penstock.torch as pt

KEYS = ["a", "b", "a.b", "0", 0, 1, (1, 2), 2.5, None, "c"]


def made(source, depth=0):
    kind = source.randrange(11 if depth < 4 else 7)
    count = source.randrange(4)
    if kind < 3:
        return torch.arange(float(count)) + source.random()
    if kind < 6:
        return source.choice([1, 7, "a", "b", None, True, 0.5, b"x"])
    if kind == 6:
        return [source.random() for _ in range(count)]
    if kind < 9:
        return (list if kind == 7 else tuple)(made(source, depth + 1) for _ in range(count))
    items = [(key, made(source, depth + 1)) for key in source.sample(KEYS, count)]
    return (dict if kind == 9 else collections.OrderedDict)(items)


def blank(value):
    """Of the same form and kinds, with nothing of the values."""
    if isinstance(value, torch.Tensor):
        return torch.full_like(value, -1)
    if isinstance(value, dict):
        return type(value)((key, blank(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(map(blank, value))
    changed = {bool: lambda: not value, int: lambda: value + 1, float: lambda: value + 1, str: lambda: value + "!"}
    return changed.get(type(value), lambda: value)()


def parts(value, kind):
    """All that are of that kind, in order."""
    if isinstance(value, kind):
        yield value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    for item in items:
        yield from parts(item, kind)


def case(seed):
    """(content, target like it, file)."""
    source = random.Random(seed)
    content = {"root": made(source), "x": made(source)}
    file = io.BytesIO()
    (pt if source.random() < 0.5 else torch).save(content, file)
    file.seek(0)
    return source, content, blank(content), file


@pytest.mark.parametrize("assign", [False, True])
def test_targets_like_the_file_become_the_file(assign):
    for seed in range(150):
        _, content, target, file = case(seed)
        tensors = list(parts(target, torch.Tensor))
        assert pt.load_into(target, file, assign=assign) == ([], []), seed
        same(target, content)
        if not assign:
            assert all(a is b for a, b in zip(tensors, parts(target, torch.Tensor), strict=True)), seed


@pytest.mark.parametrize("more", ["in the target", "in the file"])
def test_one_key_too_many_is_said_and_nothing_is_touched(more):
    for seed in range(150):
        source, _, target, file = case(seed)
        changed = source.choice(list(parts(target, dict)))
        if more == "in the target":
            changed["extra"] = torch.ones(1)
        elif changed:
            changed.pop(source.choice(list(changed)))
        else:
            continue
        before = copy.deepcopy(target)
        with pytest.raises(RuntimeError, match="Missing key" if more == "in the target" else "Unexpected key"):
            pt.load_into(target, file)
        same(target, before)
        file.seek(0)
        result = pt.load_into(target, file, strict=False)
        assert result.missing_keys if more == "in the target" else result.unexpected_keys, seed
