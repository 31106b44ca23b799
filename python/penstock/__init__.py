"""Tensors from files straight to the memory that computes with them.

    t = penstock.load("data.npy")                      # a penstock.Tensor
    a = penstock.open("model.pt"); a["w"][:128].load() # reads 128 rows, nothing else
    penstock.save({"w": t}, "model.safetensors")

Reads and writes `.npy`, `.npz`, `.pt`/`.pth` and `.safetensors`; nothing found in a file is ever run. Needs neither
NumPy nor PyTorch; Tensors go to and from both without a copy.
"""

from penstock._core import (
    Archive,
    Device,
    DType,
    Entry,
    Tensor,
    __version__,
    from_dlpack,
    load,
    open,
    save,
    tensor,
)
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
    "CancelledError",
    "ChangedError",
    "ChecksumError",
    "CorruptError",
    "DType",
    "DTypeMismatchError",
    "Device",
    "DeviceMismatchError",
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
    "ShapeMismatchError",
    "Tensor",
    "TimedOutError",
    "TruncatedError",
    "UnknownFormatError",
    "UnsafeError",
    "UnsupportedError",
    "__version__",
    "from_dlpack",
    "load",
    "open",
    "save",
    "tensor",
]


# Users know these classes by the package they import them from; tracebacks and pickles should too.
for _item in [globals()[_name] for _name in __all__]:
    if isinstance(_item, type):
        _item.__module__ = "penstock"
del _item
