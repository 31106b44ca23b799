"""The labels of files whose folders are classes, for `Files`."""

from __future__ import annotations

import os
import re
from functools import cached_property

import penstock

__all__ = ["ClassFolders"]


class ClassFolders:
    """The labels of paths like "train/cat/1.pt", under the names that torchvision's ImageFolder has
    for them.

    The class of a file is the first folder below the part that all paths share: of a pattern the
    part in front of its first `*`, `?` or `[`, of a folder the folder itself, and of a list of
    paths the folder that they all lie below.
    """

    native: penstock.Dataset
    _pattern: str | None

    @property
    def paths(self) -> list[str]:
        """The file of each sample, in the order of the samples."""
        return self.native.paths

    @cached_property
    def _class_names(self) -> list[str]:
        paths = self.paths
        root = _root(self._pattern) if self._pattern is not None else _common(paths)
        begin = len(root) + (not root.endswith(os.sep)) if root else 0
        out = []
        for path in paths:
            name, below, _ = path[begin:].partition(os.sep)
            if not name or not below or not path.startswith(root):
                raise ValueError(
                    f"{path} lies in no class's folder below {root or 'the working folder'!r}; files with classes are "
                    "found by patterns like 'train/*/*.pt'"
                )
            out.append(name)
        return out

    @cached_property
    def classes(self) -> list[str]:
        """The names of the classes, in order. ValueError where a file lies in no class's folder."""
        return sorted(set(self._class_names))

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class: its place in `classes`."""
        return {name: number for number, name in enumerate(self.classes)}

    @cached_property
    def targets(self) -> list[int]:
        """The number of each sample's class. `Zip` takes `torch.tensor(files.targets)`."""
        numbers = self.class_to_idx
        return [numbers[name] for name in self._class_names]


def _root(pattern: str) -> str:
    """The folder in front of the first part of a pattern that stands for several names; a folder itself."""
    if os.path.isdir(pattern):
        return pattern
    root = ""
    for part in pattern.split(os.sep)[:-1]:
        if re.search(r"[*?[]", part) and not os.path.isdir(root + part):
            break
        root += part + os.sep
    return root


def _common(paths: list[str]) -> str:
    """The folder that all paths lie below. They need not be paths of this machine ("store://train/cat/1.pt")."""
    folders = [path.split(os.sep)[:-1] for path in paths]
    shared = min(folders, default=[])
    for folder in folders:
        while folder[: len(shared)] != shared:
            shared = shared[:-1]
    return "".join(part + os.sep for part in shared)
