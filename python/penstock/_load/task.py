"""What `load_async` and `save_async` give."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any


class Task(Future[Any]):
    """A future of the standard library, for threads that wait and, by `await`, for coroutines."""

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()
