"""Tensors from files straight to the memory that computes with them.

    t = penstock.load("data.npy")                      # a penstock.Tensor
    a = penstock.open("model.pt"); a["w"][:128].load() # reads 128 rows, nothing else
    penstock.save({"w": t}, "model.safetensors")

    pairs = penstock.zip(penstock.rows("images.npy"), penstock.rows("labels.npy"))
    for images, labels in penstock.DataLoader(pairs, batch_size=32, shuffle=True, num_workers=2): ...

Reads and writes `.npy`, `.npz`, `.pt`/`.pth` and `.safetensors`; nothing found in a file is ever run. Needs neither
NumPy nor PyTorch; Tensors go to and from both without a copy.
"""

from penstock._core import (
    Archive,
    BatchSampler,
    Collate,
    DataLoader,
    Dataset,
    Device,
    DistributedSampler,
    DType,
    Entry,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetSampler,
    Tensor,
    WeightedSampler,
    concat,
    files,
    from_dlpack,
    load,
    open,
    pad,
    pad_to,
    ragged,
    rows,
    save,
    stack,
    subset,
    tensor,
    zip,
)
from penstock._core import _version as __version__
from penstock._opaque import Opaque
from penstock.errors import (
    CancelledError,
    ChangedError,
    ChecksumError,
    CorruptError,
    DeviceMismatchError,
    DTypeMismatchError,
    Error,
    IndexOutOfRangeError,
    InputOutputError,
    InvalidArgumentError,
    IsDirectoryError,
    KeyNotFoundError,
    LimitError,
    NoDeviceError,
    NotDirectoryError,
    NotFoundError,
    OutOfMemoryError,
    PermissionDeniedError,
    ShapeMismatchError,
    TimedOutError,
    TruncatedError,
    UnknownFormatError,
    UnsafeError,
    UnsupportedError,
)

__all__ = [
    "Archive",
    "BatchSampler",
    "CancelledError",
    "ChangedError",
    "ChecksumError",
    "Collate",
    "CorruptError",
    "DType",
    "DTypeMismatchError",
    "DataLoader",
    "Dataset",
    "Device",
    "DeviceMismatchError",
    "DistributedSampler",
    "Entry",
    "Error",
    "IndexOutOfRangeError",
    "InputOutputError",
    "InvalidArgumentError",
    "IsDirectoryError",
    "KeyNotFoundError",
    "LimitError",
    "NoDeviceError",
    "NotDirectoryError",
    "NotFoundError",
    "Opaque",
    "OutOfMemoryError",
    "PermissionDeniedError",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "ShapeMismatchError",
    "SubsetSampler",
    "Tensor",
    "TimedOutError",
    "TruncatedError",
    "UnknownFormatError",
    "UnsafeError",
    "UnsupportedError",
    "WeightedSampler",
    "__version__",
    "concat",
    "files",
    "from_dlpack",
    "load",
    "open",
    "pad",
    "pad_to",
    "ragged",
    "rows",
    "save",
    "stack",
    "subset",
    "tensor",
    "zip",
]


# Users know these classes by the package they import them from; tracebacks and pickles should too.
for _item in [globals()[_name] for _name in __all__]:
    if isinstance(_item, type):
        _item.__module__ = "penstock"
del _item
