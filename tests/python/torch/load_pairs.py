"""Objects that are saved, and what it means that two of them are the same."""

from __future__ import annotations

import collections
import zipfile

import numpy as np
import torch

import penstock.torch as pt

FLOATS = ["float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128"]

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]

INTEGERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


def same_tensor(a, b, whole=True):
    """`whole`: over equal storages; what Penstock saves leaves out the parts of storages that no tensor reaches."""
    assert type(a) is type(b)
    if a.layout == torch.jagged:
        return same_jagged(a, b)
    assert (a.dtype, a.layout, a.device) == (b.dtype, b.layout, b.device)
    assert a.is_nested or a.shape == b.shape
    assert (a.requires_grad, a.is_leaf) == (b.requires_grad, b.is_leaf)
    assert (a.is_conj(), a.is_neg(), a.is_quantized, a.is_nested) == (
        b.is_conj(),
        b.is_neg(),
        b.is_quantized,
        b.is_nested,
    )
    same_attributes(a, b, whole)
    if a.device.type == "meta":
        assert a.stride() == b.stride()
    elif a.is_nested:
        for x, y in zip(a.unbind(), b.unbind(), strict=True):
            same_tensor(x, y, whole)
    elif a.is_quantized:
        assert a.qscheme() == b.qscheme()
        if "channel" in str(a.qscheme()):
            assert a.q_per_channel_axis() == b.q_per_channel_axis()
            assert torch.equal(a.q_per_channel_scales(), b.q_per_channel_scales())
            assert torch.equal(a.q_per_channel_zero_points(), b.q_per_channel_zero_points())
        else:
            assert (a.q_scale(), a.q_zero_point()) == (b.q_scale(), b.q_zero_point())
        assert a.stride() == b.stride()
        assert torch.equal(a.int_repr(), b.int_repr())
    elif a.layout == torch.sparse_coo:
        assert a.is_coalesced() == b.is_coalesced()
        same_tensor(a._indices(), b._indices(), whole)
        same_tensor(a._values(), b._values(), whole)
    elif a.layout != torch.strided:
        same_tensor(a.values(), b.values(), whole)
        assert torch.equal(a.to_dense(), b.to_dense())
    else:
        assert a.stride() == b.stride()
        if whole:
            assert a.numel() == 0 or a.storage_offset() == b.storage_offset()
            assert a.untyped_storage().nbytes() == b.untyped_storage().nbytes()
        assert bytes_of(a) == bytes_of(b)


def same_jagged(a, b):
    assert (a.requires_grad, a.is_leaf, a._ragged_idx) == (b.requires_grad, b.is_leaf, b._ragged_idx)
    assert getattr(a, "tag", None) == getattr(b, "tag", None)
    for x, y in zip((a.values(), a.offsets(), *a.unbind()), (b.values(), b.offsets(), *b.unbind()), strict=True):
        assert torch.equal(x, y)


def same_attributes(a, b, whole):
    mine, yours = ({k: v for k, v in vars(x).items() if k != "_backward_hooks"} for x in (a, b))
    if mine or yours:
        same(mine, yours, whole=whole)


def bytes_of(tensor):
    return bytes(tensor.detach().resolve_conj().resolve_neg().clone().contiguous().view(-1).untyped_storage())


def same(a, b, seen=None, *, whole=True):
    """Equal in every respect, and shared where the other is."""
    seen = {} if seen is None else seen
    if id(a) in seen:
        assert seen[id(a)] == id(b)
        return
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        seen[id(a)] = id(b)
        same_tensor(a, b, whole)
        if a.layout == torch.strided and a.device.type == "cpu" and a.numel() and not a.is_nested:
            key = ("storage", a.untyped_storage().data_ptr())
            assert seen.setdefault(key, b.untyped_storage().data_ptr()) == b.untyped_storage().data_ptr()
    elif isinstance(a, torch.storage.TypedStorage):
        assert a.dtype == b.dtype
        assert a.tolist() == b.tolist()
    elif isinstance(a, dict):
        seen[id(a)] = id(b)
        if hasattr(a, "__dict__"):
            same_attributes(a, b, whole)
        for (k, x), (m, y) in zip(a.items(), b.items(), strict=True):
            same(k, m, seen, whole=whole)
            same(x, y, seen, whole=whole)
    elif isinstance(a, (list, tuple)):
        if isinstance(a, list):
            seen[id(a)] = id(b)
        for x, y in zip(a, b, strict=True):
            same(x, y, seen, whole=whole)
    elif isinstance(a, float):
        assert np.float64(a).tobytes() == np.float64(b).tobytes()
    else:
        assert a == b


def check(value, path, **options):
    torch.save(value, path, **options)
    same(pt.load(path), torch.load(path))
    return pt.load(path)


def of_dtype(name):
    return torch.arange(24, dtype=torch.float64).to(getattr(torch, name)).reshape(2, 3, 4)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 4)
        self.b = torch.nn.Linear(4, 3, bias=False)
        self.b.weight = torch.nn.Parameter(self.a.weight.t())
        self.norm = torch.nn.BatchNorm1d(3)


