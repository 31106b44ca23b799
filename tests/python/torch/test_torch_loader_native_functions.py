"""Functions of the program behind native datasets, under penstock.torch.DataLoader."""

import numpy as np
import pytest

import penstock
import penstock.torch as pt


def bad_at_five(sample):
    if sample[0].item() == 5:
        raise ValueError("five is odd")
    return sample.numpy() * 2


def mapped():
    return pt.Dataset(penstock.dataset(8, lambda index: np.full(3, index, "f4")).map(bad_at_five))


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_go_on_behind_an_exception_that_keeps_its_type(workers):
    batches = iter(pt.DataLoader(mapped(), batch_size=2, num_workers=workers))
    assert next(batches).tolist() == [[0, 0, 0], [2, 2, 2]]
    next(batches)
    with pytest.raises(ValueError, match=r"five is odd .*sample 5") as caught:
        next(batches)
    assert type(caught.value) is ValueError
    assert next(batches)[0].tolist() == [12, 12, 12]


@pytest.mark.parametrize("workers", [0, 2])
def test_on_error_sees_functions(workers):
    loader = pt.DataLoader(mapped(), batch_size=2, num_workers=workers, on_error="skip")
    assert [len(batch) for batch in loader] == [2, 2, 1, 2]
    assert [index for index, _, _ in loader.set_aside] == [5]
