"""The load format "penstock" of vLLM: `vllm serve MODEL --load-format penstock`.

vLLM finds `register` by the entry point `vllm.general_plugins` of this distribution and calls it in each of its
processes; nothing has to be imported. Options come by `--model-loader-extra-config`, as JSON, and are the arguments of
`penstock.torch.weights`: `ring_bytes`, `threads`, `device`, `include`, `exclude`, `ignore`, `key`, `mmap`, `ranks`
("auto"); and `weights`, a path or URL of the weights where they do not lie beside the model's configuration.
"""

from __future__ import annotations

import fnmatch
import importlib
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock._weights.engine_options import changed_signature, checked_options, mismatch

__all__ = ["register"]

_WRITTEN_FOR = "as its main branch was in November 2026"


def register() -> None:
    """Makes "penstock" a load format of vLLM. It may be called again.

    Where vLLM's loaders have another form than the one this was written for, a RuntimeWarning says so with both
    versions, and choosing the format raises the same; vLLM's other formats are not touched.
    """
    try:
        loaders = importlib.import_module("vllm.model_executor.model_loader")
        add = loaders.register_model_loader
        base = loaders.BaseModelLoader
    except (ImportError, AttributeError) as error:
        warnings.warn(str(mismatch("vLLM", "vllm", _WRITTEN_FOR, str(error))), RuntimeWarning, stacklevel=2)
        return
    what = _changed(base)
    if what is not None:
        warnings.warn(str(mismatch("vLLM", "vllm", _WRITTEN_FOR, what)), RuntimeWarning, stacklevel=2)
    add("penstock")(_refusing(base, what) if what is not None else _loader(base))


def _changed(base: type) -> str | None:
    expected = {
        "__init__": ("self", "load_config"),
        "download_model": ("self", "model_config"),
        "load_weights": ("self", "model", "model_config"),
    }
    for name, parameters in expected.items():
        method = getattr(base, name, None)
        found = f"{base.__name__} has no {name}" if method is None else changed_signature(method, parameters)
        if found is not None:
            return found
    known = {*expected, "load_model"}
    more = sorted(getattr(base, "__abstractmethods__", frozenset()) - known)
    return f"{base.__name__} wants {', '.join(more)} too" if more else None


def _refusing(base: Any, what: str) -> Any:
    def refuse(self: Any, load_config: Any) -> None:
        raise mismatch("vLLM", "vllm", _WRITTEN_FOR, what)

    kind: Any = type("PenstockModelLoader", (base,), {"__init__": refuse})
    kind.__abstractmethods__ = frozenset()  # so that the constructor is what refuses
    return kind


def _loader(base: Any) -> type:
    class PenstockModelLoader(base):  # type: ignore[misc]
        """Reads a model's weights by Penstock and hands them to the model, which takes what it needs of each."""

        def __init__(self, load_config: Any) -> None:
            super().__init__(load_config)
            extra = load_config.model_loader_extra_config
            self._options = checked_options(extra, getattr(load_config, "ignore_patterns", None))

        def download_model(self, model_config: Any) -> None:
            """Brings a model of the Hub to this machine; others are read where they are."""
            for path in _paths(self._options, model_config):
                _local(path, model_config.revision, self.load_config, self._options["ignore"])

        def load_weights(self, model: Any, model_config: Any) -> None:
            """Fills a model. ValueError names parameters that no file has."""
            loaded = model.load_weights(self._weights(model, model_config))
            if loaded is not None and getattr(model_config, "quantization", None) is None:
                _require_all(model, loaded)

        def _weights(self, model: Any, model_config: Any) -> Iterator[tuple[str, Any]]:
            for source in _sources(self._options, model, model_config):
                yield from self._of(source, model)

        def _of(self, source: _Source, model: Any) -> Iterator[tuple[str, Any]]:
            from penstock.torch import weights

            options = {name: value for name, value in self._options.items() if name != "weights"}
            options["device"] = options.get("device") or _device(self.load_config, model)
            if source.unused is not None:
                options["exclude"] = _either(options.get("exclude", ()), source.unused)
            path = _local(
                source.path, source.revision, self.load_config, options["ignore"], source.files, source.folder
            )
            for name, tensor in weights(path, files=source.files, **options):
                yield source.prefix + name, tensor

    return PenstockModelLoader


