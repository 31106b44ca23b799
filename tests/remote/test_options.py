"""Options of one location, as values: they go before the environment, for it and for what lies beside it."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from contents import npy_of, numbers
from fault_proxy import Fault

import penstock
from penstock.remote import CacheOptions, RemoteOptions

ARRAY = numbers(40_000)


@pytest.fixture
def url(proxy, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=40)
    proxy.origin.objects["/a.npy"] = npy_of(ARRAY)
    return f"{proxy.url}/a.npy"


def test_no_try_is_made_again(url, proxy):
    source = penstock.remote.open(url, RemoteOptions(retry_seconds=0))
    assert np.array_equal(penstock.load(source), ARRAY)
    proxy.faults.append(Fault(status=503))
    with pytest.raises(penstock.InputOutputError, match="given up after 1 try"):
        penstock.remote.open(url, RemoteOptions(retry_seconds=0))


def test_a_cache_of_its_own(url, proxy, tmp_path):
    options = RemoteOptions(cache=CacheOptions(tmp_path / "cache", trust_seconds=600))
    assert np.array_equal(penstock.load(penstock.remote.open(url, options)), ARRAY)
    asked = len(proxy.requests)
    assert np.array_equal(penstock.load(penstock.remote.open(url, options)), ARRAY)
    assert len(proxy.requests) == asked
    assert np.array_equal(penstock.load(url), ARRAY)
    assert len(proxy.requests) > asked


def test_a_token_and_files_beside_it(proxy):
    tensors = {"a": numbers(100), "b": numbers(200)}
    for name, tensor in tensors.items():
        proxy.origin.objects[f"/{name}.safetensors"] = saved({name: tensor})
    index = {"metadata": {}, "weight_map": {name: f"{name}.safetensors" for name in tensors}}
    proxy.origin.objects["/m.safetensors.index.json"] = json.dumps(index).encode()
    source = penstock.remote.open(f"{proxy.url}/m.safetensors.index.json", RemoteOptions(token="hush"))
    loaded = penstock.load(source)
    assert all(np.array_equal(loaded[name], tensor) for name, tensor in tensors.items())
    assert {request.headers.get("authorization") for request in proxy.requests} == {"Bearer hush"}


def saved(tensors):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        penstock.save(tensors, f"{folder}/x.safetensors")
        with open(f"{folder}/x.safetensors", "rb") as file:
            return file.read()


def test_datasets_and_pickles(url, proxy):
    options = RemoteOptions(token="hush", requests=1, hedges=0)
    dataset = penstock.files([url, url], source=lambda at: penstock.remote.open(at, options))
    with penstock.DataLoader(dataset, batch_size=2) as loader:
        assert np.array_equal(next(iter(loader))[1], ARRAY)
    copy = pickle.loads(pickle.dumps(penstock.remote.open(url, options)))
    assert np.array_equal(penstock.load(copy), ARRAY)
    assert {request.headers.get("authorization") for request in proxy.requests} == {"Bearer hush"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RemoteOptions(timeout="5"), "timeout='5', expected a number"),
        (RemoteOptions(requests=1.5), "requests=1.5, expected a whole number"),
        (RemoteOptions(requests=-1), "-1"),
        (RemoteOptions(endpoint=5), "endpoint as an object of type int, expected a text"),
        (RemoteOptions(token=b"secret"), "token as an object of type bytes, expected a text"),
        (RemoteOptions(anonymous="no"), "anonymous='no', expected True or False"),
        (RemoteOptions(cache=CacheOptions(max_bytes=-1)), "max_bytes=-1, expected 0 or more"),
        (RemoteOptions(cache={"folder": "x"}), "cache of type dict, expected CacheOptions"),
        ({"timeout": 5}, "options of type dict, expected RemoteOptions"),
    ],
    ids=repr,
)
def test_an_option_that_cannot_be_is_named(options, said):
    with pytest.raises(penstock.Error, match=said) as caught:
        penstock.remote.open("http://127.0.0.1:1/x.npy", options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("half", [RemoteOptions(access_key_id="A"), RemoteOptions(secret_access_key="hush")], ids=repr)
def test_half_of_the_keys_is_not_filled_up_from_the_environment(half, proxy, settings):
    settings(AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="hush", AWS_ENDPOINT_URL=proxy.url)
    with pytest.raises(penstock.PermissionDeniedError, match="AWS_SECRET_ACCESS_KEY is set and the other is not"):
        penstock.remote.open("s3://bucket/a.npy", half)
    assert not proxy.requests


def test_what_they_show():
    options = RemoteOptions(timeout=5, token="hush", cache=CacheOptions("c"))
    assert "hush" not in repr(options) + repr(RemoteOptions(endpoint="http://user:hush@h/?sig=hush"))
    assert repr(options).startswith("RemoteOptions(cache=CacheOptions(folder='c', ")
    assert options == RemoteOptions(timeout=5, token="hush", cache=CacheOptions("c"))
    assert options != RemoteOptions(timeout=6, token="hush", cache=CacheOptions("c"))
    assert hash(options) == hash(pickle.loads(pickle.dumps(options)))
    with pytest.raises(penstock.InvalidArgumentError, match=r"the option in place of the setting .*TIMEOUT"):
        penstock.remote.open("x.npy", RemoteOptions(timeout=0))


def test_archives_do_not_lose_them(url, proxy):
    archive = penstock.open(penstock.remote.open(url, RemoteOptions(token="hush")))
    for one in (archive, archive.structure):
        with pytest.raises(penstock.UnsupportedError, match="options of its own"):
            pickle.dumps(one)
    assert np.array_equal(pickle.loads(pickle.dumps(penstock.open(url))).load(), ARRAY)


def test_sources_are_pickled_as_they_were_opened(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", ARRAY)
    monkeypatch.chdir(tmp_path)
    options = RemoteOptions(timeout=5, cache=CacheOptions(None))
    source = penstock.remote.open("x.npy", options)
    options.timeout = options.cache.max_bytes = 7
    monkeypatch.chdir("/")
    assert np.array_equal(penstock.load(pickle.loads(pickle.dumps(source))), ARRAY)
    _, (_, kept) = source.__reduce__()
    assert (kept.timeout, kept.cache.max_bytes) == (5, CacheOptions().max_bytes)
