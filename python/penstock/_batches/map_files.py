"""`map_files`: each file of a folder as a function makes another of it, read natively and computed in processes."""

from __future__ import annotations

import os

from penstock._api.datasets import dataset
from penstock._api.datasets import files as files_of
from penstock._api.datasets import zip as zipped
from penstock._api.files import open as open_file
from penstock._api.files import save
from penstock._api.loader import DataLoader
from penstock._batches.made_by import MadeBy, name_of
from penstock._core import _goes_to_store
from penstock._files.paths import absolute
from penstock._wrong_argument import names_arguments
from penstock.errors import Error, InvalidArgumentError, TruncatedError, UnsupportedError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


@names_arguments
def map_files(
    function: Callable[[Any], Any],
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    suffix: str = ".npy",
    num_workers: int | str = "auto",
    workers: str = "processes",
) -> list[str]:
    """Writes what a function makes of each file into a folder, one file for each.

    Threads read the files, and worker processes call the function and write. A file appears whole or
    not at all, and one that is there already is not made again: after a stop, the same call goes on.
    Nothing is flushed to the disk, so a power failure may cut files; the same call makes these anew.
    Names are those of the files below the folder that all of them share, with another suffix. What
    made the files is noted in `.penstock_map.json` beside them: the function by its name, its code and
    the plain values that it holds. Another one finds them there and raises, instead of leaving them as
    its own.

    Parameters
    ----------
    function
        Called with what each file holds, as `files(...).map` calls it. It must pickle, as functions in
        worker processes do.
    files
        A file, a folder, a glob or a list of paths, as for `files`.
    out
        The folder, which is made where it is missing. A file that is read is never written over.
    suffix
        ".npy", ".npz", ".pt" or ".safetensors": how `save` writes what the function gives.
    num_workers
        How many threads and processes; "auto" is one for each processor. 0 does all of it here.
    workers
        Who calls the function: "processes" or "threads".

    Returns
    -------
    list of str
        The paths that were written or were there, in the order of the files.

    Raises
    ------
    penstock.Error
        Of the first file that cannot be read, or whose function raises; it names the file. Others may
        have been written.
    InvalidArgumentError
        For files that another function, or another version of this one, has made of the same files.
    """
    found = list(files_of(files).paths)
    out = os.fspath(out)
    if out.startswith("file:"):
        out = absolute(out)
    if _goes_to_store(out):
        message = "map_files writes into a folder of this machine; name one, and put what it holds into the store"
        raise UnsupportedError(f"{out}: {message}", message, out)
    paths = [os.path.join(out, name + suffix) for name in _names(found)]
    if len(set(paths)) != len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise InvalidArgumentError(f"two of the files would be written as {twice}; map them into folders of their own")
    missing = [place for place, path in enumerate(paths) if not _is_there(path)]
    _require_others(found, set(range(len(paths))) - set(missing), paths)
    made_by = MadeBy(out, f"{_above(found)} {suffix}", function)
    if len(missing) < len(paths):
        first = next((number for number, place in enumerate(missing) if number != place), len(missing))
        made_by.require_same(paths[first])
    for folder in {os.path.dirname(paths[place]) for place in missing} or {out}:
        os.makedirs(folder, exist_ok=True)
    if missing:
        made_by.note()
        content = files_of([found[place] for place in missing])
        names = dataset([paths[place] for place in missing])
        pairs = zipped(content, names).map(_Written(function))
        with DataLoader(pairs, 1, num_workers=num_workers, workers=workers) as loader:
            for _ in loader:
                pass
    return paths


def _names(found: list[str]) -> list[str]:
    """Of each file the path below the folder that all share, without its suffix."""
    whole, above = _whole(found), _above(found)
    return [os.path.splitext(os.path.relpath(path, above))[0] for path in whole]


def _whole(found: list[str]) -> list[str]:
    return [path if "://" in path else os.path.abspath(path) for path in found]


def _above(found: list[str]) -> str:
    """The folder that all files share."""
    whole = _whole(found)
    if len({"://" in path for path in whole}) > 1:
        raise InvalidArgumentError("found URLs beside files of this machine; map them in calls of their own")
    return os.path.commonpath([os.path.dirname(path) for path in whole]) if whole else ""


def _require_others(found: list[str], there: set[int], paths: list[str]) -> None:
    """InvalidArgumentError where one of the files that are there is one of those that are read: its result would be
    taken for written."""
    read = {_inode(path) for path in found} if there else set()
    own = next((paths[place] for place in sorted(there) if _inode(paths[place]) in read - {None}), None)
    if own is not None:
        message = "it is one of the files that are read; write into another folder, or with another suffix"
        raise InvalidArgumentError(f"{own}: {message}", message, own)


def _inode(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:  # of another machine, or a link that leads nowhere
        return None
    return status.st_dev, status.st_ino


_SHORTEST = 10  # no format that `save` writes has fewer bytes


def _is_there(path: str) -> bool:
    """Whether something lies there that a power failure did not cut, which leaves a name and less than all bytes."""
    if not os.path.isfile(path):
        return os.path.lexists(path)
    if os.path.getsize(path) < _SHORTEST:
        return False
    try:
        open_file(path)
    except TruncatedError:
        return False
    except Error:
        return True  # what the program put there
    return True


class _Written:
    """A function of a file's content and of a path that writes there what another makes of the content."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.__qualname__ = name_of(function)  # for messages

    def __call__(self, pair: Any) -> int:
        content, path = pair
        # A flush of each file is a wait for the disk, a hundred times what most functions take.
        save(self.function(content), path, sync=False)
        return 1
