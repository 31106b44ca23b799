"""Tensors from files straight to the memory that computes with them.

    t = penstock.load("data.npy")                      # a penstock.Tensor
    a = penstock.open("model.pt"); a["w"][:128].load() # reads 128 rows, nothing else
    penstock.save({"w": t}, "model.safetensors")

    pairs = penstock.zip(penstock.rows("images.npy"), penstock.rows("labels.npy"))
    for images, labels in penstock.DataLoader(pairs, batch_size=32, shuffle=True, num_workers=2): ...

Reads and writes `.npy`, `.npz`, `.pt`/`.pth` and `.safetensors`; nothing found in a file is ever run. Needs neither
NumPy nor PyTorch; Tensors go to and from both without a copy. Errors are in `penstock.errors`.
"""

from __future__ import annotations

__distribution__ = "penstock-tensors"  # before all imports: penstock._whole looks for it

# What `collections.abc` gives, which every interpreter has loaded; that name would bring `collections` with it.
from _collections_abc import Mapping

from penstock import _whole as _whole  # before everything that needs a whole package
from penstock import device as device
from penstock._api.batches import (
    DistributedSampler,
    NodeLocalSampler,
    RandomSampler,
    SequentialSampler,
    SubsetSampler,
    WeightedSampler,
    length_buckets,
    pad,
    pad_to,
    ragged,
    samples,
)
from penstock._api.datasets import (
    choice,
    dataset,
    documents,
    files,
    join,
    lengths,
    mix,
    pack,
    pack_sequences,
    packed,
    rows,
    shards,
    subset,
    with_labels,
    zip,
)
from penstock._api.files import (
    Writer,
    doctor,
    load,
    open,
    raw,
    save,
)
from penstock._api.loader import DataLoader
from penstock._api.tensors import (
    arange,
    asarray,
    cat,
    empty,
    from_dlpack,
    full,
    ones,
    promote_types,
    rand,
    randint,
    randn,
    result_type,
    stack,
    tensor,
    zeros,
)
from penstock._core import (
    Archive,
    BatchSampler,
    Collate,
    Dataset,
    DType,
    Generator,
    LazyTensor,
    Sampler,
    Tensor,
    WritableArchive,
)
from penstock._core import (
    _version as __version__,
)
from penstock.errors import *  # noqa: F403  its classes may be written penstock.NotFoundError too
from penstock.errors import Error

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from typing import Any

    from penstock._batches.map_files import map_files
    from penstock._batches.ranks import Ranks, ranks
    from penstock._batches.streams import SampleStream, stream
    from penstock._load.background import load_async, save_async
    from penstock._load.into import Unmatched as Unmatched
    from penstock._load.into import load_into
    from penstock._load.moving import to
    from penstock._objects.extremum import Extremum as Extremum
    from penstock._objects.opaque import Opaque

# Where names are that not every program asks for: each module is imported when one of them is.
_LATER = {
    "Extremum": "_objects.extremum",
    "Opaque": "_objects.opaque",
    "Ranks": "_batches.ranks",
    "SampleStream": "_batches.streams",
    "Unmatched": "_load.into",
    "load_async": "_load.background",
    "load_into": "_load.into",
    "map_files": "_batches.map_files",
    "ranks": "_batches.ranks",
    "save_async": "_load.background",
    "stream": "_batches.streams",
    "to": "_load.moving",
}

# What a program writes by name, beside the errors.
__all__ = [
    "Archive",
    "BatchSampler",
    "Collate",
    "DType",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "Error",
    "Generator",
    "LazyTensor",
    "NodeLocalSampler",
    "Opaque",
    "RandomSampler",
    "Ranks",
    "SampleStream",
    "Sampler",
    "SequentialSampler",
    "SubsetSampler",
    "Tensor",
    "WeightedSampler",
    "WritableArchive",
    "Writer",
    "__version__",
    "arange",
    "asarray",
    "cat",
    "choice",
    "dataset",
    "doctor",
    "documents",
    "empty",
    "files",
    "from_dlpack",
    "full",
    "join",
    "length_buckets",
    "lengths",
    "load",
    "load_async",
    "load_into",
    "map_files",
    "mix",
    "ones",
    "open",
    "pack",
    "pack_sequences",
    "packed",
    "pad",
    "pad_to",
    "promote_types",
    "ragged",
    "rand",
    "randint",
    "randn",
    "ranks",
    "raw",
    "result_type",
    "rows",
    "samples",
    "save",
    "save_async",
    "shards",
    "stack",
    "stream",
    "subset",
    "tensor",
    "to",
    "with_labels",
    "zeros",
    "zip",
]


# A file's index is a mapping for whoever asks: isinstance, and `case {"weight": weight}`.
Mapping.register(Archive)

# Users know these classes by the package they import them from; tracebacks and pickles should too.
for _item in list(globals().values()):
    if isinstance(_item, type) and _item.__module__.partition(".")[0] == "penstock":
        _item.__module__ = "penstock"
del _item, Mapping


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    found = getattr(__import__(f"penstock.{_LATER[name]}", fromlist=[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
