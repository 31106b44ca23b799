"""Penstock for PyTorch: the names, arguments and results of torch's own, read by Penstock.

import penstock.torch as pt

for x, y in pt.DataLoader(pt.Rows("images.npy", "labels.npy"), batch_size=32, shuffle=True, num_workers=2): ...
for batch in pt.DataLoader(pt.Files("clips/*.pt"), batch_size=32, collate_fn=pt.pad_to(1024)): ...
"""

from penstock.torch._taken_apart import NotNativeWarning
from penstock.torch.collate import pad, pad_to, ragged, stack
from penstock.torch.datasets import Dataset, Files, Mapped, Packed, Rows, Zip
from penstock.torch.loader import DataLoader, LoaderTimeoutError
from penstock.torch.loading import load_into
from penstock.torch.safetensors import SafetensorError, load_file, load_model, safe_open, save_file, save_model
from penstock.torch.saving import save
from penstock.torch.serialization import UnknownGlobalsError, load

__all__ = [
    "DataLoader",
    "Dataset",
    "Files",
    "LoaderTimeoutError",
    "Mapped",
    "NotNativeWarning",
    "Packed",
    "Rows",
    "SafetensorError",
    "UnknownGlobalsError",
    "Zip",
    "load",
    "load_file",
    "load_into",
    "load_model",
    "pad",
    "pad_to",
    "ragged",
    "safe_open",
    "save",
    "save_file",
    "save_model",
    "stack",
]
