"""Tensors of a file that are loaded in the background: what `safe_open.prefetch` gives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

from penstock._pool import Pool


@dataclass(frozen=True)
class TensorMeta:
    """What the header of a `.safetensors` says about a tensor.

    Parameters
    ----------
    dtype
        safetensors' name for it, "F32".
    shape
        The sizes.
    data_offsets
        First byte and the byte behind the last, counted from where the header ends.
    """

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


class PrefetchLoader:
    """Tensors that threads load while the program does something else; `safe_open.prefetch` makes it.

    Each tensor is handed out once, by `take` or by iterating. It is a context manager, which closes
    it. Any number of threads may use it.

    Parameters
    ----------
    names
        The tensors, in the order in which they are loaded.
    read
        Loads the tensor of a name.
    threads
        How many of them are loaded at the same time.
    refuse
        Makes the error of a name and of what is wrong with it.
    """

    def __init__(
        self, names: Sequence[str], read: Callable[[str], Any], threads: int, refuse: Callable[[str, str], Exception]
    ) -> None:
        self._refuse = refuse
        self._lock = threading.Lock()
        self._closed = False
        self._names = list(names)
        self._pool = Pool(threads, thread_name_prefix="penstock-prefetch")
        self._coming: dict[str, Future[Any]] = {name: self._pool.submit(read, name) for name in names}
        self._pool.shutdown(wait=False)  # its threads end behind the last tensor

    def names(self) -> list[str]:
        """The names of all tensors of the plan, in the order of the file."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def take(self, name: str) -> Any:
        """The tensor of a name, as soon as it is loaded.

        Parameters
        ----------
        name
            One of `names`.

        Returns
        -------
        torch.Tensor

        Raises
        ------
        SafetensorError
            For a name that is not in the plan or was handed out already, where reading failed, and
            after `close`.
        """
        return self._claim(name).result()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Pairs of name and tensor, in the order in which they are ready."""
        while True:
            with self._lock:
                self._require_open("")
                coming = {future: name for name, future in self._coming.items()}
            if not coming:
                return
            ready, _ = wait(coming, return_when=FIRST_COMPLETED)
            for future in ready:
                with self._lock:
                    self._require_open(coming[future])
                    if self._coming.pop(coming[future], None) is None:
                        continue  # taken meanwhile
                yield coming[future], future.result()

    def close(self) -> None:
        """Lets go of what was not handed out. What is not begun is not read any more."""
        with self._lock:
            self._closed = True
            left, self._coming = self._coming, {}
        for future in left.values():
            future.cancel()

    def __enter__(self) -> PrefetchLoader:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def _require_open(self, name: str) -> None:
        if self._closed:
            raise self._refuse("prefetch loader closed", name)

    def _claim(self, name: str) -> Future[Any]:
        with self._lock:
            self._require_open(name)
            future = self._coming.pop(name, None)
        if future is not None:
            return future
        if name in self._names:
            raise self._refuse(
                "tensor already delivered (prefetch hands each tensor out once, via take or iteration)", name
            )
        raise self._refuse(f"tensor {name} is not in the prefetch plan", name)


def rows_of(part: Any, shape: Sequence[int], name: str) -> slice | None:
    """The rows that a value of a plan names; None for all. ValueError says what is wrong with it."""
    if part is None:
        return None
    if not isinstance(part, slice):
        raise ValueError(f"prefetch plan values must be None or a slice, got {type(part)} for {name}")
    if part.step not in (None, 1):
        raise ValueError(f"prefetch plan slices must have step 1, got {part.step} for {name}")
    if not shape:
        raise ValueError(f"cannot slice rows of the 0-d tensor {name}")
    rows = shape[0]
    ends = []
    for word, end, default in (("start", part.start, 0), ("stop", part.stop, rows)):
        if end is not None and type(end) is not int:
            raise ValueError(f"invalid prefetch plan slice for {name}: {word} is {end!r}, which is not an integer")
        at = default if end is None else end + rows if end < 0 else end
        if not 0 <= at <= rows:
            raise ValueError(f"prefetch plan slice {word} {end} for {name} is out of range for {rows} rows")
        ends.append(at)
    return slice(ends[0], max(ends))
