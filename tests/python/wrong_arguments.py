"""Calls that work, of every public function: what `test_wrong_arguments.py` gives one wrong argument after the other.

A row is how the function is made and the arguments that it needs, both made anew for each call. Functions that take no
argument by name (`zeros`, `zip`) have none.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import torch
from token_files import llmc

import penstock
import penstock.numpy as pn
import penstock.torch as pt

__all__ = ["MADE", "NO_ARGUMENTS", "TABLE", "make_files"]

NUMBERS = itertools.count()
WEIGHTS = "weights.safetensors"


def make_files():
    """The files that the calls read, in the working directory."""
    np.save("rows.npy", np.arange(12.0).reshape(4, 3))
    np.save("tokens.npy", np.arange(8))
    np.array([1, 2, 0, 3, 4], np.uint16).tofile("plain.bin")
    llmc(Path("tokens.bin"), np.array([50256, 1, 2], np.uint16))
    torch.save({"w": torch.ones(2, 3)}, "w.pt")
    penstock.save({"w": penstock.ones(2, 3)}, WEIGHTS)
    penstock.pack(rows(), "packed")
    pt.save_model(torch.nn.Linear(2, 2), "model.safetensors")
    for number in range(4):
        penstock.save(penstock.ones(3, 2), f"clips-{number}.npy")


def new(name):
    """A path that nothing was written to."""
    return f"{next(NUMBERS)}-{name}"


def rows():
    return penstock.rows("rows.npy")


def files():
    return penstock.files("clips-*.npy")


def stream():
    return penstock.stream(rows())


def ones():
    return penstock.ones(2, 3)


def kept(sample):
    return True


def unchanged(sample):
    return sample


TABLE = {}


def table(owner, make=None, **calls):
    """`owner`: the module that has these functions, or the name of a class, of which `make` makes an object anew."""
    for name, arguments in calls.items():
        if make is None:
            TABLE[f"{owner.__name__}.{name}"] = (lambda: owner), name, arguments
        else:
            TABLE[f"{owner}.{name}"] = make, name, arguments


def nothing():
    return {}


TRANSFORMS = {
    "cast": lambda: {"dtype": "float32"},
    "center_crop": lambda: {"size": 1},
    "clamp": lambda: {"min": 0, "max": 3},
    "crop": lambda: {"begin": 0, "size": 1},
    "flip": nothing,
    "normalize": lambda: {"mean": 0, "std": 1},
    "pad": lambda: {"before": 1, "after": 1},
    "permute": lambda: {"dims": [0]},
    "random_crop": lambda: {"size": 1},
    "random_flip": nothing,
    "scale": lambda: {"factor": 2},
}
WINDOWS = {
    "random_windows": lambda: {"length": 2, "count": 2},
    "windows": lambda: {"length": 2},
}
table(
    penstock,
    BatchSampler=lambda: {"sampler": penstock.SequentialSampler(4), "batch_size": 2},
    DType=lambda: {"name": "float32"},
    DataLoader=lambda: {"dataset": rows()},
    DistributedSampler=lambda: {"dataset": 4, "num_replicas": 2, "rank": 0},
    Generator=nothing,
    NodeLocalSampler=lambda: {"dataset": 4, "nodes": 2},
    Opaque=lambda: {"type_name": "a.B"},
    RandomSampler=lambda: {"dataset": 4},
    Ranks=lambda: {"rank": 0, "size": 1},
    SequentialSampler=lambda: {"dataset": 4},
    SubsetSampler=lambda: {"indices": [0]},
    WeightedSampler=lambda: {"weights": [1.0], "num_samples": 1},
    Writer=lambda: {"path": new("w.npy")},
    asarray=lambda: {"data": [1.0]},
    cat=lambda: {"tensors": [ones(), ones()]},
    choice=lambda: {"datasets": [rows(), rows()]},
    dataset=lambda: {"samples": [ones()]},
    doctor=nothing,
    documents=lambda: {"source": "tokens.bin"},
    files=lambda: {"pattern": "clips-*.npy"},
    from_dlpack=lambda: {"object": ones()},
    full=lambda: {"size": (2,), "fill_value": 1},
    length_buckets=lambda: {"dataset": [1, 2, 3], "max_tokens": 8},
    lengths=lambda: {"dataset": files()},
    load=lambda: {"path": "rows.npy"},
    load_async=lambda: {"path": "rows.npy"},
    load_into=lambda: {"target": {"w": ones()}, "path": WEIGHTS},
    map_files=lambda: {
        "function": unchanged,
        "files": "clips-*.npy",
        "out": new("out"),
        "num_workers": 0,
        "workers": "threads",
    },
    mix=lambda: {"datasets": [rows(), rows()], "weights": [1, 1]},
    open=lambda: {"path": WEIGHTS},
    pack=lambda: {"dataset": rows(), "folder": new("packed")},
    pack_sequences=lambda: {"dataset": penstock.dataset([penstock.arange(3)] * 2), "length": 8},
    packed=lambda: {"pattern": "packed"},
    pad=nothing,
    pad_to=lambda: {"length": 3},
    promote_types=lambda: {"type1": "float32", "type2": "float16"},
    ragged=nothing,
    ranks=nothing,
    raw=lambda: {"path": "plain.bin", "dtype": "uint16"},
    rows=lambda: {"source": "rows.npy"},
    save=lambda: {"obj": ones(), "path": new("s.npy")},
    save_async=lambda: {"obj": ones(), "path": new("s.npy")},
    shards=lambda: {"shards": "no.tar", "index": False},
    stack=lambda: {"tensors": [ones()]},
    stream=lambda: {"source": rows()},
    subset=lambda: {"dataset": rows(), "indices": [0]},
    tensor=lambda: {"data": [1.0]},
    to=lambda: {"value": ones(), "device": "cpu"},
    with_labels=lambda: {"dataset": files(), "table": {f"clips-{number}": number for number in range(4)}},
)
table(
    "Dataset",
    rows,
    describe=lambda: {"index": 0},
    filter=lambda: {"keep": kept},
    map=lambda: {"function": unchanged},
    repeat=lambda: {"times": 2},
    skip=lambda: {"count": 1},
    take=lambda: {"count": 1},
    **TRANSFORMS,
    **WINDOWS,
)
table("Dataset", files, fields=lambda: {"templates": {"a": "{stem}.npy"}})
table(
    "Dataset",
    lambda: penstock.rows("tokens.npy"),
    one_hot=lambda: {"classes": 9},
    slices=lambda: {"starts": [0, 2], "lengths": [1, 2]},
)
table(
    "SampleStream",
    stream,
    filter=lambda: {"keep": kept},
    map=lambda: {"function": unchanged},
    one_hot=lambda: {"classes": 9},
    repeat=nothing,
    shuffle=lambda: {"window": 2},
    skip=lambda: {"count": 1},
    take=lambda: {"count": 1},
    **TRANSFORMS,
)
table(
    "DataLoader",
    lambda: penstock.DataLoader(rows()),
    load_state_dict=lambda: {"state": penstock.DataLoader(rows()).state_dict()},
    set_epoch=lambda: {"epoch": 1},
)
table(
    "BatchSampler",
    lambda: penstock.BatchSampler(penstock.SequentialSampler(4), 2),
    batches=nothing,
    set_epoch=lambda: {"epoch": 1},
)
table("Sampler", lambda: penstock.SequentialSampler(4), order=nothing, set_epoch=lambda: {"epoch": 1})
table("Generator", penstock.Generator, manual_seed=lambda: {"seed": 1}, set_state=lambda: {"state": (1, 2)})
table("Archive", lambda: penstock.open(WEIGHTS), get=lambda: {"name": "w"}, load=nothing)
table("LazyTensor", lambda: penstock.open(WEIGHTS)["w"], load=nothing)
table(
    "Tensor",
    ones,
    argmax=nothing,
    equal=lambda: {"other": ones()},
    index_select=lambda: {"dim": 0, "index": penstock.tensor([0])},
    matmul=lambda: {"other": penstock.ones(3, 2)},
    max=nothing,
    mean=nothing,
    min=nothing,
    sum=nothing,
    to=lambda: {"dtype": "float16"},
    transpose=lambda: {"dim0": 0, "dim1": 1},
)
table(
    "Writer",
    lambda: penstock.Writer(new("w.npz")),
    add=lambda: {"name": "a", "tensor": ones()},
    begin=lambda: {"name": "a", "dtype": "float32", "shape": (2,)},
)
table(
    "Writer",
    lambda: penstock.Writer(new("w.npy")),
    append=lambda: {"rows": ones()},
    append_row=lambda: {"row": ones()},
)
table(
    pt,
    DataLoader=lambda: {"dataset": pt.Rows("rows.npy")},
    Dataset=lambda: {"native": rows()},
    Documents=lambda: {"source": "tokens.bin"},
    Files=lambda: {"pattern": "clips-*.npy"},
    Mapped=lambda: {"dataset": pt.Rows("rows.npy"), "function": unchanged, "batched": False, "processes": False},
    Packed=lambda: {"pattern": "packed"},
    Shards=lambda: {"shards": "no.tar", "index": False},
    Stream=lambda: {"source": rows()},
    attach=lambda: {"name": "none"},
    load=lambda: {"f": "w.pt"},
    load_file=lambda: {"filename": WEIGHTS},
    load_into=lambda: {"target": {"w": torch.ones(2, 3)}, "path": "w.pt"},
    load_model=lambda: {"model": torch.nn.Linear(2, 2), "filename": "model.safetensors"},
    nested=nothing,
    pad=nothing,
    pad_to=lambda: {"length": 2},
    ragged=nothing,
    safe_open=lambda: {"filename": WEIGHTS, "framework": "pt"},
    save=lambda: {"obj": {"a": torch.ones(2)}, "f": new("s.pt")},
    save_file=lambda: {"tensors": {"a": torch.ones(2)}, "filename": new("s.safetensors")},
    save_model=lambda: {"model": torch.nn.Linear(2, 2), "filename": new("s.safetensors")},
    weights=lambda: {"path": WEIGHTS},
)
table("pt.Rows", lambda: pt.Rows("rows.npy"), map=lambda: {"function": unchanged}, **TRANSFORMS, **WINDOWS)
table("pt.Files", lambda: pt.Files("clips-*.npy"), fields=lambda: {"templates": {"a": "{stem}.npy"}})
table(
    "pt.safe_open",
    lambda: pt.safe_open(WEIGHTS, "pt"),
    get_slice=lambda: {"name": "w"},
    get_tensor=lambda: {"name": "w"},
)
table(
    pn,
    load=lambda: {"file": "rows.npy"},
    load_file=lambda: {"filename": WEIGHTS},
    safe_open=lambda: {"filename": WEIGHTS, "framework": "np"},
    save=lambda: {"file": new("o.npy"), "arr": np.ones(2)},
    save_file=lambda: {"tensor_dict": {"a": np.ones(2)}, "filename": new("o.safetensors")},
    savez=lambda: {"file": new("o.npz")},
    savez_compressed=lambda: {"file": new("o.npz")},
)

# Public functions whose first arguments have no names.
NO_ARGUMENTS = {
    "penstock": {"arange", "empty", "join", "ones", "rand", "randint", "randn", "result_type", "zeros", "zip"},
    "penstock.torch": {"Choice", "Rows", "Zip"},
    "penstock.numpy": set(),
}
# Classes whose objects functions make.
MADE = {"SampleStream", "NpzFile"}
