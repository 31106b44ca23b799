"""`dcp.load`, `dcp.save` and `dcp.async_save` of torch.distributed.checkpoint, with Penstock reading and writing.

    import torch.distributed.checkpoint as dcp
    from penstock.torch.dcp import StorageReader, StorageWriter

    dcp.save(state, storage_writer=StorageWriter("ckpt"))
    dcp.load(state, storage_reader=StorageReader("ckpt"))

Without torch, `penstock.open("ckpt")` reads such folders.
"""

from penstock.torch.dcp._reader import StorageReader
from penstock.torch.dcp._writer import StorageWriter

__all__ = ["StorageReader", "StorageWriter"]
