"""Functions that are given a generator of their own for each call: `map(seeded=True)`.

The loader says which call it is (`here`): the generator follows from the epoch's seed and the sample's index, so
that neither threads nor a resume change what is drawn.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

import torch

here = threading.local()
"""`here.call` is (seed, index): the functions that this thread calls are those of sample `index` (of a batch: its first
one), in the epoch of `seed`. Without it, or None: no loader calls them."""


class Seeded:
    """`function`, which takes a torch.Generator too. `stage`: how many such functions came before it.

    Called by nobody's loader, it is given one that is seeded from torch's global generator.
    """

    def __init__(self, function: Callable[[Any, torch.Generator], Any], stage: int) -> None:
        self.function = function
        self.stage = stage

    def __call__(self, argument: Any) -> Any:
        generator = torch.Generator()
        call = getattr(here, "call", None)
        if call is None:
            generator.manual_seed(int(torch.empty((), dtype=torch.int64).random_().item()))
        else:
            digest = hashlib.blake2b(repr((*call, self.stage)).encode(), digest_size=8).digest()
            generator.manual_seed(int.from_bytes(digest, "little"))
        return self.function(argument, generator)

    def __repr__(self) -> str:
        return repr(self.function)
