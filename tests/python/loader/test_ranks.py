"""penstock.ranks(), and loaders that are given ranks."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import penstock

sys.path.insert(0, str(Path(__file__).parents[1]))
from ranks_support import World, flat, values_of, without_launchers


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch):
    without_launchers(monkeypatch)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


def told(monkeypatch, **variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))


def torch_says(monkeypatch, rank, size, *, initialized=True):
    fake = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: initialized,
        get_rank=lambda: rank,
        get_world_size=lambda: size,
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", fake)


def test_they_are_found_where_a_launcher_said_it(monkeypatch):
    found = penstock.ranks()
    assert (found.rank, found.size, found.local_rank, found.local_size, found.source) == (0, 1, 0, 1, "no launcher")
    told(monkeypatch, SLURM_PROCID=3, SLURM_NTASKS=8, SLURM_LOCALID=1)
    found = penstock.ranks()
    assert (found.rank, found.size, found.local_rank, found.local_size) == (3, 8, 1, None)
    assert found.source == "SLURM_PROCID and SLURM_NTASKS"
    told(monkeypatch, RANK=3, WORLD_SIZE=8, LOCAL_RANK=1, LOCAL_WORLD_SIZE=2)
    assert penstock.ranks().source == "RANK and WORLD_SIZE"
    torch_says(monkeypatch, 3, 8)
    found = penstock.ranks()
    assert (found.source, found.local_rank, found.local_size) == ("torch.distributed", 1, 2)
    torch_says(monkeypatch, 3, 8, initialized=False)
    assert penstock.ranks().source == "RANK and WORLD_SIZE"
    assert penstock.ranks(1, 5) == penstock.Ranks(1, 5)


def test_a_contradiction_names_both_sources(monkeypatch):
    told(monkeypatch, RANK=1, WORLD_SIZE=4)
    torch_says(monkeypatch, 0, 4)
    with pytest.raises(ValueError, match=r"rank 0 of 4 by torch.distributed, but rank 1 of 4 by RANK and WORLD_SIZE"):
        penstock.ranks()
    with pytest.raises(ValueError, match="RANK and WORLD_SIZE"):
        penstock.DataLoader(penstock.rows([1]), ranks="auto")
    assert penstock.ranks(2, 3).rank == 2, "arguments come first"


def test_nothing_is_imported_to_find_out():
    code = "import penstock, sys; penstock.ranks(); assert not {'torch', 'json', 'dataclasses'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={})


@pytest.mark.parametrize(
    "wrong", [(2, 2), (-1, 2), (0, 0), (0, -1), (0.5, 2), ("0", 2), (None, 2), (0, None), (0, 2**31 + 1)]
)
def test_ranks_that_are_none(wrong):
    for make in (penstock.Ranks, penstock.ranks):
        with pytest.raises((penstock.InvalidArgumentError, TypeError), match="found"):
            make(*wrong)


def test_ranks_are_a_value(monkeypatch):
    ranks = penstock.Ranks(np.int64(1), 4, local_rank=1, source="me")
    assert repr(ranks) == "Ranks(rank=1, size=4, local_rank=1, local_size=None, source='me')"
    assert pickle.loads(pickle.dumps(ranks)) == copy.deepcopy(ranks) == ranks
    assert len({ranks, copy.copy(ranks), penstock.Ranks(1, 4)}) == 2
    assert ranks != (1, 4)
    with pytest.raises(AttributeError, match="cannot be changed"):
        ranks.rank = 2


@pytest.mark.parametrize("size", [1, 3, 4, 60])
@pytest.mark.parametrize("workers", [0, 2])
def test_remainders(size, workers):
    def world(remainder, n=50):
        data = penstock.rows(np.arange(n).reshape(n, 1))
        return World(
            lambda ranks: penstock.DataLoader(
                data, batch_size=4, num_workers=workers, ranks=ranks, remainder=remainder
            ),
            size,
        )

    left = -50 % size
    assert world("exact").take() == list(range(50))
    assert world("pad").take() == [*range(50), *range(left)]
    assert world("exact", 0).take() == world("drop", 0).take() == []
    if size > 50:
        with pytest.raises(ValueError, match="50 samples for 60 ranks"):
            world("drop")
    else:
        assert world("drop").take() == list(range(50 - 50 % size))


def test_exact_gives_pairs_with_any_number_of_ranks():
    for size in (1, 2):
        loader = penstock.DataLoader(penstock.rows([5, 6, 7]), 2, ranks=(size - 1, size), remainder="exact")
        assert [values_of(batch) for batch in loader] == (
            [[(5, True), (6, True)], [(7, True)]] if size == 1 else [[(6, True), (5, False)]]
        )


def test_whole_batches_are_dealt_out_of_a_batch_sampler():
    given = [[i, i + 1][: 1 + i % 2] for i in range(7)]

    def make(remainder):
        return lambda ranks: penstock.DataLoader(
            penstock.rows(list(range(9))), batch_sampler=given, ranks=ranks, remainder=remainder
        )

    assert World(make("exact"), 3, whole=True).take() == flat(given)
    assert World(make("pad"), 3, whole=True).take() == flat(given + given[:2])
    assert World(make("drop"), 3, whole=True).take() == flat(given[:6])
    with pytest.raises(ValueError, match="7 batches for 8 ranks"):
        World(make("drop"), 8)


def test_what_does_not_go_with_ranks_is_refused():
    data = penstock.rows(list(range(10)))
    for options, reason in (
        ({"ranks": (0, 2), "sampler": penstock.DistributedSampler(10, 2, 0)}, "deals its order out to 2 ranks itself"),
        ({"ranks": (0, 2), "on_error": "skip"}, "leave a batch out on one rank alone"),
        ({"remainder": "exact"}, "give the loader its `ranks` too"),
        ({"ranks": (0, 2), "remainder": "exact", "drop_last": True}, "drop_last leaves samples out"),
        ({"ranks": (0, 2), "remainder": "half"}, "remainder='half', expected"),
        ({"ranks": (0, 2), "remainder": None}, "remainder=None, expected"),
        ({"ranks": (2, 2)}, "rank 2 of 2"),
        ({"ranks": "all"}, "ranks='all', expected \"auto\""),
        ({"ranks": 3}, "ranks=3"),
        ({"ranks": (1, 2, 3)}, "a pair"),
        ({"gather": len}, "give it its ranks"),
        ({"ranks": (0, 2), "gather": 5}, "gather=5"),
    ):
        with pytest.raises((ValueError, TypeError), match=reason):
            penstock.DataLoader(data, **options)
    penstock.DataLoader(data, ranks=(0, 1), on_error="skip")


def test_a_loader_tells_its_ranks_and_keeps_them_in_copies(monkeypatch):
    told(monkeypatch, RANK=1, WORLD_SIZE=2, LOCAL_RANK=1)
    loader = penstock.DataLoader(penstock.rows(list(range(10))), 2, ranks="auto", remainder="exact")
    assert loader.ranks == penstock.ranks()
    assert loader.state_dict()["num_replicas"] == 2
    without_launchers(monkeypatch)
    for twin in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        assert twin.ranks == loader.ranks
        assert [values_of(batch) for batch in twin] == [values_of(batch) for batch in loader]
    assert penstock.DataLoader(penstock.rows([1])).ranks is None
    loader.close()
    assert loader.ranks.size == 2


def test_ranks_that_disagree_are_named():
    def make(rank, texts, n=10, **options):
        def gather(text):
            texts.append(text)
            return texts

        return penstock.DataLoader(penstock.rows(list(range(n))), ranks=(rank, 2), gather=gather, **options)

    def refused(*options):
        texts = []
        with pytest.raises(penstock.InvalidArgumentError, match="gave 1 texts"):
            make(0, texts, **options[0])
        with pytest.raises(penstock.InvalidArgumentError, match=r"rank") as found:
            make(options[2] if len(options) > 2 else 1, texts, **options[1])
        return str(found.value)

    texts = []
    with pytest.raises(penstock.InvalidArgumentError, match="gave 1 texts"):
        make(0, texts)
    assert make(1, texts).ranks.rank == 1
    assert json.loads(texts[0])["the number of samples"] == 10
    assert "the number of samples: rank 0 has 10, and rank 1 has 11" in refused({}, {"n": 11})
    assert "the seed: rank 0 has 1, and rank 1 has 2" in refused({"seed": 1}, {"seed": 2})
    assert "the order: rank 0 has 'sequential', and rank 1 has 'random'" in refused({}, {"shuffle": True})
    assert "the batch size" in refused({"batch_size": 2}, {"batch_size": 3})
    assert "the remainder" in refused({}, {"remainder": "exact"})
    assert "call themselves ranks [0, 0]" in refused({}, {}, 0)
