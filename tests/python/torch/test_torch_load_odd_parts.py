"""Files that call torch's rebuild functions with odd arguments: a value, or a penstock.Error with the file's path."""

from __future__ import annotations

import collections
import io
import pickle
import random
import warnings
import zipfile

import pytest
import torch

import penstock
import penstock.torch as pt

SIZES = {
    "FloatStorage": 4,
    "LongStorage": 8,
    "ByteStorage": 1,
    "ComplexFloatStorage": 8,
    "QUInt8Storage": 1,
    "BoolStorage": 1,
    "HalfStorage": 2,
    "DoubleStorage": 8,
    "QInt32Storage": 4,
}
LOCATIONS = ["cpu"] * 20 + ["xla:0", "cqu", "cuda:0", "meta", "hpu:1", "mps", ""]


class Name:
    def __init__(self, name):
        self.name = name


class Call:
    def __init__(self, name, *args):
        self.name, self.args = name, args


class Storage:
    def __init__(self, kind="FloatStorage", count=16, location="cpu"):
        self.kind, self.count, self.location = kind, count, location


class Pickler(pickle._Pickler):
    """Writes the three above as torch's pickler writes what they stand for."""

    def save(self, obj, *args, **kwargs):
        if isinstance(obj, (Call, Name)):
            module, _, name = obj.name.rpartition(".")
            self.write(f"c{module}\n{name}\n".encode())
            if isinstance(obj, Call):
                self.save(obj.args)
                self.write(b"R")
        elif isinstance(obj, Storage):
            self.save(("storage", Name(f"torch.{obj.kind}"), "0", obj.location, obj.count))
            self.write(b"Q")
        else:
            super().save(obj, *args, **kwargs)


def archive_of(value, payload=bytes(64)):
    stream = io.BytesIO()
    Pickler(stream, 2).dump(value)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("archive/data.pkl", stream.getvalue())
        file.writestr("archive/version", "3\n")
        file.writestr("archive/data/0", payload)
    out.seek(0)
    return out


