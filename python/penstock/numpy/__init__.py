"""Penstock for NumPy: the names, arguments and results of numpy's own, read by Penstock.

    import penstock.numpy as pn

    images = pn.load("images.npy")                   # an ndarray; mmap_mode="r" maps it
    with pn.load("many.npz") as npz: a = npz["a"]    # one array read
    pn.savez_compressed("out.npz", a=a)

`penstock.numpy.safetensors` is the package safetensors' NumPy side.
"""

from penstock import _whole as _whole  # it tells of a package that is not whole
from penstock.numpy.npz import NpzFile
from penstock.numpy.reading import BadNpzError, NoDataError, load
from penstock.numpy.safetensors import SafetensorError, load_file, safe_open, save_file
from penstock.numpy.writing import save, savez, savez_compressed

__all__ = [
    "BadNpzError",
    "NoDataError",
    "NpzFile",
    "SafetensorError",
    "load",
    "load_file",
    "safe_open",
    "save",
    "save_file",
    "savez",
    "savez_compressed",
]
