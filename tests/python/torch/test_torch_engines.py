"""The loaders for vLLM and SGLang, in stand-ins for these engines: the packages themselves need a GPU to be of use."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch
from engine_stand_ins import write_package

import penstock
import penstock.sglang
import penstock.torch as pt
import penstock.vllm


class Model(torch.nn.Module):
    """Takes weights as models of engines do: one by one, by name, some as they are and some copied."""

    def __init__(self, **more):
        super().__init__()
        self.first = torch.nn.Linear(3, 4, bias=False)
        self.second = torch.nn.Linear(4, 2)
        self.order = []
        vars(self).update(more)

    def load_weights(self, weights):
        mine = dict(self.named_parameters())
        for name, tensor in weights:
            self.order.append(name)
            if name == "first.weight":
                mine[name].data = tensor  # kept
            else:
                with torch.no_grad():
                    mine[name].copy_(tensor)
        return set(self.order)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A function that puts an engine's stand-in where imports find it and gives its module of loaders."""

    def make(name, change=("", "")):
        write_package(name, tmp_path / "site", change)
        monkeypatch.syspath_prepend(tmp_path / "site")
        importlib.invalidate_caches()
        vars(penstock.sglang).pop("ModelLoader", None)
        return importlib.import_module(
            {"vllm": "vllm.model_executor.model_loader", "sglang": "sglang.srt.model_loader.loader"}[name]
        )

    yield make
    vars(penstock.sglang).pop("ModelLoader", None)
    for module in [name for name in sys.modules if name.partition(".")[0] in ("vllm", "sglang")]:
        del sys.modules[module]


@pytest.fixture
def model_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    state = {name: torch.randn(value.shape) for name, value in Model().state_dict().items()}
    names = list(state)
    files = {"model-00001-of-00002.safetensors": names[:1], "model-00002-of-00002.safetensors": names[1:]}
    for file, part in files.items():
        pt.save_file({name: state[name] for name in part}, folder / file)
    index = {"weight_map": {name: file for file, part in files.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    pt.save_file({"lora": torch.ones(1)}, folder / "adapter_model.safetensors")
    return folder, state


def load_config(**options):
    given = {"load_format": "penstock", "download_dir": None, "ignore_patterns": ["original/**/*"], "device": None}
    return SimpleNamespace(**{**given, "model_loader_extra_config": {}, **options})


def model_config(path, **options):
    given = {"model": str(path), "model_path": str(path), "revision": None, "quantization": None}
    return SimpleNamespace(**{**given, **options})


def same(model, state):
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def loaded_by_vllm(loaders, path, config=None, model=Model, **options):
    penstock.vllm.register()
    loader = loaders.get_model_loader(config or load_config())
    loader.download_model(model_config(path))
    return loader.load_model(SimpleNamespace(make=model), model_config(path, **options))


def test_vllm_fills_a_model_in_file_order(engine, model_folder):
    folder, state = model_folder
    model = loaded_by_vllm(engine("vllm"), folder)
    same(model, state)
    assert model.order[0] == "first.weight"
    assert len(model.order) == len(state)
    assert model.first.weight.untyped_storage().nbytes() == model.first.weight.nbytes


def test_vllms_options_reach_the_reading(engine, model_folder):
    folder, state = model_folder
    extra = {
        "ring_bytes": 1,
        "threads": 1,
        "mmap": False,
        "weights": str(folder),
        "exclude": ["second.bias"],
        "ranks": "auto",
    }
    model = loaded_by_vllm(
        engine("vllm"), "configuration", load_config(model_loader_extra_config=extra), quantization="x"
    )
    assert set(model.order) == {"first.weight", "second.weight"}
    assert torch.equal(model.second.weight, state["second.weight"])


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"ring_byte": 1}, r"ring_byte, which load format penstock does not know; its options are device, .*threads"),
        ({"include": [3]}, "include"),
        ([1], "a dict"),
    ],
)
def test_options_that_are_none_are_refused(extra, text, engine):
    loaders = engine("vllm")
    penstock.vllm.register()
    with pytest.raises(penstock.InvalidArgumentError, match=text):
        loaders.get_model_loader(load_config(model_loader_extra_config=extra))


def test_vllm_is_told_of_a_missing_shard_and_of_missing_parameters(engine, model_folder):
    folder, _ = model_folder
    loaders = engine("vllm")
    config = load_config(model_loader_extra_config={"exclude": ["second.*"]})
    with pytest.raises(ValueError, match=r"2 parameters are in no file of the model: second.bias, second.weight"):
        loaded_by_vllm(loaders, folder, config)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(penstock.NotFoundError, match="model-00002-of-00002"):
        loaded_by_vllm(loaders, folder)


