"""Datasets whose samples lie in tensor files, with torch tensors as samples.

`_dataset` has what all of these classes share, `_native` those of files, `_mapped` the one with a function of the
program, and `_zip` the one that joins others. `_road` says what of a dataset C++ can read and what Python does with the
samples then (`_making`); `penstock.torch.DataLoader` asks it. The rest is for other loaders: `_batch_reads` reads the
samples of a whole batch at once, and `_taken_apart` makes samples of that batch.
"""

from penstock.torch.datasets._dataset import Dataset
from penstock.torch.datasets._documents import Documents
from penstock.torch.datasets._mapped import Mapped
from penstock.torch.datasets._native import Files, Packed, Rows, Shards
from penstock.torch.datasets._stream import Stream
from penstock.torch.datasets._taken_apart import NotNativeWarning
from penstock.torch.datasets._zip import Choice, Zip

__all__ = [
    "Choice",
    "Dataset",
    "Documents",
    "Files",
    "Mapped",
    "NotNativeWarning",
    "Packed",
    "Rows",
    "Shards",
    "Stream",
    "Zip",
]

# Pickles name a class by its module: by this one, which stays, rather than by the file that holds the class today.
for _class in (Choice, Dataset, Documents, Files, Mapped, Packed, Rows, Shards, Stream, Zip):
    _class.__module__ = __name__
del _class
