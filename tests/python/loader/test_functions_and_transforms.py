"""Native transforms before and behind functions of the program: none forgets the other."""

import numpy as np
import pytest

import penstock

COUNT = 24


def images(dtype="u1"):
    return penstock.rows(np.arange(COUNT * 48, dtype="u2").reshape(COUNT, 6, 8).astype(dtype))


def same(sample):
    return sample


def drawn(sample, random):
    return np.append(np.float64(sample.numpy().ravel()[:1] * 0 + random.random()), 0.0)


def also_drawn(sample, random):
    return np.array([sample.numpy()[0], random.random()])


def batches(dataset, **options):
    return [batch.numpy().copy() for batch in penstock.DataLoader(dataset, batch_size=5, seed=7, **options)]


def equal(one, other):
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "chain",
    [
        lambda data, between: between(data.cast("float32")).scale(1 / 255),
        lambda data, between: between(data.random_crop((3, 4))).random_flip(dims=[1]),
        lambda data, between: between(data.random_flip(dims=[0])).random_flip(dims=[1]),
        lambda data, between: between(between(data.random_crop((5, 7))).random_crop((3, 4))).random_flip(dims=[0]),
    ],
)
def test_a_function_that_changes_nothing_changes_nothing(chain, workers):
    expected = batches(chain(images(), lambda data: data))
    assert equal(batches(chain(images(), lambda data: data.map(same)), num_workers=workers), expected)


@pytest.mark.parametrize("only", ["image", "mask"])
def test_steps_of_one_key_leave_the_others_alike(only):
    """A step draws the same for all keys, whatever steps other keys had before."""
    data = penstock.zip(image=images(), mask=images()).random_crop((6, 8), keys=[only]).random_flip(dims=[1])
    (batch,) = penstock.DataLoader(data, batch_size=COUNT, seed=3)
    assert np.array_equal(batch["image"].numpy(), batch["mask"].numpy())
    (unflipped,) = penstock.DataLoader(images(), batch_size=COUNT)
    assert not np.array_equal(batch["image"].numpy(), unflipped.numpy())


def test_two_functions_draw_differently_whatever_lies_between():
    data = images("f8").map(drawn, seeded=True).cast("float64").map(also_drawn, seeded=True)
    both = np.concatenate(batches(data))
    assert not np.any(both[:, 0] == both[:, 1])


def test_two_flips_draw_differently_behind_a_function():
    data = penstock.rows(np.tile(np.array([[0, 1], [2, 3]], "u1"), (64, 1, 1)))
    flipped = np.concatenate(batches(data.random_flip(dims=[0]).map(same).random_flip(dims=[1])))
    assert {tuple(sample.ravel()) for sample in flipped} == {(0, 1, 2, 3), (2, 3, 0, 1), (1, 0, 3, 2), (3, 2, 1, 0)}


@pytest.mark.parametrize(
    "transform",
    [lambda data: data.cast("float32"), lambda data: data.random_flip(dims=[0]), lambda data: data.flip([0])],
)
def test_transforms_come_before_functions_of_batches(transform):
    with pytest.raises(penstock.InvalidArgumentError, match="no place for a transform; map batches last"):
        transform(images().map(same, batched=True))
    doubled = images().cast("int32").map(lambda batch: batch.numpy() * 2, batched=True)
    assert equal(batches(doubled), [batch.astype("i4") * 2 for batch in batches(images())])


def test_classes_stay_behind_a_transform(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "0.npy", np.zeros((2, 2), "u1"))
    data = penstock.files(tmp_path / "**" / "*.npy", class_folders=True)
    assert list(data.cast("float32").classes) == ["cat", "dog"]
