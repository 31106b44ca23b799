"""Parts, repetitions and mixtures of datasets."""

import itertools
import pickle

import numpy as np
import pytest

import penstock


def values(dataset):
    return [int(dataset[i]) for i in range(len(dataset))]


def numbers(begin, end):
    return penstock.rows(np.arange(begin, end))


def test_take_skip_and_repeat_are_itertools():
    five = numbers(0, 5)
    for count in (0, 2, 5, 9):
        assert values(five.take(count)) == list(itertools.islice(range(5), count))
        assert values(five.skip(count)) == list(itertools.islice(range(5), count, None))
    assert values(five.skip(3).repeat(3)) == [3, 4] * 3
    assert len(five.repeat(1 << 60)) == 5 << 60
    assert values(pickle.loads(pickle.dumps(five.take(2).repeat(2)))) == [0, 1, 0, 1]
    for method in (five.take, five.skip, five.repeat):
        with pytest.raises(ValueError, match="-1"):
            method(-1)
        with pytest.raises(penstock.DTypeMismatchError):
            method(1.5)
    with pytest.raises(ValueError, match="fewer times"):
        five.repeat((1 << 63) - 1)


def test_repeated_samples_are_cropped_alike_below_and_apart_behind():
    row = penstock.rows(np.arange(200).reshape(1, 200))
    loader = penstock.DataLoader(row.random_crop([5]).repeat(8), batch_size=8)
    assert len(np.unique(np.asarray(next(iter(loader))), axis=0)) == 1
    loader = penstock.DataLoader(row.repeat(8).random_crop([5]), batch_size=8)
    assert len(np.unique(np.asarray(next(iter(loader))), axis=0)) > 4


def test_mix_has_exact_shares():
    weights = [0.5, 0.3, 0.2]
    parts = [numbers(1000 * k, 1000 * k + 50) for k in range(3)]
    mixed = pickle.loads(pickle.dumps(penstock.mix(parts, weights, size=500)))
    given = [0, 0, 0]
    for n, value in enumerate(values(mixed), 1):
        k, place = divmod(value, 1000)
        assert place == given[k] % 50
        given[k] += 1
        assert all(abs(given[k] - n * weights[k]) < 1 for k in range(3))
    assert values(penstock.mix([numbers(0, 4), numbers(10, 13)], [1, 3])) == [10, 0, 11, 12]
    every = values(penstock.mix([numbers(0, 4), numbers(10, 13)], [1, 3], "all"))
    assert set(every) == {0, 1, 2, 3, 10, 11, 12}


def test_mix_goes_on_where_it_stood():
    mixed = penstock.mix([numbers(0, 40), numbers(100, 160)], (1, 2))

    def loader():
        return penstock.DataLoader(mixed, batch_size=7, shuffle=True, seed=3, num_workers=2)

    first = loader()
    it = iter(first)
    next(it)
    state = first.state_dict()
    rest = [batch.tolist() for batch in it]
    second = loader()
    second.load_state_dict(state)
    assert [batch.tolist() for batch in second] == rest


@pytest.mark.parametrize("weights", [[], [1], [1, -1], [1, float("nan")], [float("inf"), 1], [0, 0]], ids=str)
def test_mix_refuses_weights(weights):
    with pytest.raises(ValueError, match="weight"):
        penstock.mix([numbers(0, 2), numbers(0, 3)], weights)


def test_mix_refuses_the_rest():
    with pytest.raises(ValueError, match="nothing to mix"):
        penstock.mix([], [])
    with pytest.raises(ValueError, match="has no samples"):
        penstock.mix([numbers(0, 2), numbers(0, 2).take(0)], [1, 1])
    with pytest.raises(ValueError, match=r"first.*all"):
        penstock.mix([numbers(0, 2)], [1], "last")
