"""A loader inside Ray Train: which part of the data is this worker's, and where it goes on after a failure.

Ray's `get_dataset_shard` gives an iterator without a position, so a run that Ray restarts sees samples twice or not at
all. Here Penstock's loader runs in the train function itself. Its position is a small text that goes into Ray's
checkpoint, and it is the same on every worker and fits any number of them.
"""

from __future__ import annotations

import json
import os
from typing import Any

import ray.train

import penstock


def loader(
    dataset: Any, batch_size: int = 1, *, resume: bool = True, name: str = "loader", kind: Any = None, **options: Any
) -> Any:
    """A loader for this worker of Ray Train, which goes on where Ray's checkpoint stands.

    In a train function::

        def train(config):
            loader = penstock.ray.loader(dataset, 32, shuffle=True, seed=7, remainder="exact")
            while loader.epoch < 3:
                for batch, valid in loader:
                    ...
                with tempfile.TemporaryDirectory() as folder:
                    penstock.ray.save_position(loader, folder)
                    ray.train.report({}, checkpoint=ray.train.Checkpoint.from_directory(folder))

    A checkpoint of some number of workers is continued with another one as penstock.DataLoader does with ranks:
    exactly, or an error says why not.

    Parameters
    ----------
    dataset
        A penstock.Dataset, or a dataset of torch.
    batch_size
        Of this worker.
    resume
        Take the position in Ray's checkpoint, if there is one.
    name
        Where a program has several loaders, a name for each.
    kind
        The class of the loader. Without it, penstock.DataLoader for a penstock.Dataset and
        penstock.torch.DataLoader for others.
    options
        What the class takes. `ranks` are those of Ray where it is not given.

    Raises
    ------
    ValueError
        If Ray's checkpoint has no position of this name, and as penstock.DataLoader.
    RuntimeError
        Outside of a train function.
    """
    found = _ranks()
    options.setdefault("ranks", found)
    made = (kind or _kind_for(dataset))(dataset, batch_size, **options)
    if resume:
        _go_on(made, name)
    return made


def _ranks() -> penstock.Ranks:
    context = ray.train.get_context()  # RuntimeError outside of a train function
    found = penstock.ranks()
    if (found.rank, found.size) != (context.get_world_rank(), context.get_world_size()):
        raise ValueError(
            f"{found.source} says rank {found.rank} of {found.size}, and Ray Train says {context.get_world_rank()} of "
            f"{context.get_world_size()}; give ranks="
        )
    return found


def _kind_for(dataset: Any) -> Any:
    if isinstance(dataset, penstock.Dataset):
        return penstock.DataLoader
    from penstock.torch import DataLoader

    return DataLoader


def _go_on(made: Any, name: str) -> None:
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return
    with checkpoint.as_directory() as folder:
        path = _place(folder, name)
        if not os.path.exists(path):
            raise ValueError(
                f"Ray's checkpoint {checkpoint.path} has no {os.path.basename(path)}, which penstock.ray.save_position "
                "writes; resume=False begins with the first sample"
            )
        with open(path) as file:
            made.load_state_dict(json.load(file))


def _place(folder: str | os.PathLike[str], name: str) -> str:
    if not name or "/" in name or "\0" in name:
        raise ValueError(f"found name={name!r}, expected a name for a file")
    return os.path.join(folder, f"penstock_{name}.json")


def save_position(loader: Any, folder: str | os.PathLike[str], *, name: str = "loader") -> None:
    """Puts where a loader stands into a folder, which becomes a checkpoint of Ray.

    The position is that of all workers. Every worker may write it, or one of them.

    Parameters
    ----------
    loader
        What `penstock.ray.loader` gave.
    folder
        The folder for `ray.train.Checkpoint.from_directory`.
    name
        The loader's name.
    """
    text = json.dumps(loader.state_dict())
    with open(_place(folder, name), "w") as file:
        file.write(text)
