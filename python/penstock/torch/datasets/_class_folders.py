"""The labels of files whose folders are classes, for `Files`."""

from __future__ import annotations

from functools import cached_property

import penstock
from penstock._core import _class_folders


class ClassFolders:
    """The labels of paths like "train/cat/1.pt", under the names that torchvision's ImageFolder has
    for them.

    The class of a file is the first folder below the part that all paths share: of a pattern the
    part in front of its first `*`, `?` or `[`, of a folder the folder itself, and of a list of
    paths the folder that they all lie below.
    """

    native: penstock.Dataset

    @property
    def paths(self) -> list[str]:
        """The file of each sample, in the order of the samples."""
        return self.native.paths

    @cached_property
    def _classes(self) -> tuple[list[str], list[int]]:
        return _class_folders(self.native)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, in order. ValueError where a file lies in no class's folder."""
        return self._classes[0]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class: its place in `classes`."""
        return {name: number for number, name in enumerate(self.classes)}

    @property
    def targets(self) -> list[int]:
        """The number of each sample's class. `Zip` takes `torch.tensor(files.targets)`."""
        return self._classes[1]
