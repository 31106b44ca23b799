"""What native Python and penstock.numpy give of files that change while they are open (changing_roads.py)."""

import os
import pathlib
import resource

import numpy as np
import pytest
from changing_roads import CHANGES, ROWS, Road, batches, check, numbers, samples

import penstock
import penstock.numpy as pn

NAMES = {".npy": None, ".npz": "x", ".safetensors": "x", ".pt": "x"}


def write(path: pathlib.Path, dtype: str, seed: int, rows: int) -> None:
    array = numbers(dtype, seed, rows)
    if path.suffix == ".npy":
        np.save(path, array)
    elif path.suffix == ".npz":
        np.savez(path, x=array, y=array[:7])
    else:
        penstock.save({"x": array, "y": array[:7].copy()}, path)


def write_packed(path: pathlib.Path, dtype: str, seed: int, rows: int) -> None:
    array = numbers(dtype, seed, rows)
    folder = path.with_suffix(".folder")
    penstock.pack(penstock.rows(array), folder)
    (folder / "00000.safetensors").rename(path)
    folder.rmdir()


def entry(archive):
    return archive[next(iter(archive))]


def loader(dataset, **options):
    return penstock.DataLoader(dataset, batch_size=50, **options)


def whole(dataset):
    return [lambda: dataset[0:ROWS]] * 2


def members(arrays):
    return [lambda: arrays["x"], lambda: arrays["y"]]


def of_archive(read):
    """A reader of an archive that stays open, asked twice."""

    def opened(path):
        archive = penstock.open(path)
        return [lambda: read(archive)] * 2

    return opened


ANY = {
    "load": of_archive(lambda a: a.load()),
    "load, past the cache": of_archive(lambda a: a.load(direct=True)),
    "load, through the cache": of_archive(lambda a: a.load(direct=False, threads=2)),
    "entry": of_archive(lambda a: entry(a).load()),
    "entry, ellipsis": of_archive(lambda a: entry(a)[...].load()),
    "entry as an array": of_archive(lambda a: np.asarray(entry(a))),
    "rows of an entry": lambda p: samples(penstock.rows(entry(penstock.open(p)))),
    "files": lambda p: samples(penstock.files([p])),
    "loader of files": lambda p: batches(penstock.DataLoader(penstock.files([p] * 4), batch_size=2), 2),
}
SLICES = {
    "slice": of_archive(lambda a: entry(a)[3:900].load()),
    "columns": of_archive(lambda a: entry(a)[:, 3:40].load()),
    "every other row": of_archive(lambda a: entry(a)[::2].load()),
}
MAPPED = {
    "mapped": of_archive(lambda a: a.load(mmap=True)),
    "mapped slice": of_archive(lambda a: entry(a)[3:900].load(mmap=True)),
}
ROWS_OF = {
    "rows": lambda p: samples(penstock.rows(p, NAMES[p.suffix])),
    "rows, read": lambda p: samples(penstock.rows(p, NAMES[p.suffix], mmap=False)),
    "slices of rows": lambda p: whole(penstock.rows(p, NAMES[p.suffix])),
    "zip of rows": lambda p: samples(penstock.zip(*[penstock.rows(p, NAMES[p.suffix])] * 2)),
    "concat and subset": lambda p: samples(
        penstock.subset(penstock.rows(p, NAMES[p.suffix]).concat(penstock.rows(p, NAMES[p.suffix])), range(10, 1900, 7))
    ),
    "loader of rows": lambda p: batches(loader(penstock.rows(p, NAMES[p.suffix])), ROWS // 50),
    "loader of rows, shuffled": lambda p: batches(
        loader(penstock.rows(p, NAMES[p.suffix]), shuffle=True, seed=3, num_workers=2), ROWS // 50
    ),
    "loader of rows, read": lambda p: batches(
        loader(penstock.rows(p, NAMES[p.suffix], mmap=False), shuffle=True, seed=3), ROWS // 50
    ),
}
ROADS = [
    Road(f"{name} ({suffix[1:]})", suffix, opened)
    for suffix in NAMES
    for name, opened in {
        **ANY,
        **({} if suffix in {".pt", ".npz"} else SLICES | MAPPED | ROWS_OF),
    }.items()
]
ROADS += [
    Road("numpy's members", ".npz", lambda p: members(pn.load(p))),
    Road("numpy's array", ".npy", lambda p: [lambda: pn.load(p)]),
]
PACKED = [
    Road("packed", ".safetensors", lambda p: samples(penstock.packed(p))),
    Road("packed, read", ".safetensors", lambda p: samples(penstock.packed(p, mmap=False))),
    Road("loader of packed", ".safetensors", lambda p: batches(loader(penstock.packed(p)), ROWS // 50)),
    Road(
        "loader of packed, shuffled",
        ".safetensors",
        lambda p: batches(loader(penstock.packed(p), shuffle=True, seed=1), ROWS // 50),
    ),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("road", ROADS, ids=str)
def test_an_error_or_the_bytes_of_a_file(road, change, tmp_path):
    check(road, change, tmp_path, write)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("road", PACKED, ids=str)
def test_an_error_or_the_samples_of_a_packed_file(road, change, tmp_path):
    check(road, change, tmp_path, write_packed)


def test_rows_behind_a_cut_within_a_page_are_no_zeros(tmp_path):
    path = tmp_path / "c.npy"
    np.save(path, np.ones((1000, 100), "f4"))
    os.utime(path, (10**9, 10**9))
    dataset = penstock.rows(path)
    path.write_bytes(path.read_bytes()[: 128 + 400 * 20 + 100])
    for i in range(20, 30):
        with pytest.raises(penstock.TruncatedError, match="cut"):
            dataset[i]


def test_a_file_written_anew_is_named(tmp_path):
    path = tmp_path / "c.npy"
    np.save(path, np.full((1000, 100), 1.5))
    os.utime(path, (10**9, 10**9))
    archive, dataset = penstock.open(path), penstock.rows(path)
    np.save(path, np.ones((1000, 100), "i8"))
    for read in (archive.load, archive[next(iter(archive))].load, lambda: dataset[0], lambda: archive.load(mmap=True)):
        with pytest.raises(penstock.ChangedError, match="open it again") as error:
            read()
        assert error.value.path == str(path)
    np.save(path, np.ones((100, 100), "i8"))  # shorter, but whole
    with pytest.raises(penstock.ChangedError):
        dataset[0]


def test_many_shards_take_few_descriptors(tmp_path):
    """What is not held open is opened by name, and looked at, too."""
    array = numbers("f4", 1, 64)
    penstock.pack(penstock.rows(array), tmp_path / "p", shard_bytes=400)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (others + 40, hard))
    try:
        for mmap in (True, False):
            dataset = penstock.packed(tmp_path / "p", mmap=mmap)
            assert np.array_equal(np.asarray(dataset[0:64]), array)
            last = sorted((tmp_path / "p").iterdir())[-1]
            last.write_bytes(last.read_bytes())
            os.utime(last, (10**9, 10**9 + mmap))
            with pytest.raises(penstock.ChangedError):
                dataset[63]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
