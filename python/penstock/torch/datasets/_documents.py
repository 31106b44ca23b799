"""The documents in files of tokens, with torch tensors as samples."""

from __future__ import annotations

import os
from collections.abc import Iterable

import penstock
from penstock.torch.datasets._dataset import Dataset, _Sample


class Documents(Dataset[_Sample]):
    """Samples are the documents in files of tokens: Megatron's `.bin` with `.idx`, and llm.c's.

    They differ in length, so batches are padded or ragged, or windows of them are taken.

    Parameters
    ----------
    source
        A file of Megatron's ("NAME.idx", "NAME.bin" or "NAME"); a file of llm.c's; a glob or a list of
        these; or an array of tokens such as `penstock.raw` gives, with `begin`.
    sequences
        Take each sequence of Megatron's for itself.
    begin
        The token that each document begins with, where the file does not say where documents lie.
    mmap
        Whether the tokens are mapped or read, as for `Rows`.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | penstock.LazyTensor | Iterable[str | os.PathLike[str]],
        sequences: bool = False,
        begin: int | None = None,
        mmap: bool | None = None,
    ) -> None:
        super().__init__(penstock.documents(source, sequences, begin, mmap))
