"""Lists of numbers as arguments: what is none, or none that makes sense, is refused with the name of the argument."""

from __future__ import annotations

import numpy as np
import pytest

import penstock

NAN, INF = float("nan"), float("inf")
ROWS = penstock.rows(np.arange(12, dtype=np.float32).reshape(3, 4))
IMAGES = penstock.rows(np.zeros((3, 3, 8, 8), np.float32))

# Each with a list of two numbers, of which the second one is tried: its name, and whether it may be negative.
WHOLE = {
    "length_buckets": (lambda n: penstock.length_buckets(n, [5], batch_size=1), "lengths", False),
    "boundaries": (lambda n: penstock.length_buckets([1, 2], n, batch_size=1), "boundaries", False),
    "subset": (lambda n: penstock.subset(ROWS, n), "indices", True),
    "SubsetSampler": (lambda n: penstock.SubsetSampler(n), "indices", True),
    "BatchSampler": (lambda n: penstock.BatchSampler(n, 2), "sampler", True),
    "BatchSampler of batches": (lambda n: penstock.BatchSampler([[0], n]), r"sampler\[1\]", True),
    "sampler": (lambda n: next(iter(penstock.DataLoader(ROWS, sampler=n, num_workers=0))), "sampler", None),
    "batch_sampler": (
        lambda n: next(iter(penstock.DataLoader(ROWS, batch_sampler=[[0], n], num_workers=0))),
        r"batch_sampler\[1\]",
        None,
    ),
    "pad_to": (lambda n: penstock.pad_to(n, dims=[0, 1]), "length", False),
    "pad of dims": (lambda n: penstock.pad(dims=n), "dims", True),
    "random_crop": (lambda n: IMAGES.random_crop(n), "size", False),
    "crop": (lambda n: IMAGES.crop(n, [1, 1]), "begin", False),
    "flip": (lambda n: IMAGES.flip(n), "dims", True),
    "permute of samples": (lambda n: IMAGES.permute(n), "dims", True),
    "pad of samples": (lambda n: IMAGES.pad(n, [1, 1]), "before", False),
    "zeros": (lambda n: penstock.zeros(n), "shape", False),
    "rand": (lambda n: penstock.rand(n), "shape", False),
    "reshape": (lambda n: penstock.zeros(2).reshape(n), "shape", True),
    "permute": (lambda n: penstock.zeros(2, 2).permute(*n), "dims", True),
    "sum": (lambda n: penstock.zeros(2, 2).sum(n), "dim", True),
}
REAL = {
    "WeightedSampler": (lambda n: penstock.WeightedSampler(n, 2), "weight", False),
    "mix": (lambda n: penstock.mix([ROWS, ROWS], n), "weight", False),
    "mean": (lambda n: ROWS.normalize(n, [1, 1]), "mean", True),
    "std": (lambda n: ROWS.normalize([1, 1], n), "std", False),
}


