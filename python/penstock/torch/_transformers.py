"""transformers' `from_pretrained` with Penstock reading its `.safetensors`."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator

import penstock
from penstock._weights.engine_options import version_of
from penstock.torch.safetensors import load, safe_open


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
        before = module.safe_open
    except (ImportError, AttributeError) as error:
        raise penstock.UnsupportedError(
            f"transformers {version_of('transformers')} does not read by safe_open in modeling_utils ({error}); this "
            "was written for transformers 5.24; give from_pretrained state_dict=dict(penstock.torch.weights(path))"
        ) from error
    of_bytes = getattr(module, "_safe_load_bytes", None)
    module.safe_open = safe_open  # type: ignore[attr-defined]
    if of_bytes is not None:
        module._safe_load_bytes = load  # type: ignore[attr-defined]
    try:
        yield
    finally:
        module.safe_open = before  # type: ignore[attr-defined]
        if of_bytes is not None:
            module._safe_load_bytes = of_bytes  # type: ignore[attr-defined]
