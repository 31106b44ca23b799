"""Random objects go through torch.save and penstock.torch.save, and come back the same from either load."""

from __future__ import annotations

import collections
import io
import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock.torch as pt

SETTINGS = settings(
    max_examples=150, deadline=None, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow]
)
pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128]
DTYPES += [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool]
NEW_DTYPES = [torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]
FLOATS = [0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308]
FLOATS += [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000001, 0xFFF8DEADBEEF0001)]
INTEGERS = [0, -1, 1, 255, 256, 65535, 65536, 2**31, -(2**31) - 1, 2**63, -(2**63), 2**64, -(2**600), 2**2030]
TEXTS = ["", "a", "\u00e4", "\U0001f600", "\ud800", "a\udfff\x00", "\n\r", "x" * 70000]
BYTES = [b"", b"\x00\xff", b"ascii", bytes(range(256)) * 300]
ARRAY_TYPES = ["?", "b", "B", "<i2", ">i4", "<u8", "<f2", "<f4", ">f8", "<c8", ">c16", "S3", "<U4", ">U2", "<M8[ns]"]
ARRAY_TYPES += ["<m8[3s]", "V5", "O", [("a", "<i4"), ("b", ">f8", (2,))], "<f4"]
FACTORIES = [None, list, dict, int, float, str, set, tuple, collections.OrderedDict, collections.Counter]