@pytest.mark.parametrize("wrong", [NAN, INF, -INF, 1.5, "2", None, [1], True, np.True_, 2**70, -(10**400)], ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_no_whole_number_is_refused_by_name(name, wrong):
    call, argument, _ = WHOLE[name]
    with pytest.raises(
        (penstock.DTypeMismatchError, penstock.InvalidArgumentError), match=rf"{argument}\[1\]="
    ) as caught:
        call([1, wrong])
    is_large = isinstance(wrong, int) and not isinstance(wrong, bool)
    assert isinstance(caught.value, penstock.InvalidArgumentError) == is_large
    assert isinstance(caught.value, ValueError if is_large else TypeError)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("wrong", ["2", None, [1], True, np.True_, 10**400, 1j], ids=lambda v: str(v)[:9])
@pytest.mark.parametrize("name", REAL)
def test_no_number_is_refused_by_name(name, wrong):
    call, argument, _ = REAL[name]
    plural = {"weight": "weights"}.get(argument, argument)
    with pytest.raises(
        (penstock.DTypeMismatchError, penstock.InvalidArgumentError), match=rf"{plural}\[1\]="
    ) as caught:
        call([1, wrong])
    assert isinstance(caught.value, penstock.InvalidArgumentError) == (type(wrong) is int)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
@pytest.mark.parametrize("name", REAL)
def test_what_is_not_finite_is_refused_by_name(name, wrong):
    call, argument, _ = REAL[name]
    for numbers in ([1.0, wrong], np.array([1.0, wrong])):
        with pytest.raises(penstock.InvalidArgumentError, match=rf"{argument}\b.* {wrong}"):
            call(numbers)


@pytest.mark.parametrize("name", [name for name, (_, _, negative) in (WHOLE | REAL).items() if negative is False])
def test_negative_numbers_are_refused_where_they_mean_nothing(name):
    call, argument, _ = (WHOLE | REAL)[name]
    singular = {"lengths": "length", "boundaries": "boundary", "begin": "place", "before": "size"}.get(
        argument, argument
    )
    with pytest.raises(penstock.Error, match=rf"{singular}.*-1"):
        call([1, -1])


@pytest.mark.parametrize("name", [name for name, (_, _, negative) in (WHOLE | REAL).items() if negative])
def test_negative_numbers_are_taken_where_they_mean_something(name):
    call, argument, _ = (WHOLE | REAL)[name]
    call([0, -1] if argument != "shape" else [1, -1])


@pytest.mark.parametrize("wrong", [3, None, "12", object()], ids=["3", "None", "text", "object"])
@pytest.mark.parametrize("name", ["length_buckets", "subset", "SubsetSampler", "WeightedSampler", "mix"])
def test_what_is_no_list_is_refused_by_name(name, wrong):
    call, argument, _ = (WHOLE | REAL)[name]
    plural = {"weight": "weights"}.get(argument, argument)
    with pytest.raises(penstock.DTypeMismatchError, match=f"found {plural}=.*expected an iterable of numbers"):
        call(wrong)


@pytest.mark.parametrize("name", ["length_buckets", "boundaries", "subset", "SubsetSampler"])
def test_arrays_are_taken_and_those_of_other_types_refused(name):
    call, argument, _ = WHOLE[name]
    call(np.array([1, 2], np.uint8))
    call(penstock.tensor([1, 2]))
    for wrong in (np.array([1, NAN]), np.array([True, False]), penstock.tensor([1.0, 2.0])):
        with pytest.raises(penstock.DTypeMismatchError, match=f"{argument} as an array of"):
            call(wrong)
    with pytest.raises(penstock.Error, match=argument):
        call(np.array([1, None], dtype=object))


def test_generators_are_taken():
    assert len(penstock.subset(ROWS, (i for i in (0, 2)))) == 2
    assert len(penstock.SubsetSampler(iter([0, 2]))) == 2
    assert len(penstock.WeightedSampler((w for w in (1, 2.5)), 3)) == 3


def test_what_an_iterable_raises_arrives():
    def broken():
        yield 1
        raise KeyError("gone")

    for call in (lambda: penstock.subset(ROWS, broken()), lambda: penstock.WeightedSampler(broken(), 1)):
        with pytest.raises(KeyError, match="gone"):
            call()


def test_clamp_names_what_is_no_number():
    for bounds in ((NAN, 1), (0, NAN)):
        with pytest.raises(penstock.InvalidArgumentError, match=r"clamp to .*nan.*give numbers"):
            ROWS.clamp(*bounds)
    ROWS.clamp(-INF, INF)


class Elements:
    """An array whose elements can be had as a whole, and not one by one."""

    def __init__(self, values, dtype):
        self.array = np.array(values, dtype)
        self.__array_interface__ = self.array.__array_interface__

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        raise AssertionError("gone through item by item")

    __getitem__ = None


TAKEN = {
    "subset": lambda n: [int(value[0]) for value in map(penstock.Tensor.tolist, penstock.subset(ROWS, n))],
    "SubsetSampler": lambda n: penstock.SubsetSampler(n).order(),
    "BatchSampler": lambda n: penstock.BatchSampler(n, 2).batches(),
    "BatchSampler of batches": lambda n: penstock.BatchSampler([[0], n]).batches(),
    "sampler": lambda n: [batch.tolist() for batch in penstock.DataLoader(ROWS, sampler=n, num_workers=0)],
    "batch_sampler": lambda n: [
        batch.tolist() for batch in penstock.DataLoader(ROWS, batch_sampler=[n], num_workers=0)
    ],
    "length_buckets": lambda n: penstock.length_buckets(n, [5], batch_size=1).batches(),
    "boundaries": lambda n: penstock.length_buckets([1, 2], n, batch_size=1).batches(),
    "WeightedSampler": lambda n: penstock.WeightedSampler(n, 9).order(3),
    "mix": lambda n: [row.tolist() for row in penstock.mix([ROWS, ROWS], n)],
}


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("dtype", ["i1", "u2", "<i4", ">i8", "u8"])
def test_arrays_of_whole_numbers_are_read_as_a_whole(name, dtype):
    call = TAKEN[name]
    assert call(Elements([1, 2], dtype)) == call([1, 2])
    assert call(np.array([1, 9, 2], dtype)[::2]) == call([1, 2])


@pytest.mark.parametrize("name", ["WeightedSampler", "mix"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "<f8", ">f8"])
def test_arrays_of_numbers_are_read_as_a_whole(name, dtype):
    call = TAKEN[name]
    assert call(Elements([0.5, 1.25], dtype)) == call([0.5, 1.25])


@pytest.mark.parametrize("name", [name for name in TAKEN if name not in {"WeightedSampler", "mix"}])
def test_arrays_of_other_numbers_are_refused(name):
    wrong = [np.array([0.5, 1]), np.array([True, False]), np.array([1, 2**63], "u8"), np.zeros((2, 2), "i8")]
    for array in wrong:
        with pytest.raises((penstock.DTypeMismatchError, penstock.InvalidArgumentError)):
            TAKEN[name](array)


def test_arrays_that_are_no_numbers_are_no_weights():
    for array in (np.array([True, False]), np.ones((2, 2)), np.array(["1", "2"])):
        with pytest.raises((penstock.DTypeMismatchError, penstock.InvalidArgumentError)):
            penstock.WeightedSampler(array, 2)
