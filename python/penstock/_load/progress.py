"""Progress of loads and saves: a function that is called, or a bar."""

from __future__ import annotations

import sys
import threading
import time

from penstock.errors import DTypeMismatchError

TYPE_CHECKING = False  # `typing` takes a third of the module's import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock._core import _Meter

_PERIOD = 0.05
_WIDTH = 24  # of a bar, in characters


def watched(progress: object, name: str, meter: _Meter, work: Callable[[], Any], unit: str = "B") -> Any:
    """work() on a thread of its own, while this one tells how far it is and answers signals.

    Called for `progress=` by load, save, pack and others; `unit` is what they count, bytes ("B") or
    samples. An exception of the function, or of a signal's handler, stops the work, is raised when
    that has ended, and comes before an error of the work.
    """
    if progress is True:
        tell, close = _bar(name, unit)
    elif progress is False:
        tell, close = _nothing, _nothing
    elif callable(progress):
        tell, close = progress, _nothing
    else:
        raise DTypeMismatchError(f"progress is True or a function (done, total), and not {type(progress).__name__}")
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            meter.over()

    thread = threading.Thread(target=run, name="penstock", daemon=True)
    thread.start()
    told = None
    try:
        while not outcome:
            meter.wait(_PERIOD)
            at_end = meter.at_end
            now = (meter.done, meter.total)
            if (at_end or now[1]) and now != told:
                told = now
                tell(*now)
            if at_end:
                meter.go_on()
    except BaseException:
        meter.stop()
        thread.join()
        raise
    finally:
        close()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def _nothing(*args: int) -> None:
    pass


def _bar(name: str, unit: str) -> tuple[Callable[[int, int], object], Callable[[], object]]:
    """How to show the progress, and what to call at the end: on a terminal and in a notebook."""
    notebook = "ipykernel" in sys.modules
    if not (notebook or (sys.stderr is not None and sys.stderr.isatty())):
        return _nothing, _nothing
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _plain_bar(name, unit)
    bar = tqdm(desc=name, unit=unit, unit_scale=True, unit_divisor=1000)

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return tell, bar.close


def _plain_bar(name: str, unit: str) -> tuple[Callable[[int, int], object], Callable[[], object]]:
    began = time.monotonic()
    shown = False

    def tell(done: int, total: int) -> None:
        nonlocal shown
        shown = True
        share = done / total if total else 1.0
        full = int(_WIDTH * share)
        seconds = time.monotonic() - began
        scale, size = (1e6, f"{total / 1e6:,.1f} MB") if unit == "B" else (1, f"{total:,} {unit}")
        speed = f", {done / seconds / scale:,.0f} {size.rpartition(' ')[2]}/s" if seconds > 0 else ""
        bar = "#" * full + "." * (_WIDTH - full)
        sys.stderr.write(f"\r{name} {bar} {share:4.0%} of {size}{speed} ")
        sys.stderr.flush()

    def close() -> None:
        if shown:
            sys.stderr.write("\n")
            sys.stderr.flush()

    return tell, close
