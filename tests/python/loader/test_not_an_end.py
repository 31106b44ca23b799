"""StopIteration that the program's code raises is no end of an epoch, and what ends a program goes through."""

import numpy as np
import pytest

import penstock

WHERE = ["map", "batched", "seeded", "dataset", "collate", "source", "raw", "factory", "stream map", "stream filter",
         "map and filter", "sampler", "batch sampler"]  # fmt: skip


def loader_that_raises(error, where, workers):
    def bad(*_):
        raise error

    class Sampler:
        def __len__(self):
            return 4

        def __iter__(self):
            raise error

    rows = penstock.rows(np.arange(12.0).reshape(12, 1))
    made = {
        "map": lambda: rows.map(bad),
        "batched": lambda: rows.map(bad, batched=True),
        "seeded": lambda: rows.map(bad, seeded=True),
        "dataset": lambda: penstock.dataset(12, bad),
        "source": lambda: penstock.files(["a", "b"], source=bad),
        "raw": lambda: penstock.files(["a", "b"], source=bad, raw=True),
        "factory": lambda: penstock.stream(bad),
        "stream map": lambda: penstock.stream(rows).map(bad),
        "stream filter": lambda: penstock.stream(rows).filter(bad),
        "map and filter": lambda: penstock.stream(rows).map(bad).filter(bool),
    }.get(where, lambda: rows)()
    options = {"batch_size": 4, "num_workers": workers}
    if where == "collate":
        options["collate_fn"] = bad
    if where == "sampler":
        options["sampler"] = Sampler()
    if where == "batch sampler":
        options = {"batch_sampler": Sampler(), "num_workers": workers}
    return penstock.DataLoader(made, **options)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("workers", [0, 2])
def test_stop_iteration_is_an_error(where, workers):
    with pytest.raises(RuntimeError, match="StopIteration: enough") as caught:
        list(loader_that_raises(StopIteration("enough"), where, workers))
    assert isinstance(caught.value.__cause__, StopIteration)
    if "sampler" not in where and where not in {"batched", "collate"}:
        assert "sample 0" in str(caught.value) or "sample" in str(caught.value) or "at a" in str(caught.value)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_a_program_goes_through(where, workers, error):
    with pytest.raises(type(error)):
        list(loader_that_raises(error, where, workers))


def test_a_sample_by_itself():
    def bad(_):
        raise StopIteration

    rows = penstock.rows(np.arange(3.0))
    with pytest.raises(RuntimeError, match="StopIteration"):
        rows.map(bad)[0]
    with pytest.raises(RuntimeError, match="StopIteration"):
        rows.filter(bad)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(penstock.stream(rows).map(bad))
