"""What `stats()` of a loader gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.errors import InvalidArgumentError

# By name: what it counts. Those that only grow while the loader lives are counters, and the rest are gauges.
_COUNTERS = {
    "batches": "Batches that were finished",
    "samples": "Samples in them",
    "payload_bytes": "Bytes placed in batches",
    "read_bytes": "Bytes asked of files",
    "files_opened": "Files that were opened",
    "files_parsed": "Opened files whose layout differed from that of the one before",
    "open_seconds": "Seconds of workers opening files",
    "read_seconds": "Seconds of workers reading files",
    "decode_seconds": "Seconds of workers parsing headers, checking sums and unpacking",
    "function_seconds": "Seconds of workers in functions of the program",
    "collate_seconds": "Seconds of workers laying out batches",
    "copy_seconds": "Seconds of workers copying payload into batches",
    "send_seconds": "Seconds of workers starting copies to the device",
    "compute_seconds": "Processor seconds of workers",
    "stall_seconds": "Seconds of workers ready to run while no processor was free",
    "budget_seconds": "Seconds of workers waiting for memory_budget",
    "wait_seconds": "Seconds of the caller waiting for a batch",
    "caller_seconds": "Seconds of the caller between batches",
    "caller_stall_seconds": "Seconds of the caller ready to run while no processor was free",
    "worker_capacity": "Seconds that the workers had",
    "process_seconds": "Processor seconds of the process meanwhile",
    "buffers_allocated": "Buffers of host memory that were allocated",
    "worker_processes_started": "Worker processes that were started",
    "worker_calls": "Calls that worker processes made",
    "worker_function_seconds": "Seconds of worker processes in these calls",
    "remote_requests": "Requests by URL, each try counted",
    "remote_retries": "Requests that were tried again",
    "remote_hedges": "Second requests for bytes whose first request was answered late",
    "remote_throttled": "Answers 429 and 503",
    "remote_received_bytes": "Bytes that came by URL",
    "remote_cached_bytes": "Bytes that came from the disk cache in place of requests",
    "remote_first_byte_seconds": "Seconds of requests until the first byte of the answer",
    "remote_transfer_seconds": "Seconds of requests from the first byte to the last",
    "remote_paused_seconds": "Seconds of pauses before requests were tried again",
}
_GAUGES = {
    "first_batch_seconds": "Seconds from the start of the iteration to its first batch",
    "workers": "Threads that prepare batches",
    "worker_processes": "Worker processes",
    "worker_bytes": "Bytes of shared memory for calls and answers, without answers in use",
    "processors": "Processors that the process may use",
}
_TEXTS = {
    "bottleneck": "What limits the iteration, in its label",
    "remote_limit": "What limits requests by URL, in its label",
}
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


def _value(number: float) -> str:
    return str(number) if isinstance(number, int) else repr(float(number)).replace("inf", "Inf").replace("nan", "NaN")


def _labels(labels: Mapping[str, object]) -> str:
    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quoted(str(value))}"' for name, value in labels.items()) + "}" if labels else ""


class LoaderStats(dict[str, Any]):
    """The figures of a loader by name. Printed, they are a few lines that end with what limits the speed."""

    def __init__(self, figures: dict[str, Any], text: str) -> None:
        super().__init__(figures)
        self._text = text

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        from penstock import _html

        return _html.figures(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return LoaderStats, (dict(self), self._text)

    def prometheus(self, prefix: str = "penstock_loader", labels: Mapping[str, object] | None = None) -> str:
        """All numbers in Prometheus' text exposition format, as a scrape or a pushgateway takes
        them.

        Parameters
        ----------
        prefix
            What the names of the metrics begin with.
        labels
            Labels of each sample, such as ``{"rank": 3}``.

        Returns
        -------
        str
            For each metric its HELP, its TYPE and one sample; "bottleneck" is a label of a sample
            that is 1.

        Raises
        ------
        InvalidArgumentError
            For a prefix or a label's name that Prometheus does not allow.
        """
        given = dict(labels or {})
        if not _METRIC.fullmatch(prefix):
            raise InvalidArgumentError(f"prefix: {prefix!r} cannot begin a metric's name; use letters, digits and '_'")
        for name in given:
            if not isinstance(name, str) or not _LABEL.fullmatch(name):
                raise InvalidArgumentError(f"labels: {name!r} cannot be a label's name; use letters, digits and '_'")
        return "".join(self._metrics(prefix, given))

    def _metrics(self, prefix: str, labels: dict[str, object]) -> Iterator[str]:
        for kind, known in (("counter", _COUNTERS), ("gauge", _GAUGES), ("gauge", _TEXTS)):
            for name, told in known.items():
                if name not in self:
                    continue
                unit = "_seconds" if name == "worker_capacity" else ""
                end = "_info" if known is _TEXTS else "_total" if kind == "counter" else ""
                metric = f"{prefix}_{name}{unit}{end}"
                own = {**labels, name: self[name]} if known is _TEXTS else labels
                value = "1" if known is _TEXTS else _value(self[name])
                yield f"# HELP {metric} {told}\n# TYPE {metric} {kind}\n{metric}{_labels(own)} {value}\n"
