"""What the main process keeps of torch's workers: their reports, and which batches they have not given yet.

`_torch_iterators.py` fills it in and puts it into positions; the reports come from `_worker_states.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch.utils.data as torch_data

from penstock.torch.loader._position import Position
from penstock.torch.loader._worker_states import Reported, WorkerState


class Places:
    """The places in their epoch of batches that were drawn and not given yet. torch numbers batches from where its
    iterator began, and that iterator gave the batches that were `pending` then first."""

    def __init__(self, begin: Position | None = None) -> None:
        self._first = [] if begin is None else begin.pending or []
        self._then = 0
        if begin is not None:
            self._then = begin.batch if begin.pending is None else max(begin.drawn or 0, begin.batch)

    def of(self, numbers: Iterable[int]) -> list[int]:
        first, then = self._first, self._then
        return [first[i] if i < len(first) else then + i - len(first) for i in sorted(numbers)]


class OfWorkers:
    """What the workers reported with the batches that were taken. It holds no reference to the
    iterator.

    `last` is the worker whose batch was given last, and `given` how many batches each has given.
    """

    def __init__(self, states: list[WorkerState], last: int, loader: torch_data.DataLoader[Any], seed: int = 0) -> None:
        self.iterable = isinstance(loader.dataset, torch_data.IterableDataset)
        self.last = last
        self.given = [0] * len(states)
        self.seed = seed
        self._begin = states
        self._reports: dict[int, Reported] = {}
        self._stay = loader.persistent_workers
        self._in_order = loader.in_order

    def hear(self, report: Reported) -> None:
        self._reports[report.worker] = report

    def now(self) -> list[WorkerState]:
        """The workers' states. A worker that has reported nothing is as it was when the epoch began."""
        told = [self._reports[i].state() if i in self._reports else WorkerState() for i in range(len(self._begin))]
        return [state._replace(random=None) if state.is_known else self._begin[i] for i, state in enumerate(told)]

    def behind(self) -> list[WorkerState]:
        """The states in which the next epoch finds the workers, behind the end of this one."""
        told = [self._reports[i].state() if i in self._reports else self._begin[i] for i in range(len(self._begin))]
        return [state._replace(ended=False, over=True) for state in told]

    def __call__(self, finished: bool) -> dict[str, Any]:
        out: dict[str, Any] = {"base_seed": self.seed, "num_workers": len(self._begin)}
        states = self.now() if not finished else self.behind() if self._stay else []
        if any(state.is_known or state.random for state in states):
            out["workers"] = [list(state) for state in states]
        if not finished and any(state.is_known for state in states):
            out["last_worker"] = self.last
        if not finished and not self._in_order:
            out["given"] = list(self.given)
        return out
