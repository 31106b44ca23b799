"""Second requests for late answers: the right values come from whichever answers first, few are made, and an answer for
another version is never taken."""

from __future__ import annotations

import numpy as np
import pytest
from azure_memory import ACCOUNT, KEY
from contents import npy_of, numbers
from fault_proxy import Fault

import penstock

COUNT = 60
SAMPLES = [numbers(3000, seed=number) for number in range(COUNT)]


@pytest.fixture(params=["http", "az"])
def base(request, proxy, settings):
    """Small objects behind a server that has answered often enough to be known. No request fails before 20 seconds."""
    proxy.origin.objects |= {f"/c/{number}.npy": npy_of(sample) for number, sample in enumerate(SAMPLES)}
    settings(PENSTOCK_REMOTE_TIMEOUT=20, PENSTOCK_REMOTE_RETRY_SECONDS=40, PENSTOCK_REMOTE_HEDGES=0.05)
    settings(AZURE_STORAGE_BLOB_ENDPOINT=proxy.url, AZURE_STORAGE_ACCOUNT=ACCOUNT, AZURE_STORAGE_KEY=KEY)
    place = "az://c" if request.param == "az" else f"{proxy.url}/c"
    know(place)
    return place


def know(base: str) -> None:
    for number in range(COUNT):
        penstock.load(f"{base}/{number}.npy")


def load(url: str) -> dict:
    report: dict = {}
    report["value"] = np.asarray(penstock.load(url, report=report))
    return report


@pytest.mark.parametrize("fault", [{"hang": True}, {"delay": 10}], ids=["hangs", "is late"])
def test_a_late_answer_is_not_waited_for(base, proxy, fault):
    proxy.faults.append(Fault(**fault, times=1))
    asked = len(proxy.requests)
    report = load(f"{base}/7.npy")
    assert np.array_equal(report["value"], SAMPLES[7])
    assert report["remote_hedges"] == 1
    assert report["remote_retries"] == 0
    assert report["remote_requests"] == 2
    assert len(proxy.requests) == asked + 2


def test_late_ranges_of_a_large_object(base, proxy):
    large = numbers(12000, 64)
    proxy.origin.objects["/c/large.npy"] = npy_of(large)
    proxy.faults.append(Fault(hang=True, times=1, after=1, target="large"))
    report = load(f"{base}/large.npy")
    assert np.array_equal(report["value"], large)
    assert report["remote_hedges"] >= 1
    assert report["remote_retries"] == 0


def test_a_batch_with_late_samples(base, proxy):
    proxy.faults.append(Fault(hang=True, times=1, target="/11.npy"))
    proxy.faults.append(Fault(hang=True, times=1, target="/12.npy"))
    dataset = penstock.files([f"{base}/{number}.npy" for number in range(COUNT)])
    loader = penstock.DataLoader(dataset, batch_size=20)
    assert np.array_equal(np.concatenate([np.asarray(batch) for batch in loader]), np.stack(SAMPLES))
    # On a busy machine others are late too.
    assert loader.stats()["remote_hedges"] >= 2
    assert loader.stats()["remote_retries"] == 0


def test_none_is_made_where_they_are_switched_off(base, proxy, settings):
    settings(PENSTOCK_REMOTE_HEDGES=0, PENSTOCK_REMOTE_TIMEOUT=0.5)
    proxy.faults.append(Fault(hang=True, times=1))
    report = load(f"{base}/7.npy")
    assert np.array_equal(report["value"], SAMPLES[7])
    assert report["remote_hedges"] == 0
    assert report["remote_retries"] == 1


def test_a_slow_store_gets_few_more_requests(base, proxy):
    proxy.faults.append(Fault(delay=0.4))
    asked = len(proxy.requests)
    dataset = penstock.files([f"{base}/{number}.npy" for number in range(COUNT)])
    loader = penstock.DataLoader(dataset, batch_size=4, num_workers=2)
    for _ in loader:
        pass
    hedges = loader.stats()["remote_hedges"]
    # A second request that is dropped right away, because the first was answered, may never have been sent.
    assert COUNT <= len(proxy.requests) - asked <= COUNT + hedges
    # Ten may have been saved up, and then it is a share of these answers.
    assert hedges <= 10 + 0.05 * COUNT + 1


@pytest.mark.parametrize(
    "second",
    [Fault(status=503), Fault(reset=True), Fault(cut=100), Fault(status=404)],
    ids=["503", "reset", "cut", "404"],
)
def test_a_second_request_that_fails_leaves_the_first(base, proxy, second):
    second.after, second.times = 0, 1
    proxy.faults += [Fault(delay=1.5, times=1), second]
    report = load(f"{base}/7.npy")
    assert np.array_equal(report["value"], SAMPLES[7])
    assert report["remote_hedges"] == 1


def test_a_first_request_that_fails_late_leaves_the_second(base, proxy):
    proxy.faults += [Fault(delay=0.5, reset=True, times=1), Fault(delay=1, times=1)]
    report = load(f"{base}/7.npy")
    assert np.array_equal(report["value"], SAMPLES[7])
    assert report["remote_hedges"] == 1
    assert report["remote_retries"] == 0


def test_a_range_that_both_are_refused_is_asked_for_whole(proxy, settings):
    settings(PENSTOCK_REMOTE_TIMEOUT=20, PENSTOCK_REMOTE_RETRY_SECONDS=40, PENSTOCK_REMOTE_HEDGES=0.05)
    proxy.origin.objects |= {f"/c/{number}.npy": npy_of(sample) for number, sample in enumerate(SAMPLES)}
    know(f"{proxy.url}/c")
    proxy.faults.append(Fault(status=416, ranged=True, delay=0.3))
    report = load(f"{proxy.url}/c/7.npy")
    assert np.array_equal(report["value"], SAMPLES[7])
    assert report["remote_hedges"] == 1


def test_the_second_answer_must_be_of_the_same_version(base, proxy):
    large = numbers(12000, 64)
    proxy.origin.objects["/c/large.npy"] = npy_of(large)
    archive = penstock.open(f"{base}/large.npy")
    proxy.origin.objects["/c/large.npy"] = npy_of(large + 1)
    proxy.faults.append(Fault(hang=True, times=1, target="large"))
    with pytest.raises(penstock.ChangedError):
        archive.load()


def test_what_is_written_is_sent_once(proxy, settings):
    settings(AWS_ENDPOINT_URL=proxy.url, AWS_ACCESS_KEY_ID="A", AWS_SECRET_ACCESS_KEY="S", PENSTOCK_REMOTE_HEDGES=0.05)
    proxy.origin.objects |= {f"/bucket/{number}.npy": npy_of(sample) for number, sample in enumerate(SAMPLES)}
    for number in range(COUNT):
        penstock.load(f"s3://bucket/{number}.npy")
    proxy.faults.append(Fault(delay=1, methods=("PUT",)))
    puts = len([request for request in proxy.requests if request.method == "PUT"])
    with pytest.raises(penstock.Error):  # this server takes no objects
        penstock.save(SAMPLES[0], "s3://bucket/new.npy")
    assert len([request for request in proxy.requests if request.method == "PUT"]) <= puts + 1


def test_a_share_that_is_none(settings, base):
    settings(PENSTOCK_REMOTE_HEDGES="many")
    with pytest.raises(penstock.InvalidArgumentError, match="PENSTOCK_REMOTE_HEDGES"):
        penstock.load(f"{base}/1.npy")