@dataclass(frozen=True)
class _Source:
    """Weights of a model that lie in one place, as vLLM's models describe them."""

    path: str
    revision: str | None
    files: Sequence[str]
    unused: Callable[[str], bool] | None = None
    folder: str | None = None
    prefix: str = ""


def _sources(options: dict[str, Any], model: Any, model_config: Any) -> Iterator[_Source]:
    files = _patterns(model, getattr(model, "fall_back_to_pt_during_load", True))
    unused = getattr(model, "is_unused_checkpoint_weight", None)
    for path in _paths(options, model_config):
        yield _Source(path, model_config.revision, files, unused)
    for more in getattr(model, "secondary_weights", ()):
        files = _patterns(more, more.fall_back_to_pt)
        unused = getattr(more, "is_unused_weight", None)
        folder = getattr(more, "subfolder", None)
        yield _Source(more.model_or_path, more.revision, files, unused, folder, more.prefix)


def _patterns(of: Any, with_pt: bool) -> list[str]:
    own = getattr(of, "allow_patterns_overrides", None)
    return list(own or ("*.safetensors", "*.bin", *(("*.pt",) if with_pt else ())))


def _paths(options: dict[str, Any], model_config: Any) -> list[str]:
    """Where the weights are: as told, or where vLLM left them when it fetched the configuration of a bucket's model."""
    told = options.get("weights") or getattr(model_config, "model_weights", None) or model_config.model
    return [os.fspath(told)] if isinstance(told, (str, os.PathLike)) else [os.fspath(path) for path in told]


def _local(
    path: str,
    revision: str | None,
    load_config: Any,
    ignore: Sequence[str],
    files: Sequence[str] = ("*.safetensors", "*.bin", "*.pt"),
    below: str | None = None,
) -> str:
    """A path or URL as it is; of the name of a repository on the Hub the folder that its own client brings it to."""
    end = f"/{below}" if below else ""
    if re.match(r"[a-z0-9]+://", path) or os.path.exists(path):
        return path + end
    from huggingface_hub import snapshot_download

    folder = path
    for pattern in files:
        folder = snapshot_download(
            path,
            revision=revision,
            cache_dir=getattr(load_config, "download_dir", None),
            allow_patterns=[f"{below}/{pattern}*" if below else pattern, f"{pattern}.index.json"],
            ignore_patterns=list(ignore) or None,
        )
        if os.path.isdir(folder + end) and fnmatch.filter(os.listdir(folder + end), pattern):
            break
    return folder + end


def _device(load_config: Any, model: Any) -> str:
    """Where the engine wants tensors, else where the model's parameters are; those without memory are filled from the
    host."""
    wanted = getattr(load_config, "device", None)
    if wanted:
        return str(wanted)
    for parameter in model.parameters():
        if parameter.device.type != "meta":
            return str(parameter.device) if parameter.device.type == "cuda" else "cpu"
    return "cpu"


def _either(patterns: Any, unused: Any) -> Any:
    return lambda name: unused(name) or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _require_all(model: Any, loaded: set[str]) -> None:
    """Scales that a quantizing layer makes itself are in no file."""
    made: set[str] = set()
    for name, module in model.named_modules():
        method = getattr(module, "quant_method", None)
        if method is not None and hasattr(method, "process_weights_after_loading"):
            made.update(f"{name}.{each}" if name else each for each, _ in module.named_parameters())
    missing = sorted({name for name, _ in model.named_parameters()} - set(loaded) - made)
    if missing:
        shown = ", ".join(missing[:20])
        raise ValueError(f"{len(missing)} parameters are in no file of the model: {shown}; is it the right model?")
