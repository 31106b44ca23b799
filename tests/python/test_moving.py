"""penstock.to: nested values from one device to another."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import pytest

import penstock

needs_device = pytest.mark.skipif(not penstock.device.is_available(), reason="no device")
Pair = namedtuple("Pair", ["left", "right"])


def nested():
    shared = penstock.arange(0, 1000)
    return OrderedDict(
        layers=[{"weight": shared, "bias": penstock.ones(3)}, {"weight": shared}],
        pair=Pair(penstock.zeros(2), "text"),
        numbers=(1, 2.5, None),
        empty=[],
    )


def test_what_is_there_already_stays_itself():
    value = nested()
    moved = penstock.to(value, "cpu")
    assert moved is not value
    assert list(moved) == list(value)
    assert type(moved) is OrderedDict
    assert moved["layers"][0]["weight"] is value["layers"][0]["weight"]
    assert moved["pair"] == value["pair"]
    assert type(moved["pair"]) is Pair
    assert moved["numbers"] == (1, 2.5, None)
    assert penstock.to(3, "cpu") == 3


def test_copies_where_asked():
    value = nested()
    moved = penstock.to(value, "cpu", copy=True)
    weights = [layer["weight"] for layer in moved["layers"]]
    assert weights[0] is not value["layers"][0]["weight"]
    assert weights[0] is weights[1]
    assert weights[0].equal(value["layers"][0]["weight"])


def test_values_that_contain_themselves():
    value = {"t": penstock.ones(2)}
    value["self"] = value
    moved = penstock.to(value, "cpu")
    assert moved["self"] is moved
    assert moved["t"] is value["t"]


def test_bad_devices_are_refused():
    for device in ("cuda:77", "nowhere"):
        with pytest.raises((penstock.NoDeviceError, penstock.InvalidArgumentError)):
            penstock.to(nested(), device)


@needs_device
def test_there_and_back_in_one_batch():
    value = nested()
    with penstock.device.transfers() as transfers:
        there = penstock.to(value, "cuda:0")
    # The shared memory once, and small tensors in one block.
    assert transfers.stats()["host_to_device"]["bytes"] < 2 * 8000
    assert there["layers"][0]["weight"].device == "cuda:0"
    assert there["layers"][0]["weight"] is there["layers"][1]["weight"]
    assert there["pair"].right == "text"
    back = penstock.to(there, "cpu")
    for before, after in zip(value["layers"], back["layers"], strict=True):
        assert after["weight"].equal(before["weight"])
    assert back["pair"].left.equal(value["pair"].left)


@needs_device
def test_views_stay_views_of_one_memory():
    whole = penstock.arange(0, 100)
    there = penstock.to({"whole": whole, "part": whole[10:20]}, "cuda:0")
    assert penstock.to(there, "cpu")["part"].equal(whole[10:20])
    with penstock.device.transfers() as transfers:
        penstock.to([whole, whole[5:]], "cuda:0")
    assert transfers.stats()["host_to_device"]["bytes"] == whole.numel() * 8


def test_what_is_nested_too_deep_is_told():
    value = penstock.zeros(1)
    for _ in range(10_000):
        value = [value]
    with pytest.raises(penstock.LimitError, match="nested"):
        penstock.to(value, "cpu")
