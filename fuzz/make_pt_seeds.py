"""Writes the seeds of fuzz_pt, fuzz_pt_legacy and fuzz_pickle: small files by torch, one for each kind of content.

python fuzz/make_pt_seeds.py        # into fuzz/corpus/{pt,pt_legacy,pickle}; needs torch and numpy
"""

import io
import pathlib
import warnings
import zipfile
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import torch

CORPUS = pathlib.Path(__file__).parent / "corpus"


class Foreign:
    def __init__(self):
        self.weight = torch.ones(2)


def contents():
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    yield "tensor", x
    yield "views", [x, x[1:], x.T, x[:, 1]]
    yield "nested", {"a": [1, (2.5, None)], "b": {"c": "text", 3: True}, "big": 2**70, "raw": b"\x00\xff", "z": 1 - 2j}
    yield "containers", [{1, 2}, Counter("aab"), defaultdict(list, a=[1]), bytearray(b"x"), torch.Size([2]), torch.int8]
    yield "state", OrderedDict(torch.nn.BatchNorm1d(2).state_dict())
    yield "parameter", torch.nn.Parameter(x)
    yield "module", torch.nn.Linear(2, 2)
    yield "foreign", {"config": Foreign(), "x": x}
    yield (
        "numpy",
        {"a": np.arange(4).reshape(2, 2), "f": np.asfortranarray(np.eye(2)), "s": np.float32(3), "t": np.array(["ab"])},
    )
    yield "sparse", [x.to_sparse(), torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csc()]
    yield (
        "quantized",
        [
            torch.quantize_per_tensor(x, 0.5, 1, torch.qint8),
            torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.quint8),
            torch.quantize_per_channel(x, torch.tensor([0.1, 0.2]), torch.tensor([0.0, 1.0]), 0, torch.quint4x2),
        ],
    )
    yield "nested_tensor", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    yield "conj", [torch.ones(2, dtype=torch.complex64).conj(), torch.ones(2, dtype=torch.complex64).conj().imag]
    yield "untyped", [torch.zeros(2, dtype=d) for d in (torch.float8_e4m3fn, torch.uint16, torch.complex32)]
    yield "meta", torch.empty(2, 3, device="meta")


def save(value, **options):
    stream = io.BytesIO()
    torch.save(value, stream, **options)
    return stream.getvalue()


def write(folder, name, data):
    (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    (CORPUS / folder / name).write_bytes(data)


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    Foreign.__module__ = "foreign"
    import sys
    import types

    sys.modules["foreign"] = types.SimpleNamespace(Foreign=Foreign)
    everything = list(contents())
    everything += [(f"protocol{n}", everything[2][1] | {"x": everything[0][1]}) for n in (1, 3, 4, 5)]
    for name, value in everything:
        protocol = int(name[-1]) if name.startswith("protocol") else 2
        data = save(value, pickle_protocol=protocol)
        write("pt", f"{name}.pt", data)
        write("pickle", f"{name}.pkl", zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl"))
        write("pt_legacy", f"{name}.pt", save(value, pickle_protocol=protocol, _use_new_zipfile_serialization=False))
    stream = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(1, 1)), stream)
    write("pt", "torchscript.pt", stream.getvalue())


main()