def tensor(random, kind=None):
    kind = kind or random.choice(list(SIZES))
    shape = random.choice([(2, 2), (3,), (), (2, 0), (1, 4), (2, 3), (0,), (2, 1, 2)])
    strides = torch.empty(shape, device="meta").stride()
    storage = Storage(kind, 64 // SIZES[kind], random.choice(LOCATIONS))
    return Call(
        "torch._utils._rebuild_tensor_v2",
        storage,
        0,
        shape,
        strides,
        random.random() < 0.1,
        collections.OrderedDict(),
    )


NAMES = [
    "torch.float32",
    "torch.complex64",
    "torch.strided",
    "torch.sparse_coo",
    "torch.sparse_csr",
    "torch.sparse_bsr",
    "torch.per_tensor_affine",
    "torch.per_channel_affine",
    "torch.quint8",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "builtins.int",
    "torch.FloatStorage",
    "torch._utils._rebuild_tensor_v2",
    "some.Class",
]
VALUES = [None, True, 0, 1, -1, 2**31, 2**63, 10**30, 0.5, float("nan"), 2j, "", "cpu", "meta", "bogus", b"", b"abc"]


def odd(random, depth=0):
    kind = random.randrange(8)
    inner = [] if depth > 2 else range(random.randrange(5))
    if kind == 0:
        return random.choice(VALUES)
    if kind == 1:
        return Name(random.choice(NAMES))
    if kind == 2:
        return Call(random.choice(list(CALLS)), *(odd(random, depth + 1) for _ in inner))
    if kind == 3:
        return [odd(random, depth + 1) for _ in inner]
    if kind == 4:
        return tuple(random.choice([0, 1, 2, 3, -1, 4, 2**40]) for _ in range(random.randrange(4)))
    if kind == 5:
        return {key: odd(random, depth + 1) for key in ("values", "offsets", 1)[: len(inner)]}
    if kind == 6:
        return Storage(random.choice(list(SIZES)), 8)
    return tensor(random)


def sparse(random):
    layout = random.choice(["coo", "csr", "csc", "bsr", "bsc"])
    parts = [tensor(random) for _ in range(2 if layout == "coo" else 3)]
    coalesced = [random.random() < 0.5] if layout == "coo" else []
    return Name(f"torch.sparse_{layout}"), (*parts, (3, 3), *coalesced)


def quantized(random):
    scheme = random.choice(
        [
            (Name("torch.per_tensor_affine"), 0.5, 1),
            (Name("torch.per_channel_affine"), tensor(random), tensor(random), 0),
            odd(random),
        ]
    )
    storage = Storage(random.choice(["QUInt8Storage", "QInt32Storage", "ByteStorage"]))
    return storage, 0, (2, 2), (2, 1), scheme, False, collections.OrderedDict()


def flagged(random):
    flags = {random.choice(["conj", "neg", "x"]): random.choice([True, False, odd(random)])}
    storage = Storage(random.choice(list(SIZES)), 8)
    return storage, 0, (2, 2), (2, 1), random.random() < 0.5, collections.OrderedDict(), flags


def jagged(random):
    return (
        {
            "values": tensor(random),
            "offsets": tensor(random, "LongStorage"),
            "lengths": random.choice([None, tensor(random)]),
            "_ragged_idx": random.choice([1, 2, 0, -1, None]),
            "_metadata_cache": odd(random),
            "requires_grad": random.random() < 0.5,
        },
    )


ORDERED = collections.OrderedDict
CALLS = {
    "torch._utils._rebuild_sparse_tensor": sparse,
    "torch._utils._rebuild_qtensor": quantized,
    "torch._utils._rebuild_tensor_v2": flagged,
    "torch.nested._internal.nested_tensor._rebuild_njt": jagged,
    "torch._utils._rebuild_nested_tensor": lambda r: [tensor(r) for _ in range(4)],
    "torch._utils._rebuild_parameter": lambda r: (tensor(r), True, ORDERED()),
    "torch._utils._rebuild_parameter_with_state": lambda r: (tensor(r), True, ORDERED(), {"x": odd(r), "grad": 1}),
    "torch._utils._rebuild_tensor_v3": lambda r: (
        Storage(),
        0,
        (2, 2),
        (2, 1),
        False,
        ORDERED(),
        Name(r.choice(["torch.float32", "torch.uint16", "torch.complex64"])),
    ),
    "torch._utils._rebuild_meta_tensor_no_storage": lambda r: (
        Name("torch.float32"),
        (2, 2),
        r.choice([(2, 1), (-1, 1), (2,)]),
        True,
    ),
    "torch._tensor._rebuild_from_type_v2": lambda r: (
        Name("torch._utils._rebuild_tensor_v2"),
        Name(r.choice(["torch.Tensor", "torch.nn.parameter.Parameter"])),
        (Storage(), 0, (2, 2), (2, 1), False, ORDERED()),
        odd(r),
    ),
    "torch._utils._rebuild_device_tensor_from_numpy": lambda r: (tensor(r), Name("torch.float32"), "xla:0", True),
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": lambda r: (tensor(r), Name("torch.int64"), "cqu", True),
    "torch._utils._rebuild_wrapper_subclass": lambda r: (
        Name("torch.distributed.tensor.DTensor"),
        Name("torch.float32"),
        (2, 2),
        (2, 1),
        0,
        Name("torch.strided"),
        "cpu",
        False,
    ),
    "torch.Size": lambda r: (r.choice([(1, 2), [1], (0.5,), ("a",), (2**70,), 5, None]),),
    "torch.device": lambda r: r.choice([("cpu",), ("cuda", -5), ("cqu",), ("cpu", 2**40), (5,)]),
    "torch.nn.parameter.Buffer": lambda r: (tensor(r),),
    "torch.serialization._get_layout": lambda r: (odd(r),),
}


def place_of_refusal(file, options):
    """The path that the error names; None where the file loads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pt.load(file, **options)
        except penstock.Error as error:
            return error.path or "nowhere"
    return None


@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments(name):
    for seed in range(60):
        source = random.Random(f"{name} {seed}")
        args = list(CALLS[name](source))
        if args and source.random() < 0.6:
            args[source.randrange(len(args))] = odd(source)
        if source.random() < 0.1:
            args = args[:-1]
        try:
            file = archive_of({"k": Call(name, *args)}, bytes(source.choice([64, 64, 64, 16, 8])))
        except TypeError:  # of a key that Python itself cannot hash
            continue
        for options in ({}, {"map_location": "cpu"}, {"map_location": "cpu", "unknown": "keep"}):
            file.seek(0)
            assert place_of_refusal(file, options) in {None, "<memory>"}, seed


@pytest.mark.filterwarnings("ignore:Casting complex")
def test_indices_of_another_kind_of_number():
    indices = Call(
        "torch._utils._rebuild_tensor_v2", Storage("ComplexFloatStorage", 8), 0, (2, 3), (3, 1), False, ORDERED()
    )
    values = Call("torch._utils._rebuild_tensor_v2", Storage("FloatStorage", 16), 0, (3,), (1,), False, ORDERED())
    parts = (Name("torch.sparse_coo"), (indices, values, (3, 3), True))
    with pytest.raises(penstock.UnsupportedError) as caught:
        pt.load(archive_of({"a": Call("torch._utils._rebuild_sparse_tensor", *parts)}))
    assert isinstance(caught.value, NotImplementedError)
    assert (caught.value.path, caught.value.tensor) == ("<memory>", "a")


@pytest.mark.parametrize("location", ["xla:0", "cqu", "hpu:1", "mtia", "cuda:-1"])
def test_devices_that_torch_does_not_have(location):
    value = Call("torch._utils._rebuild_tensor_v2", Storage(location=location), 0, (2, 2), (2, 1), False, ORDERED())
    with pytest.raises(RuntimeError, match="map_location='cpu'") as caught:
        pt.load(archive_of({"a": value}))
    assert isinstance(caught.value, penstock.NoDeviceError)
    assert (caught.value.path, caught.value.tensor) == ("<memory>", "a")
    assert pt.load(archive_of({"a": value}), map_location="cpu")["a"].shape == (2, 2)
    target = {"a": torch.ones(2, 2)}
    assert pt.load_into(target, archive_of({"a": value})) == ([], [])
    assert not target["a"].any()