def test_vllms_secondary_weights_and_unused_ones(engine, model_folder, tmp_path):
    folder, state = model_folder
    more = tmp_path / "more" / "sub"
    more.mkdir(parents=True)
    torch.save({"weight": state["second.weight"], "bias": state["second.bias"]}, more / "pytorch_model.bin")
    source = SimpleNamespace(
        model_or_path=str(tmp_path / "more"), revision=None, subfolder="sub", prefix="second.", fall_back_to_pt=True
    )
    source.allow_patterns_overrides = source.is_unused_weight = None

    def make():
        return Model(secondary_weights=[source], is_unused_checkpoint_weight=lambda name: name.startswith("second"))

    model = loaded_by_vllm(engine("vllm"), folder, model=make)
    same(model, state)
    assert sorted(model.order) == sorted(state)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("def load_weights(self, model, model_config)", "def load_weights(self, model, plan)"), "load_weights takes"),
        (("def download_model(", "def fetch_model("), "has no download_model"),
        (
            (
                "    @abstractmethod\n    def load_weights",
                "    @abstractmethod\n    def unload(self): ...\n\n    @abstractmethod\n    def load_weights",
            ),
            "wants unload too",
        ),
    ],
)
def test_a_changed_vllm_is_told_with_both_versions(change, what, engine):
    loaders = engine("vllm", change)
    with pytest.warns(RuntimeWarning, match=rf"vLLM 9.8.7 is installed: BaseModelLoader.*{what}"):
        penstock.vllm.register()
    with pytest.raises(penstock.UnsupportedError, match=rf"Penstock {penstock.__version__} .*vLLM 9.8.7"):
        loaders.get_model_loader(load_config())


def test_a_vllm_without_a_register_is_told(engine):
    engine("vllm", ("def register_model_loader", "def add_model_loader"))
    with pytest.warns(RuntimeWarning, match="register_model_loader"):
        penstock.vllm.register()


def test_optional_parameters_that_were_added_are_no_change(engine, model_folder):
    folder, state = model_folder
    loaders = engine(
        "vllm",
        ("def load_weights(self, model, model_config)", "def load_weights(self, model, model_config, *, plan=None)"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(loaded_by_vllm(loaders, folder), state)


def loaded_by_sglang(loaders, path, **options):
    config = load_config(load_format=penstock.sglang.loader(), **options)
    loader = loaders.get_model_loader(config)
    loader.download_model(model_config(path))
    return loader.load_model(model_config=model_config(path), device_config=SimpleNamespace(make=Model))


def test_sglang_fills_a_model(engine, model_folder):
    folder, state = model_folder
    loaders = engine("sglang")
    same(loaded_by_sglang(loaders, folder), state)
    same(loaded_by_sglang(loaders, "elsewhere", model_loader_extra_config={"weights": str(folder)}), state)


def test_sglangs_processes_find_the_class_by_its_name(engine):
    engine("sglang")
    kind = penstock.sglang.loader()
    written = pickle.dumps(kind)
    assert pickle.loads(written) is kind
    del penstock.sglang.ModelLoader
    assert pickle.loads(written) is penstock.sglang.loader()


def test_sglangs_options_are_checked(engine):
    loaders = engine("sglang")
    with pytest.raises(penstock.InvalidArgumentError, match="num_threads"):
        loaded_by_sglang(loaders, "x", model_loader_extra_config={"num_threads": 2})
    with pytest.raises(penstock.UnsupportedError, match="draft_model_idx"):
        loaded_by_sglang(loaders, "x", draft_model_idx=0)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("def _get_all_weights(self, model_config, model)", "def _get_all_weights(self, source)"), "_get_all_weights"),
        (("def _get_all_weights", "def all_weights"), "_get_all_weights"),
        (("class DefaultModelLoader", "class OtherLoader"), "DefaultModelLoader"),
    ],
)
def test_a_changed_sglang_is_told_with_both_versions(change, what, engine):
    engine("sglang", change)
    with pytest.raises(penstock.UnsupportedError, match=rf"SGLang 9.8.7 is installed: .*{what}"):
        penstock.sglang.loader()


def test_without_the_engines_it_is_said():
    with pytest.raises(penstock.UnsupportedError, match="SGLang of an unknown version"):
        penstock.sglang.loader()
    with pytest.warns(RuntimeWarning, match="vLLM of an unknown version"):
        penstock.vllm.register()


def test_a_model_of_the_hub_is_brought_by_the_hubs_client(engine, model_folder, tmp_path, monkeypatch):
    _, state = model_folder
    asked = []
    folder = tmp_path / "snapshot"
    folder.mkdir()

    def snapshot_download(name, *, revision, cache_dir, allow_patterns, ignore_patterns):
        asked.append((name, revision, cache_dir, allow_patterns[0], ignore_patterns))
        if allow_patterns[0] == "*.bin":
            torch.save(state, folder / "pytorch_model.bin")
        return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    config = load_config(download_dir="cache", ignore_patterns="original/*")
    same(loaded_by_vllm(engine("vllm"), "owner/name", config), state)
    assert asked[:2] == [
        ("owner/name", None, "cache", pattern, ["original/*"]) for pattern in ("*.safetensors", "*.bin")
    ]


def test_blocks_of_transformers_loading_may_overlap(monkeypatch):
    """As those of two threads do."""
    own = object()
    module = SimpleNamespace(safe_open=own)
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(modeling_utils=module))
    monkeypatch.setitem(sys.modules, "transformers.modeling_utils", module)
    first, second = pt.transformers_loading(), pt.transformers_loading()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert module.safe_open is pt.safe_open
    second.__exit__(None, None, None)
    assert module.safe_open is own
