"""Errors as users get them: of one kind, soon, with a path and without a secret."""

from __future__ import annotations

import contextlib
import time

import pytest
from azure_memory import KEY
from servers import SECRET_KEY

import penstock

TOKEN = "session/sEcReT+token=="
OTHER_SECRETS = ("hf_sEcReT", "pAsSwOrD", "sIgNaTuRe")


@contextlib.contextmanager
def within(seconds: float):
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds


def has_no_secret(error: BaseException) -> None:
    told = "".join(
        repr(each) + str(each) + str(vars(each)) for each in (error, error.__cause__, error.__context__) if each
    )
    for secret in (SECRET_KEY, TOKEN, KEY, *OTHER_SECRETS):
        assert secret not in told


@contextlib.contextmanager
def refused(kind, *words: str, seconds: float = 10):
    """Asserts an error of the kind whose text has the words, soon, with a path and without a secret."""
    with within(seconds), pytest.raises(penstock.Error) as failed:
        yield failed
    assert type(failed.value) is kind, failed.value
    for word in words:
        assert word in str(failed.value), failed.value
    assert failed.value.path
    has_no_secret(failed.value)
