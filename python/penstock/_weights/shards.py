"""The tensors of one `.safetensors` file, or of all that a `*.safetensors.index.json` names."""

from __future__ import annotations

import penstock


class Shards:
    """`entries` by name: for one file in the order of their bytes, for an index in its own order.

    UnknownFormatError for an archive of another format.
    """

    def __init__(self, archive: penstock.Archive) -> None:
        if archive.format not in {"safetensors", "shard-index"}:
            message = f"found a {archive.format} file, expected safetensors; load it with penstock.load"
            raise penstock.UnknownFormatError(f"{archive.path}: {message}", message, archive.path)
        self.archive = archive
        self.metadata = archive.metadata if archive.has_metadata else None
        entries = [archive[name] for name in archive]
        if archive.format == "safetensors":
            entries.sort(key=lambda entry: (entry.offset or 0, entry.nbytes))
        self.entries = {entry.name: entry for entry in entries}

    def load(self) -> dict[str, penstock.Tensor]:
        """All tensors, each file read in one go."""
        loaded: dict[str, penstock.Tensor] = self.archive.load()
        return {name: loaded[name] for name in self.entries}
