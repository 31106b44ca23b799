"""vLLM and SGLang as far as a loader meets them, written from their sources of 2026: each is a package in a folder."""

from __future__ import annotations

from pathlib import Path

VLLM = """
from abc import ABC, abstractmethod
import torch

FORMATS = {}


def register_model_loader(load_format: str):
    def wrapper(kind):
        if not issubclass(kind, BaseModelLoader):
            raise ValueError("The model loader must be a subclass of `BaseModelLoader`.")
        FORMATS[load_format] = kind
        return kind
    return wrapper


def get_model_loader(load_config):
    return FORMATS[load_config.load_format](load_config)


class BaseModelLoader(ABC):
    def __init__(self, load_config):
        self.load_config = load_config

    @abstractmethod
    def download_model(self, model_config) -> None: ...

    @abstractmethod
    def load_weights(self, model, model_config) -> None: ...

    def load_model(self, vllm_config, model_config, prefix: str = ""):
        with torch.device("cpu"):
            model = vllm_config.make()
        self.load_weights(model, model_config)
        return model.eval()
"""

SGLANG = """
from abc import ABC, abstractmethod


class BaseModelLoader(ABC):
    def __init__(self, load_config):
        self.load_config = load_config

    @abstractmethod
    def download_model(self, model_config) -> None: ...

    @abstractmethod
    def load_model(self, *, model_config, device_config): ...


class DefaultModelLoader(BaseModelLoader):
    def __init__(self, load_config):
        super().__init__(load_config)
        unexpected = set(load_config.model_loader_extra_config) - {"enable_multithread_load", "num_threads"}
        if unexpected:
            raise ValueError(f"Unexpected extra config keys {unexpected}")

    def _get_all_weights(self, model_config, model):
        raise AssertionError("SGLang's own reading")

    def download_model(self, model_config) -> None:
        raise AssertionError("SGLang's own download")

    def load_model(self, *, model_config, device_config):
        model = device_config.make()
        self.load_weights_and_postprocess(model, self._get_all_weights(model_config, model), "cpu")
        return model.eval()

    @staticmethod
    def load_weights_and_postprocess(model, weights, target_device):
        model.load_weights(weights)


def get_model_loader(load_config, model_config=None):
    if isinstance(load_config.load_format, type):
        return load_config.load_format(load_config)
    raise AssertionError("a name")
"""

PLACES = {
    "vllm": ("vllm/model_executor/model_loader/__init__.py", VLLM),
    "sglang": ("sglang/srt/model_loader/loader.py", SGLANG),
}


def write_package(name: str, folder: Path, change: tuple[str, str] = ("", "")) -> None:
    """The engine as a package below a folder, with a version; `change` replaces a part of its source."""
    place, source = PLACES[name]
    path = folder / place
    path.parent.mkdir(parents=True)
    assert change[0] in source
    path.write_text(source.replace(*change) if change[0] else source)
    for above in path.parents:
        if above == folder:
            break
        (above / "__init__.py").touch()
    info = folder / f"{name}-9.8.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.8.7\n")
