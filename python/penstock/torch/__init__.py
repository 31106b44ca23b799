"""Penstock for PyTorch: the names, arguments and results of torch's own, read by Penstock.

import penstock.torch as pt

for x, y in pt.DataLoader(pt.Rows("images.npy", "labels.npy"), batch_size=32, shuffle=True, num_workers=2): ...
for batch in pt.DataLoader(pt.Files("clips/*.pt"), batch_size=32, collate_fn=pt.pad_to(1024)): ...

The rooms are `loading` (load, load_into), `saving` (save), `datasets`, `loader` (DataLoader) and `dcp` (distributed
checkpoints, which is imported by its name alone); each imports only those before it. Modules beside them are used by
several rooms, or have functions for users (`collate`, `safetensors`).
"""

from penstock import _whole as _whole  # it tells of a package that is not whole
from penstock.torch import _private as _private  # it tells of a torch that is missing or too old
from penstock.torch._blocks import attach
from penstock.torch._transformers import transformers_loading
from penstock.torch.collate import nested, pad, pad_to, ragged, stack
from penstock.torch.datasets import (
    Choice,
    Dataset,
    Documents,
    Files,
    Mapped,
    NotNativeWarning,
    Packed,
    Rows,
    Shards,
    Stream,
    Zip,
)
from penstock.torch.loader import DataLoader, LoaderTimeoutError
from penstock.torch.loading import UnknownGlobalsError, load, load_into, weights
from penstock.torch.safetensors import SafetensorError, load_file, load_model, safe_open, save_file, save_model
from penstock.torch.saving import save

__all__ = [
    "Choice",
    "DataLoader",
    "Dataset",
    "Documents",
    "Files",
    "LoaderTimeoutError",
    "Mapped",
    "NotNativeWarning",
    "Packed",
    "Rows",
    "SafetensorError",
    "Shards",
    "Stream",
    "UnknownGlobalsError",
    "Zip",
    "attach",
    "load",
    "load_file",
    "load_into",
    "load_model",
    "nested",
    "pad",
    "pad_to",
    "ragged",
    "safe_open",
    "save",
    "save_file",
    "save_model",
    "stack",
    "transformers_loading",
    "weights",
]