VALUES = {
    "state dict": lambda: Model().state_dict(),
    "module's parameters": lambda: dict(Model().named_parameters()),
    "optimizer": lambda: trained_optimizer().state_dict(),
    "shared": lambda: (lambda x: {"x": x, "again": x, "view": x[1:], "flat": x.view(-1)})(torch.randn(3, 4)),
    "requires grad": lambda: [torch.randn(2, requires_grad=True), torch.randn(2)],
    "parameter": lambda: torch.nn.Parameter(torch.randn(2, 3), requires_grad=False),
    "attributes": lambda: with_attribute(torch.randn(3)),
    "parameter with attributes": lambda: with_attribute(torch.nn.Parameter(torch.randn(3))),
    "expanded": lambda: torch.randn(3, 1).expand(3, 5),
    "empty parts of one": lambda: (lambda x: {"x": x, "none": x[5:5], "end": x[10:]})(torch.arange(10)),
    "empty": lambda: [torch.empty(0), torch.empty(2, 0, 3), torch.tensor(1.5)],
    "conj": lambda: [torch.randn(3, dtype=torch.complex64).conj(), torch.randn(3, dtype=torch.complex128).conj().imag],
    "channels last": lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "meta": lambda: torch.empty(3, 4, device="meta", dtype=torch.float16).t(),
    "sparse coo": lambda: torch.eye(4).to_sparse(),
    "sparse coo not coalesced": lambda: torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3)),
    "sparse hybrid": lambda: torch.sparse_coo_tensor([[0, 2]], torch.randn(2, 3), (4, 3)),
    "csr": lambda: torch.eye(4).to_sparse_csr(),
    "csc": lambda: torch.eye(4).to_sparse_csc(),
    "bsr": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "bsc": lambda: torch.eye(4).to_sparse_bsc((2, 2)),
    "quantized": lambda: torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 3, torch.quint8),
    "quantized view": lambda: torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 3, torch.qint8)[1:],
    "quantized 32": lambda: torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 0, torch.qint32),
    "quantized per channel": lambda: torch.quantize_per_channel(
        torch.randn(3, 4), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2]), 0, torch.qint8
    ),
    "quantized float parameters": lambda: torch.quantize_per_channel(
        torch.randn(3, 4), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 1, 2]), 0, torch.quint8
    ),
    "nested": lambda: torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)]),
    "jagged": lambda: torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged),
    "jagged with lengths": lambda: with_attribute(
        torch.nested.nested_tensor_from_jagged(
            torch.randn(6, 2), torch.tensor([0, 2, 6]), torch.tensor([1, 3])
        ).requires_grad_()
    ),
    "storage": lambda: torch.randn(5).storage(),
    "untyped storage": lambda: torch.randn(5).untyped_storage(),
    "storage of a tensor": lambda: (lambda x: [x.storage(), x, x.storage(), x[1:]])(torch.randn(3)),
    "quantized 4 bit": lambda: torch.quantize_per_channel(
        torch.randn(3, 5), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 1, 2]), 0, torch.quint4x2
    ),
    "conj that requires grad": lambda: torch.randn(3, dtype=torch.complex64, requires_grad=True).conj(),
    "neg": lambda: torch._neg_view(torch.randn(2, 3)),
    "conj and neg": lambda: torch._neg_view(torch.randn(2, 3, dtype=torch.complex64).conj()),
    "conj parameter": lambda: torch.nn.Parameter(torch.randn(3, dtype=torch.complex64).conj()),
    "sparse parameters": lambda: [torch.nn.Parameter(torch.eye(3).to_sparse()), sparse_parameter_with_attribute()],
    "meta parameter": lambda: torch.nn.Parameter(torch.empty(3, 2, device="meta")),
    "attributes of all kinds": lambda: [
        with_attribute(torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 3, torch.quint8)),
        with_attribute(torch.eye(3).to_sparse()),
        with_attribute(torch.empty(2, device="meta")),
        with_attribute(torch.randn(3, dtype=torch.complex64).conj()),
    ],
    "tensors as attributes": lambda: with_shared_attribute(),
    "buffer": lambda: torch.nn.Buffer(torch.ones(2)),
    "constants": lambda: [torch.per_tensor_affine, torch.strided, torch.sparse_coo],
    "attributes of an OrderedDict": lambda: with_attribute(collections.OrderedDict(a=torch.ones(1))),
    "containers": lambda: {
        "list": [1, 2.5, "x", None, True, b"\x00\xff", bytearray(b"ab"), 1j, 2**70, -(2**64)],
        "tuple": (1, (2, ()), torch.Size([2, 3])),
        "set": {1, 2},
        "ordered": collections.OrderedDict(b=1, a=torch.ones(2)),
        "counter": collections.Counter("hello"),
        ("tuple", 1): "key",
        3: "integer",
        None: "none",
        "dtype": [torch.float32, torch.bfloat16, torch.float8_e5m2],
        "device": [torch.device("cpu"), torch.device("cuda:1")],
        "layout": torch.sparse_csr,
        "unicode": ["\u00e4\U0001f600", "\ud800 alone"],
        "special": [float("nan"), float("inf"), -0.0],
    },
    "list in itself": lambda: (lambda x: (x.append(x), x)[1])([1]),
    "one object twice": lambda: (lambda x: [x, x, {"x": x}])([torch.ones(1)]),
}


def with_attribute(tensor):
    tensor.tag = {"a": [1, 2]}
    return tensor


def sparse_parameter_with_attribute():
    return with_attribute(torch.nn.Parameter(torch.eye(3).to_sparse_csr(), requires_grad=False))


def with_shared_attribute():
    tensor = torch.randn(4)
    tensor.front = tensor[:2]
    return [tensor, tensor.front]


def trained_optimizer():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    return optimizer


def rewritten(path, change):
    """The archive with its data.pkl changed."""
    out = path.with_name("changed.pt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            new.writestr(item.filename, change(data) if item.filename.endswith("data.pkl") else data)
    return out


def rewritten_storage(path, old, new):
    """The archive with one tensor's elements changed."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    changed = [name for name, data in contents.items() if data == old.numpy().tobytes()]
    contents[changed[0]] = new.numpy().tobytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
