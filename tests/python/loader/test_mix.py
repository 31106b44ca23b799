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


def test_steps_behind_a_repetition_draw_anew_where_others_drew_below():
    row = penstock.rows(np.arange(200).reshape(1, 200))
    samples = next(iter(penstock.DataLoader(row.random_crop([5]).repeat(64).random_flip(), batch_size=64))).numpy()
    assert len(np.unique(np.sort(samples), axis=0)) == 1
    assert 10 < np.count_nonzero(samples[:, 0] > samples[:, -1]) < 54


@pytest.mark.parametrize(
    "moved",
    [
        lambda d: penstock.subset(d, range(63, -1, -1)),
        lambda d: d.skip(1).concat(d.take(1)),
        lambda d: penstock.mix([d.take(60), d.skip(60)], [15, 1]),
        lambda d: penstock.choice([d.repeat(2).skip(5).take(64), d.repeat(2).skip(9).take(64)]),
    ],
)
def test_parts_of_a_sample_are_flipped_together_wherever_one_was_drawn_before(moved):
    row = penstock.rows(np.tile(np.arange(9), (64, 1)))
    pairs = penstock.zip(x=moved(row.random_crop([5])), y=row).random_crop([3]).random_flip()
    for sample in penstock.DataLoader(pairs, seed=4):
        x, y = (part.numpy()[0] for part in sample.values())
        assert (x[0] > x[-1]) == (y[0] > y[-1])


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


def test_a_mixture_that_would_keep_too_many_turns_is_refused():
    parts = [numbers(0, 9).repeat(10**11)] * 3
    odd = [1, np.pi, np.e]
    for size in ({"size": 10**10}, {"end": "first"}):
        with pytest.raises(penstock.InvalidArgumentError, match=r"do not repeat.*whole numbers"):
            penstock.mix(parts, odd, **size)
    assert len(penstock.mix(parts, odd, size=1 << 21)) == 1 << 21
    assert len(penstock.mix(parts, [1, 3.1416, 2.7183], size=10**11)) == 10**11


def test_datasets_that_are_too_large_together_are_refused():
    half = numbers(0, 1).repeat(1 << 62)
    for put in (lambda: half.concat(half), lambda: penstock.mix([half, half], [1, 1]), lambda: half.repeat(2)):
        with pytest.raises(penstock.InvalidArgumentError, match="more than a dataset may have"):
            put()


def test_mix_refuses_the_rest():
    with pytest.raises(ValueError, match="nothing to mix"):
        penstock.mix([], [])
    with pytest.raises(ValueError, match="has no samples"):
        penstock.mix([numbers(0, 2), numbers(0, 2).take(0)], [1, 1])
    with pytest.raises(ValueError, match=r"first.*all"):
        penstock.mix([numbers(0, 2)], [1], "last")
