"""Objects of odd tensors in odd nests, in every format that torch writes: through both libraries, both ways."""

from __future__ import annotations

import collections
import random

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from load_pairs import same, with_attribute

import penstock.torch as pt

OLD_NAMES = "float16 bfloat16 float32 float64 complex64 complex128 bool uint8 int8 int16 int32 int64"
OLD_DTYPES = [getattr(torch, name) for name in OLD_NAMES.split()]
NEW_DTYPES = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn]
PLAIN = [None, True, 1, -5, 2**40, -(2**80), 1.5, float("inf"), "x", "\u00fc\ud800", "a" * 300, b"\0\xff", 1j, ()]
TORCHS = [torch.Size([1, 2]), torch.float32, torch.device("cpu"), bytearray(b"z"), {1, 2}]


class Maker:
    """A random object; parts of it are met again, and tensors are views of each other."""

    def __init__(self, seed, dtypes):
        self.random = random.Random(seed)
        self.dtypes = dtypes
        self.bases = []
        self.met = []

    def value(self, depth=0):
        draw = self.random.random()
        if draw < 0.4:
            made = self.view() if self.bases and self.random.random() < 0.4 else self.tensor()
        elif draw < 0.48 and self.met:
            return self.random.choice(self.met)
        elif draw < 0.55 or depth > 3:
            return self.random.choice(PLAIN + TORCHS)
        else:
            return self.container(depth)
        self.met.append(made)
        return made

    def container(self, depth):
        items = [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        keyed = [(self.random.choice([i, str(i), (i, "k")]), item) for i, item in enumerate(items)]
        made = self.random.choice([list, tuple, dict, collections.OrderedDict])
        made = made(items) if made in (list, tuple) else made(keyed)
        self.met.append(made)
        return made

    def tensor(self):
        shape = [self.random.choice([0, 1, 1, 2, 3, 5]) for _ in range(self.random.randrange(4))]
        tensor = torch.randint(0, 9, shape).to(self.random.choice(self.dtypes))
        draw = self.random.random()
        if tensor.dtype in OLD_DTYPES and (tensor.is_floating_point() or tensor.is_complex()):
            if draw < 0.2:
                return torch.nn.Parameter(tensor, requires_grad=draw < 0.1)
            if draw < 0.4:
                tensor.requires_grad_()
        if draw > 0.9:
            with_attribute(tensor)
        elif draw > 0.85 and shape and tensor.dtype in OLD_DTYPES:
            return tensor.detach().to_sparse()
        self.bases.append(tensor)
        return tensor

    def view(self):
        view = self.random.choice(self.bases)
        for _ in range(self.random.randrange(1, 4)):
            view = self.step(view)
        return view

    def step(self, x):
        """One of torch's ways to another view: an offset, other strides, dimensions of stride 0, none."""
        ways = [lambda: x.unsqueeze(self.random.randrange(x.dim() + 1)), lambda: x.unsqueeze(0).expand(2, *x.shape)]
        if x.is_complex():
            ways.append(x.conj)
        if x.dim():
            ways += [
                lambda: x[1:],
                lambda: x[:: self.random.randrange(1, 4)],
                lambda: x[:0],
                lambda: x.transpose(0, -1),
            ]
            if x.shape[0]:
                ways.append(lambda: x[x.shape[0] - 1])
        return self.random.choice(ways)()


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), protocol=st.sampled_from([2, 3, 4, 5]), zipped=st.booleans())
def test_load(tmp_path_factory, seed, protocol, zipped):
    value = Maker(seed, OLD_DTYPES + (NEW_DTYPES if zipped else [])).value()
    path = tmp_path_factory.getbasetemp() / "any_load.pt"
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    # Its own weights_only unpickler knows protocol 2 alone.
    same(pt.load(path), torch.load(path, weights_only=protocol == 2))


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_save(tmp_path_factory, seed):
    value = Maker(seed, OLD_DTYPES + NEW_DTYPES).value()
    paths = [tmp_path_factory.getbasetemp() / name for name in ("any_ours.pt", "any_theirs.pt")]
    pt.save(value, paths[0])
    torch.save(value, paths[1])
    same(torch.load(paths[0]), torch.load(paths[1]), whole=False)
