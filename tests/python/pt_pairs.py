"""Values as torch saves them, and what it means that Penstock has the same."""

import warnings
from collections import OrderedDict

import numpy as np
import pytest

import penstock

torch = pytest.importorskip("torch")
warnings.simplefilter("ignore")


DTYPES = [
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64",
    "complex32 complex64 complex128 float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu",
    "float4_e2m1fn_x2 bits8 bits16",
]
DTYPES = " ".join(DTYPES).split()
SHAPES = [(), (1,), (7,), (3, 5), (0,), (2, 0, 3), (2, 3, 4, 5)]
LAYOUTS = ["zip", "legacy"]
PROTOCOLS = [1, 2, 3, 4, 5]


def example(dtype, shape, seed=0):
    """Random bits of a type."""
    torch_type = getattr(torch, dtype)
    generator = torch.Generator().manual_seed(seed)
    if dtype == "bool":
        return torch.randint(0, 2, shape, generator=generator).bool()
    width = torch.empty((), dtype=torch_type).element_size()
    count = int(np.prod(shape, dtype=int))
    raw = torch.randint(0, 256, (count * width,), generator=generator).to(torch.uint8)
    return raw.clone().view(torch_type).reshape(shape)


def raw(tensor):
    """The bytes of a tensor of either library, in C order."""
    if isinstance(tensor, penstock.Tensor):
        return tensor.tobytes()
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.numel() == 0:
        return b""
    width = tensor.element_size()
    storage = bytes(tensor.untyped_storage())  # works for types without operators
    order = np.lib.stride_tricks.as_strided(
        np.frombuffer(storage, np.uint8)[tensor.storage_offset() * width :],
        (*tensor.shape, width),
        (*(s * width for s in tensor.stride()), 1),
    )
    return order.tobytes()


def assert_same(ours, theirs):
    """Containers, scalars and tensors alike."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, penstock.Tensor)
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert raw(ours) == raw(theirs)
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict)
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key])
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        assert isinstance(ours, tuple if isinstance(theirs, tuple) else list)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif isinstance(theirs, float) and theirs != theirs:
        assert ours != ours
    else:
        assert ours == theirs
        assert type(ours) is type(theirs)


def save(value, path, layout="zip", protocol=2):
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=layout == "zip")
    return path


CONTAINERS = {
    "none": None,
    "bools": [True, False],
    "integers": [0, 1, 255, 256, 65536, -1, 2**31, -(2**63), 2**63, 2**200, -(2**200)],
    "floats": [1.5, -0.0, float("inf"), 1e308],
    "nan": float("nan"),
    "complex": 1 - 2j,
    "text": ["", "ascii", "é€😀", "line\nbreak", "\\u0041", "\x00"],
    "bytes": [b"", b"\x00\xff", bytes(range(256))],
    "nested": {"a": [1, (2, [3, {"b": ()}])], 5: {True: None}, (1, "x"): []},
    "long": list(range(3000)),
    "many": {f"key {i}": i for i in range(3000)},
    "ordered": OrderedDict(b=1, a=OrderedDict()),
    "set": {1, 2, 3},
}


def sparse_parts(tensor):
    if tensor.layout is torch.sparse_coo:
        return {"indices": tensor._indices(), "values": tensor._values()}
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    compressed, plain = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
    return {n: getattr(tensor, n)() for n in (compressed, plain, "values")}
