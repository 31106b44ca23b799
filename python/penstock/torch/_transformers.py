"""transformers' `from_pretrained` with Penstock reading its `.safetensors`."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import penstock
from penstock._weights.engine_options import version_of
from penstock.torch.safetensors import load, safe_open

_OURS = {"safe_open": safe_open, "_safe_load_bytes": load}


@contextlib.contextmanager
def transformers_loading() -> Iterator[None]:
    """Within its block, `from_pretrained` of transformers reads `.safetensors` by Penstock.

        with penstock.torch.transformers_loading():
            model = AutoModel.from_pretrained("folder")

    The names `safe_open` and `load` that transformers took from safetensors are Penstock's in the
    block, for all threads of the process, and what they were after it. `.bin` files are torch's to
    read; `state_dict=` takes those.

    Raises
    ------
    UnsupportedError
        Where transformers is not installed, or does not read by these names.
    """
    try:
        module = importlib.import_module("transformers.modeling_utils")
        module.safe_open  # noqa: B018 - whether it is there
    except (ImportError, AttributeError) as error:
        raise penstock.UnsupportedError(
            f"transformers {version_of('transformers')} does not read by safe_open in modeling_utils ({error}); this "
            "was written for transformers 5.24; give from_pretrained state_dict=dict(penstock.torch.weights(path))"
        ) from error
    names = vars(module)
    # Blocks of several threads may overlap: each that is open has what the names were before the first of them.
    blocks: list[dict[str, Any]] = names.setdefault("_penstock_blocks", [])
    before = blocks[0] if blocks else {name: names[name] for name in _OURS if name in names}
    blocks.append(before)
    names.update({name: _OURS[name] for name in before})
    try:
        yield
    finally:
        if len(blocks) == 1:
            names.update(before)
        blocks.pop()
