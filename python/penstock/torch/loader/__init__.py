"""torch's DataLoader with Penstock's reading beneath it.

`_loader` is the class that users see. What it was told goes to the others as a `Settings` object, so that none of them
knows the loader. Where C++ can read the dataset, `_iteration` is the iterator: `_wanted` draws from the sampler,
`_reads` asks for batches ahead, `_feeds` has who reads them and `_collation` who makes them of their samples,
`_set_aside` judges samples that Python reads, and `_finish` calls Python's functions. Otherwise torch's own iterators
do the work (`_torch_iterators`, with `_worker_states` in their processes and `_worker_reports` in this one).
`_position` is where an iteration stands and how one goes on from there, `_order` what decides the order of its samples;
`_progress` is what the loader keeps of its newest iteration.
"""

from penstock.torch.loader._loader import DataLoader
from penstock.torch.loader._timeout import LoaderTimeoutError

__all__ = ["DataLoader", "LoaderTimeoutError"]

# Pickles name a class by its module: by this one, which stays, rather than by the file that holds the class today.
DataLoader.__module__ = LoaderTimeoutError.__module__ = __name__
