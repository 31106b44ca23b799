"""stats().prometheus() is what Prometheus' own parser reads, with all numbers of the stats."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import penstock
from penstock._batches.stats import LoaderStats


@pytest.fixture(scope="module")
def stats():
    loader = penstock.DataLoader(penstock.rows(np.zeros((100, 3))), batch_size=10)
    for _ in loader:
        pass
    return loader.stats()


def parsed(text):
    families = list(text_string_to_metric_families(text))
    samples = {sample.name: sample for family in families for sample in family.samples}
    assert len(samples) == sum(len(family.samples) for family in families)
    return families, samples


def test_all_numbers_are_in_it(stats):
    families, samples = parsed(stats.prometheus())
    numbers = {name: value for name, value in stats.items() if isinstance(value, (int, float))}
    assert len(numbers) > 20
    for name, value in numbers.items():
        (found,) = [
            sample.value
            for key, sample in samples.items()
            if key in {f"penstock_loader_{name}{end}" for end in ("", "_total", "_seconds_total")}
        ]
        assert math.isclose(found, value), name
    assert samples["penstock_loader_batches_total"].value == 10
    assert samples["penstock_loader_bottleneck_info"].labels == {"bottleneck": stats["bottleneck"]}
    assert samples["penstock_loader_remote_limit_info"].labels == {"remote_limit": "nothing"}
    assert len(samples) == len(numbers) + 2
    for family in families:
        assert family.documentation
        assert family.type in {"counter", "gauge"}


def test_labels_and_prefix(stats):
    value = 'a "quoted" \\ one\nof two lines'
    _, samples = parsed(stats.prometheus("train", labels={"rank": 3, "job": value}))
    assert samples["train_batches_total"].labels == {"rank": "3", "job": value}
    assert pickle.loads(pickle.dumps(stats)).prometheus() == stats.prometheus()


@pytest.mark.parametrize("wrong", [{"prefix": "a-b"}, {"prefix": ""}, {"labels": {"a b": 1}}, {"labels": {"__x": 1}}])
def test_names_that_it_does_not_allow(stats, wrong):
    with pytest.raises(penstock.InvalidArgumentError, match="cannot"):
        stats.prometheus(**wrong)


def test_numbers_that_are_none():
    text = LoaderStats(
        {"read_seconds": float("inf"), "first_batch_seconds": float("nan"), "road": "native"}, ""
    ).prometheus()
    _, samples = parsed(text)
    assert samples["penstock_loader_read_seconds_total"].value == math.inf
    assert math.isnan(samples["penstock_loader_first_batch_seconds"].value)
    assert len(samples) == 2
