"""Reads what torch.save writes: `load` gives the object, `load_into` fills tensors that are there, `weights` gives a
model's tensors one after another.

`_checkpoint` is what `load` does with what `_opening` opens. It has the C++ archive read the index, `_storages` the
bytes (`_typed` where tensors become another type), and `_rebuild` make torch's objects of both; `_allowed`, `_globals`
and `_plain` say which classes a file may name, and `_refusals` what is said of the others. `_into` is `load_into`:
`_content` says what is in the file, `_targets` pairs it with the tensors that are there, and `_filling` reads it into
them. `_weights` is `weights`, which reads each format of a model.
"""

from penstock.torch.loading._checkpoint import load
from penstock.torch.loading._into import load_into
from penstock.torch.loading._refusals import UnknownGlobalsError
from penstock.torch.loading._weights import weights

__all__ = ["UnknownGlobalsError", "load", "load_into", "weights"]

# Pickles name a class by its module: by this one, which stays, rather than by the file that holds the class today.
UnknownGlobalsError.__module__ = __name__