class Maker:
    """Makes random objects, some of them from those that it has made before."""

    def __init__(self, random, *, beyond=False, zipped=True):
        self.random = random
        self.made = []
        # torch writes its newer dtypes into the format of before zip, and cannot read them.
        self.dtypes = DTYPES * 2 + (NEW_DTYPES if zipped else [])
        # torch writes empty bytes in a way that its own weights_only does not read.
        self.bytes = BYTES if beyond else BYTES[1:]
        self.leaves = [self.plain, self.plain, self.tensor, self.constant]
        self.holders = [self.list, self.tuple, self.dict, self.ordered, self.set]
        if beyond:  # what torch.load(weights_only=True) wants add_safe_globals for
            self.leaves += [self.array, self.scalar, self.data_type]
            self.holders += [self.defaultdict, self.frozenset]

    def any(self, depth=0):
        if self.made and self.random.random() < 0.15:
            return self.random.choice(self.made)
        make = self.random.choice(self.leaves if depth > 3 or self.random.random() < 0.5 else self.holders)
        value = make(depth + 1)
        self.made.append(value)
        return value

    def some(self, depth, make=None):
        return [(make or self.any)(depth) for _ in range(self.random.randint(0, 4))]

    def plain(self, depth):
        of = self.random.choice(
            ([None, True, False, 1j, complex(-0.0, float("nan"))], FLOATS, INTEGERS, TEXTS, self.bytes)
        )
        value = self.random.choice(of)
        return bytearray(value) if type(value) is bytes and self.random.random() < 0.5 else value

    def constant(self, depth):
        size = torch.Size(self.random.choices(range(5), k=self.random.randint(0, 4)))
        constants = [size, torch.device("cpu"), torch.device("cuda", 1), torch.strided, torch.sparse_csr]
        return self.random.choice([*constants, torch.per_tensor_affine, *DTYPES, *NEW_DTYPES])

    def key(self, depth):
        keys = [*INTEGERS, *TEXTS[:-1], *self.bytes[:-1], None, 1.5, (1, "a"), ((None,), (2.5, b"x")), torch.float32]
        return self.random.choice(keys)

    def list(self, depth):
        value = []
        self.made.append(value)
        value.extend(self.some(depth))
        return value

    def tuple(self, depth):
        return tuple(self.some(depth))

    def dict(self, depth):
        return self.filled({}, depth)

    def filled(self, value, depth):
        self.made.append(value)
        value.update({self.key(depth): self.any(depth) for _ in range(self.random.randint(0, 4))})
        return value

    def ordered(self, depth):
        if self.random.random() < 0.3:
            return collections.Counter({self.key(depth): self.random.randint(-3, 3) for _ in range(3)})
        value = self.filled(collections.OrderedDict(), depth)
        if self.random.random() < 0.5:
            value._metadata = self.any(depth)
        return value

    def set(self, depth):
        return {self.key(depth) for _ in range(self.random.randint(0, 4))}

    def frozenset(self, depth):
        return frozenset(self.set(depth))

    def defaultdict(self, depth):
        return self.filled(collections.defaultdict(self.random.choice(FACTORIES)), depth)

    def tensor(self, depth):
        dtype = self.random.choice(self.dtypes)
        shape = self.random.choices(range(4), k=self.random.randint(0, 4))
        count = int(np.prod(shape, dtype=int)) + self.random.randint(0, 3)
        data = self.random.randbytes(max(1, count) * dtype.itemsize)
        if dtype == torch.bool:
            data = bytes(byte & 1 for byte in data)
        whole = torch.frombuffer(bytearray(data), dtype=dtype)[:count]
        tensor = whole[: int(np.prod(shape, dtype=int))].view(shape)
        if self.random.random() < 0.5:
            self.made.append(tensor)
        return self.marked(self.viewed(tensor), depth)

    def viewed(self, tensor):
        way = self.random.randrange(7)
        if way == 0 and tensor.dim() > 1:
            return tensor.transpose(0, -1)
        if way == 1 and tensor.dim() > 0:
            return tensor[self.random.randint(0, tensor.shape[0]) :: 2]
        if way == 2:
            return tensor.unsqueeze(0).expand(3, *tensor.shape)
        if way == 3 and tensor.dim() == 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        if way == 4 and tensor.is_complex():
            return torch._neg_view(tensor.conj()) if self.random.random() < 0.5 else tensor.conj()
        if way == 5 and tensor.is_floating_point():
            return torch._neg_view(tensor)
        return tensor

    def marked(self, tensor, depth):
        way = self.random.randrange(6)
        # torch writes tensors of its newer dtypes that require gradients, and cannot read them.
        differentiable = (tensor.is_floating_point() or tensor.is_complex()) and tensor.dtype not in NEW_DTYPES
        if way == 0:
            return torch.nn.Parameter(tensor.detach(), requires_grad=differentiable and self.random.random() < 0.7)
        if way == 1 and differentiable:
            tensor = tensor.detach().requires_grad_()
        if way == 2:
            tensor = tensor.detach()
            tensor.tag = self.any(depth)
        return tensor

    def array(self, depth):
        dtype = np.dtype(self.random.choice(ARRAY_TYPES))
        shape = self.random.choices(range(4), k=self.random.randint(0, 3))
        if dtype.hasobject:
            array = np.empty(shape, object)
            for index in np.ndindex(*shape):
                array[index] = self.plain(depth)
        else:
            array = np.zeros(shape, dtype)
            if dtype.kind not in "UVb" and array.size:
                array = np.frombuffer(self.random.randbytes(array.nbytes), dtype).reshape(shape).copy()
        return array.T if self.random.random() < 0.4 else array

    def scalar(self, depth):
        dtype = np.dtype(self.random.choice([kind for kind in ARRAY_TYPES if kind != "O" and type(kind) is str]))
        if dtype.kind in "UV?b":
            return np.zeros(1, dtype)[0]
        return np.frombuffer(self.random.randbytes(dtype.itemsize), dtype)[0]

    def data_type(self, depth):
        return self.random.choice(
            [int, dict, complex, np.dtype(">f4"), np.dtype("<M8[us]"), np.float16, np.dtype("S4")]
        )


def identical(a, b, seen=None):
    """Equal in every respect that can be seen, but for how much of a storage no tensor has."""
    seen = {} if seen is None else seen
    assert type(a) is type(b)
    if type(a) in COMPARED or isinstance(a, torch.Tensor):
        for key, value in ((("a", id(a)), b), (("b", id(b)), a)):
            if key in seen:
                assert seen[key] is value
                again = True
            else:
                seen[key] = value
                again = False
        if again:
            return
    compare = COMPARED.get(type(a), same_scalar) if not isinstance(a, torch.Tensor) else same_tensor
    compare(a, b, seen)


def same_scalar(a, b, seen):
    if type(a) is float:
        assert struct.pack("<d", a) == struct.pack("<d", b)
    elif type(a) is complex:
        assert struct.pack("<2d", a.real, a.imag) == struct.pack("<2d", b.real, b.imag)
    elif isinstance(a, np.generic):
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())
    elif isinstance(a, tuple) and type(a) is not torch.Size:
        same_items(a, b, seen)
    else:
        assert a == b


