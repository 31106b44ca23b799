"""transformers' from_pretrained with Penstock reading, for a tiny model with random weights."""

import sys
from pathlib import Path

import torch
import transformers.modeling_utils
from transformers import LlamaConfig, LlamaForCausalLM

import penstock.torch as pt


def tiny():
    torch.manual_seed(3)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=40, num_key_value_heads=2, **sizes))


def same(model, other):
    found, expected = model.state_dict(), other.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def inside(folder):
    """One file, and shards with an index."""
    opened = []

    class Counted(pt.safe_open):
        def __init__(self, filename, *args, **options):
            opened.append(Path(filename).name)
            super().__init__(filename, *args, **options)

    model = tiny()
    before = transformers.modeling_utils.safe_open
    for size in ("1GB", "8KB"):
        model.save_pretrained(f"{folder}/{size}", max_shard_size=size)
        with pt.transformers_loading():
            assert transformers.modeling_utils.safe_open is pt.safe_open
            transformers.modeling_utils.safe_open = Counted
            same(LlamaForCausalLM.from_pretrained(f"{folder}/{size}"), model)
        assert transformers.modeling_utils.safe_open is before
        assert set(opened) == {path.name for path in Path(folder, size).glob("*.safetensors")}
        opened.clear()
    assert len(list(Path(folder, "8KB").glob("*.safetensors"))) > 1
    try:
        with pt.transformers_loading():
            LlamaForCausalLM.from_pretrained(f"{folder}/nothing")
    except OSError:
        assert transformers.modeling_utils.safe_open is before


def given(folder):
    """By `state_dict=`, from any place and format."""
    model = tiny()
    model.save_pretrained(f"{folder}/model", max_shard_size="8KB")
    torch.save(model.state_dict(), f"{folder}/pytorch_model.bin")
    for place in ("model", "pytorch_model.bin"):
        state = dict(pt.weights(f"{folder}/{place}"))
        same(LlamaForCausalLM.from_pretrained(None, config=model.config, state_dict=state), model)


{"inside": inside, "given": given}[sys.argv[1]](sys.argv[2])
