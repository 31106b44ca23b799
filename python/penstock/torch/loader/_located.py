"""Where an exception of the program's functions was raised: the sample or batch in its text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from penstock._batches.functions import named

_NOTE = "_penstock_indices"
_SAMPLE = "_penstock_sample"


def located_at(error: Exception, indices: Sequence[int], describe: Callable[[int], str]) -> Exception:
    """The error with what the function was called with in its text."""
    first = f"sample {indices[0]}: {describe(indices[0])}"
    return named(error, first if len(indices) == 1 else f"a batch of {len(indices)} samples that begins with {first}")


def noted(error: Exception, indices: Sequence[int]) -> None:
    """Notes in a worker process, which has no names of samples, what the function was called with."""
    with contextlib.suppress(AttributeError):  # it has a place for nothing: then its batch is named
        setattr(error, _NOTE, list(indices))


def of_sample(error: Exception, index: int, raised: Exception) -> None:
    """Notes whose function raised it, for `on_error`. `raised`: as that did, which is the cause of one with another
    text."""
    with contextlib.suppress(AttributeError):
        setattr(error, _SAMPLE, (index, raised is not error))


def sample_of(error: Exception) -> int | None:
    """The sample whose function raised it; None where that was no function of samples."""
    return getattr(error, _SAMPLE, (None,))[0]


def as_raised(error: Exception) -> BaseException:
    """What the function of that sample raised, without the sample in its text."""
    is_renamed = getattr(error, _SAMPLE, (None, False))[1]
    return error.__cause__ if is_renamed and error.__cause__ is not None else error


def raised_there(error: BaseException, describe: Callable[[int], str]) -> BaseException:
    """An exception from a worker process as one that was raised here. C++ may have named its batch already."""
    for own in (error, error.__cause__):
        indices = getattr(own, _NOTE, None)
        if isinstance(own, Exception) and indices:
            delattr(own, _NOTE)
            return _raised_of(own, indices, describe)
    return error


def _raised_of(error: Exception, indices: Sequence[int], describe: Callable[[int], str]) -> Exception:
    other = located_at(error, indices, describe)
    if other is not error:
        other.__cause__ = error
    return other
