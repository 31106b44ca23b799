"""A loader for SGLang: `sglang.Engine(model_path=MODEL, load_format=penstock.sglang.loader())`.

SGLang takes a class as its load format from programs; its command line knows fixed names alone. Options come as
`model_loader_extra_config` and are those of `penstock.vllm`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from penstock._weights.engine_options import changed_signature, checked_options, mismatch
from penstock.vllm import _device, _local, _paths

__all__ = ["loader"]

_WRITTEN_FOR = "as its main branch was in 2026"


def loader() -> Any:
    """The class to give as `load_format`. It is the same one in each process.

    Raises
    ------
    UnsupportedError
        Where SGLang is not installed, or its loaders have another form than the one this was written for; both versions
        are in it.
    """
    if "ModelLoader" not in globals():
        globals()["ModelLoader"] = _made()
    return globals()["ModelLoader"]


def __getattr__(name: str) -> Any:
    """The processes of the engine find the class by its name."""
    if name == "ModelLoader":
        return loader()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _made() -> type:
    try:
        base = importlib.import_module("sglang.srt.model_loader.loader").DefaultModelLoader
        what = _changed(base)
    except (ImportError, AttributeError) as error:
        raise mismatch("SGLang", "sglang", _WRITTEN_FOR, str(error)) from error
    if what is not None:
        raise mismatch("SGLang", "sglang", _WRITTEN_FOR, what)
    kind = _loader(base)
    kind.__name__ = kind.__qualname__ = "ModelLoader"
    return kind


def _changed(base: Any) -> str | None:
    expected = {
        "__init__": ("self", "load_config"),
        "download_model": ("self", "model_config"),
        "load_model": ("self", "model_config", "device_config"),
        "_get_all_weights": ("self", "model_config", "model"),
    }
    found = (changed_signature(getattr(base, name), parameters) for name, parameters in expected.items())
    return next((what for what in found if what is not None), None)


def _loader(base: Any) -> type:
    class ModelLoader(base):  # type: ignore[misc]
        """SGLang's own loader, which makes and finishes the model, with Penstock reading the weights."""

        def __init__(self, load_config: Any) -> None:
            extra = load_config.model_loader_extra_config
            self._options = checked_options(extra, getattr(load_config, "ignore_patterns", None))
            if getattr(load_config, "draft_model_idx", None) is not None:
                raise mismatch("SGLang", "sglang", _WRITTEN_FOR, "draft_model_idx is not done by this loader")
            load_config.model_loader_extra_config = {}  # its own loader has other options, and refuses these
            try:
                super().__init__(load_config)
            finally:
                load_config.model_loader_extra_config = extra

        def download_model(self, model_config: Any) -> None:
            """Brings a model of the Hub to this machine; others are read where they are."""
            for path in self._paths(model_config):
                _local(path, model_config.revision, self.load_config, self._options["ignore"])

        def _paths(self, model_config: Any) -> list[str]:
            told = self._options.get("weights") or getattr(model_config, "model_weights", None)
            return _paths({"weights": told or model_config.model_path}, model_config)

        def _get_all_weights(self, model_config: Any, model: Any) -> Iterator[tuple[str, Any]]:
            for path in self._paths(model_config):
                yield from self._of(path, model_config.revision, model)
            for source in getattr(model, "secondary_weights", ()):
                pairs = self._of(source.model_or_path, source.revision, model)
                yield from ((source.prefix + name, tensor) for name, tensor in pairs)

        def _of(self, path: str, revision: str | None, model: Any) -> Iterator[tuple[str, Any]]:
            from penstock.torch import weights

            options = {name: value for name, value in self._options.items() if name != "weights"}
            options["device"] = options.get("device") or _device(None, model)
            return weights(_local(path, revision, self.load_config, options["ignore"]), **options)

    ModelLoader.__module__ = __name__
    return ModelLoader