def same_items(a, b, seen):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        identical(x, y, seen)


def same_pairs(a, b, seen):
    same_items(list(a), list(b), seen)
    same_items(list(a.values()), list(b.values()), seen)


def same_dict(a, b, seen):
    same_pairs(a, b, seen)
    same_pairs(getattr(a, "__dict__", {}), getattr(b, "__dict__", {}), seen)
    assert getattr(a, "default_factory", None) is getattr(b, "default_factory", None)


def same_set(a, b, seen):
    same_items(sorted(a, key=repr), sorted(b, key=repr), seen)


def same_tensor(a, b, seen):
    for what in ("dtype", "shape", "layout", "device", "requires_grad"):
        assert getattr(a, what) == getattr(b, what)
    assert (a.stride(), a.is_conj(), a.is_neg()) == (b.stride(), b.is_conj(), b.is_neg())
    assert bits_of(a) == bits_of(b)
    if a.numel():
        x, y = a.untyped_storage().data_ptr(), b.untyped_storage().data_ptr()
        assert seen.setdefault(("storage of a", x), y) == y
        assert seen.setdefault(("storage of b", y), x) == x
    same_pairs(vars(a), vars(b), seen)


def bits_of(tensor):
    plain = tensor.detach()
    plain = torch._conj(plain) if plain.is_conj() else plain
    plain = torch._neg_view(plain) if plain.is_neg() else plain
    return bytes(plain.clone(memory_format=torch.contiguous_format).untyped_storage())


def same_array(a, b, seen):
    assert (a.dtype, a.dtype.metadata, a.shape) == (b.dtype, b.dtype.metadata, b.shape)
    assert a.flags.f_contiguous == b.flags.f_contiguous
    if a.dtype.hasobject:
        same_items(list(a.flat), list(b.flat), seen)
    else:
        assert a.tobytes() == b.tobytes()


COMPARED = {
    list: same_items,
    dict: same_dict,
    collections.OrderedDict: same_dict,
    collections.Counter: same_dict,
    collections.defaultdict: same_dict,
    set: same_set,
    frozenset: same_set,
    bytearray: same_scalar,
    np.ndarray: same_array,
}


def through(save, load, value, save_options=None, load_options=None):
    file = io.BytesIO()
    save(value, file, **(save_options or {}))
    file.seek(0)
    return load(file, **(load_options or {}))


WHOLE = {"weights_only": False}


@SETTINGS
@given(st.randoms(use_true_random=False))
def test_what_torch_reads_by_default(random):
    value = Maker(random).any()
    identical(through(torch.save, pt.load, value), through(torch.save, torch.load, value))
    identical(through(pt.save, torch.load, value), value)
    identical(through(pt.save, pt.load, value), value)


@SETTINGS
@given(st.randoms(use_true_random=False), st.integers(2, 5), st.booleans())
def test_what_torch_wants_allowed_in_each_format(random, protocol, zipped):
    value = Maker(random, beyond=True, zipped=zipped).any()
    options = {"pickle_protocol": protocol, "_use_new_zipfile_serialization": zipped}
    theirs = through(torch.save, torch.load, value, options, WHOLE)
    identical(through(torch.save, pt.load, value, options), theirs)
    identical(through(pt.save, torch.load, value, options, WHOLE), theirs)
    identical(through(pt.save, pt.load, value, options), theirs)


@pytest.mark.parametrize("factory", [None, list, dict, int, collections.OrderedDict], ids=str)
def test_factories_of_defaultdicts(tmp_path, factory):
    value = collections.defaultdict(factory, a=torch.ones(1))
    value["itself"] = value
    path = tmp_path / "x.pt"
    pt.save(value, path)
    for loaded in (torch.load(path, weights_only=False), pt.load(path)):
        assert type(loaded) is collections.defaultdict
        assert loaded.default_factory is factory
        assert loaded["itself"] is loaded


def test_a_bytearray_that_two_ways_lead_to(tmp_path):
    one = bytearray(b"abc")
    path = tmp_path / "x.pt"
    pt.save([one, one], path)
    for loaded in (torch.load(path), pt.load(path)):
        assert loaded[0] == one
        assert loaded[0] is loaded[1]
