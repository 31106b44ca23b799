"""A "file:" URL names what its path names, in every call that takes a location."""

import numpy as np
import pytest

import penstock


@pytest.fixture
def folder(tmp_path):
    """With a blank in its name, which a URL has as %20."""
    folder = tmp_path / "with blank"
    for name in ("a", "b"):
        (folder / "train" / name).mkdir(parents=True)
        for number in range(2):
            np.save(folder / "train" / name / f"{number}.npy", np.full(3, number, "i4"))
    penstock.pack(penstock.files(str(folder / "train/a/*.npy")), folder / "packed")
    penstock.pack(penstock.files(str(folder / "train/a/*.npy")), folder / "tar", format="tar")
    return folder


CALLS = {
    "load": lambda at: [penstock.load(at + "/train/a/1.npy")],
    "rows": lambda at: penstock.rows(at + "/train/a/1.npy"),
    "file": lambda at: penstock.files(at + "/train/a/1.npy"),
    "list": lambda at: penstock.files([at + "/train/b/1.npy", at + "/train/a/0.npy"]),
    "pattern": lambda at: penstock.files(at + "/train/*/*.npy"),
    "folder": lambda at: penstock.files(at + "/train/a"),
    "packed": lambda at: penstock.packed(at + "/packed"),
    "one packed": lambda at: penstock.packed(at + "/packed/00000.safetensors"),
    "shards": lambda at: penstock.shards(at + "/tar/*.tar").map(lambda sample: sample["npy"]),
    "folder of shards": lambda at: penstock.shards(at + "/tar").map(lambda sample: sample["npy"]),
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_take_them(folder, call):
    expected = [one.tolist() for one in CALLS[call](str(folder))]
    assert expected
    assert [one.tolist() for one in CALLS[call](f"file://{folder}".replace(" ", "%20"))] == expected


def test_classes_are_those_of_the_path(folder):
    files = penstock.files(f"file://{folder}/train/*/*.npy".replace(" ", "%20"), class_folders=True)
    assert list(files.classes) == ["a", "b"]
    assert [int(label) for _, label in files] == [0, 0, 1, 1]


def test_documents_take_them(folder):
    from penstock import documents

    tokens = np.arange(12, dtype="u2")
    header = np.zeros(256, "<i4")
    header[:3] = 20240520, 1, tokens.size
    (folder / "tokens.bin").write_bytes(header.tobytes() + tokens.tobytes())
    expected, got = (
        [one.tolist() for one in documents(at, begin=5)]
        for at in (str(folder / "tok*.bin"), f"file://{folder}/tok*.bin".replace(" ", "%20"))
    )
    assert expected
    assert got == expected


@pytest.mark.parametrize("scheme", ["file://", "file:"])
def test_calls_in_the_background_take_them(folder, scheme):
    url = f"{scheme}{folder}/x.npy".replace(" ", "%20")
    first = penstock.save_async(np.zeros(200_000), url)
    penstock.save_async(np.ones(200_000), folder / "x.npy").result()
    first.result()
    assert penstock.load_async(url).result().tolist() == [1.0] * 200_000  # saves to one file follow each other


def test_numpy_takes_them(folder):
    from penstock import numpy as pn

    url = f"file://{folder}".replace(" ", "%20")
    np.savez(folder / "x.npz", a=np.arange(3))
    for mode in (None, "r", "c", "r+"):
        assert pn.load(f"{url}/train/a/1.npy", mode).tolist() == [1, 1, 1]
    with pn.load(f"{url}/x.npz") as npz:
        assert npz["a"].tolist() == [0, 1, 2]
        assert npz.zip.namelist() == ["a.npy"]


@pytest.mark.parametrize("scheme", ["file://", "file:"])
def test_folders_that_are_written_and_looked_through_take_them(folder, scheme, monkeypatch):
    from penstock._weights.weight_files import weight_files

    monkeypatch.chdir(folder)
    url = f"{scheme}{folder}".replace(" ", "%20")
    paths = penstock.map_files(str, f"{url}/packed/*.safetensors", f"{url}/out", suffix=".pt", num_workers=0)
    assert paths == [str(folder / "out" / "00000.pt")]
    assert penstock.load(paths[0])
    assert weight_files(f"{url}/packed") == [str(folder / "packed" / "00000.safetensors")]
    assert "file:" not in [path.name for path in folder.iterdir()]
