"""Writes what torch.load reads.

`_save` is `save`. `_describe` turns the object into parts that C++ writes; `_native` says for which objects that gives
what torch would write. All others go to `_pickling`, which has torch's own pickling write them and refuses what
`penstock.torch.load` would not read back.
"""

from penstock.torch.saving._save import save

__all__ = ["save"]
