"""penstock.open: the index, entries and their slices."""

import importlib
import os
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock


@pytest.fixture(scope="module")
def array():
    return np.arange(5 * 6 * 7, dtype="i4").reshape(5, 6, 7)


@pytest.fixture(scope="module")
def paths(tmp_path_factory, array):
    """The same array in every format, uncompressed, compressed, in either order."""
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = tmp_path_factory.mktemp("archive")
    np.savez(folder / "x.npz", w=array)
    np.savez_compressed(folder / "c.npz", w=array)
    np.savez(folder / "f.npz", w=np.asfortranarray(array))
    np.savez(folder / "b.npz", w=array.astype(">i4"))
    torch.save({"w": torch.from_numpy(array)}, folder / "x.pt")
    torch.save({"w": torch.from_numpy(array)}, folder / "old.pt", _use_new_zipfile_serialization=False)
    torch.save({"w": torch.from_numpy(array.transpose(2, 1, 0).copy()).permute(2, 1, 0)}, folder / "view.pt")
    safetensors.save_file({"w": array}, folder / "x.safetensors")
    return sorted(folder.iterdir())


def test_it_is_a_mapping(paths):
    archive, other = penstock.open(paths[0]), penstock.open(paths[0])
    assert isinstance(archive, Mapping)
    assert [entry.name for entry in archive.values()] == ["w"]
    assert [(name, entry.load().tolist()) for name, entry in archive.items()] == [("w", archive["w"].load().tolist())]
    assert dict(archive).keys() == {"w"}
    assert archive.get("w").shape == archive["w"].shape
    assert archive.get("v") is archive.get(3) is None
    assert archive.get("v", 7) == 7
    assert archive == archive != other  # as files are: by identity
    assert len({archive, other}) == 2
    match archive:
        case {"w": entry}:
            assert entry.name == "w"
        case _:
            pytest.fail("it is no mapping for a match statement")


def test_mapping_of_entries(paths):
    for path in paths:
        archive = penstock.open(path)
        assert archive.keys() == ["w"] == list(archive)
        assert len(archive) == 1
        assert "w" in archive
        assert "v" not in archive
        assert 3 not in archive
        assert archive.path == str(path)
        assert archive.format in path.name or archive.format == "pt"
        assert repr(str(path)) in repr(archive)


def test_facts_of_an_entry(paths, array):
    for path in paths:
        entry = penstock.open(path)["w"]
        assert entry.name == "w"
        assert entry.dtype == "int32"
        assert entry.shape == (5, 6, 7)
        assert entry.ndim == 3
        assert len(entry) == 5
        assert entry.nbytes == array.nbytes
        assert not entry.requires_grad
        assert "w" in repr(entry)
        assert "(5, 6, 7)" in repr(entry)
        if path.name == "c.npz":
            assert entry.offset is None
        elif path.name in ("x.npz", "x.pt", "x.safetensors"):
            assert path.read_bytes()[entry.offset :][: array.nbytes] == array.tobytes()
            assert entry.strides == (42, 7, 1)
            assert entry[2].offset == entry.offset + 2 * 42 * 4


INDEX = st.one_of(st.integers(-5, 4), st.slices(6).filter(lambda s: s.step is None or s.step > 0), st.just(Ellipsis))


@given(st.lists(INDEX, max_size=4).map(tuple))
@settings(deadline=None, max_examples=60)
def test_slices_as_numpy(paths, array, key):
    for path in paths:
        entry = penstock.open(path)["w"]
        try:
            expected = array[key]
        except IndexError:
            with pytest.raises(IndexError):
                entry[key]
            continue
        found = entry[key]
        assert found.shape == expected.shape
        assert found.nbytes == expected.nbytes
        loaded = found.load()
        assert loaded.tolist() == expected.tolist()
        assert np.asarray(found).tolist() == expected.tolist()


def test_slices_of_slices(paths, array):
    for path in paths:
        entry = penstock.open(path)["w"]
        assert entry[1:4][1, ::2][..., 3].load().tolist() == array[1:4][1, ::2][..., 3].tolist()


def test_entries_outlive_their_archive(paths, array):
    for path in paths:
        with penstock.open(path) as archive:
            entry = archive["w"]
        assert entry.load().tolist() == array.tolist()
        with pytest.raises(ValueError, match="closed"):
            archive.keys()
        archive.close()


def test_load_everything(paths, array):
    for path in paths:
        assert penstock.open(path).load()["w"].tolist() == array.tolist()


def test_structure(tmp_path):
    torch = pytest.importorskip("torch")
    t = torch.arange(3)
    torch.save({"a": [t, {"b": t}], "n": 3}, tmp_path / "x.pt")
    archive = penstock.open(tmp_path / "x.pt")
    structure = archive.structure
    assert structure["n"] == 3
    assert isinstance(structure["a"][0], penstock.LazyTensor)
    assert structure["a"][0] is structure["a"][1]["b"]
    assert structure["a"][0].load().tolist() == [0, 1, 2]
    assert "version" in archive.metadata
    assert archive.unknown_globals == []


def test_bare_array(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4))
    archive = penstock.open(tmp_path / "x.npy")
    assert archive.format == "npy"
    assert len(archive) == 1
    assert isinstance(archive.structure, penstock.LazyTensor)
    assert archive[archive.keys()[0]][1:3].load().tolist() == [1, 2]


def test_a_lazy_tensor_has_one_name_in_both_languages(paths):
    lazy = penstock.open(paths[0])["w"]
    assert repr(lazy).startswith("penstock.LazyTensor(")
    assert penstock.LazyTensor is type(lazy)


def test_names_of_npz_members(paths):
    archive = penstock.open(next(p for p in paths if p.name == "x.npz"))
    assert archive["w.npy"].shape == archive["w"].shape


def test_files_are_closed(paths):
    before = len(os.listdir("/proc/self/fd"))
    for path in paths:
        archive = penstock.open(path)
        entry = archive["w"]
        archive.close()
        del entry
    assert len(os.listdir("/proc/self/fd")) == before


def test_mapped_slices(paths, array):
    path = next(p for p in paths if p.name == "x.safetensors")
    t = penstock.open(path)["w"][1:3].load(mmap=True)
    assert t.read_only
    assert t.tolist() == array[1:3].tolist()


@pytest.mark.parametrize("name", [0, 1.5, b"a", ("a",), None])
def test_a_name_of_another_type_is_a_type_error(tmp_path, name):
    penstock.save({"a": penstock.ones(2)}, tmp_path / "x.safetensors")
    with pytest.raises(TypeError, match="a name is a str; found"):
        penstock.open(tmp_path / "x.safetensors")[name]


@pytest.mark.parametrize("save", ["penstock", "penstock.torch"])
def test_saving_an_archive_saves_all_that_its_file_holds(tmp_path, save):
    """Its tensors by their flat names, as the mapping has them, would lose nesting and numbers without a word."""
    torch = pytest.importorskip("torch")
    shared = torch.arange(6.0)
    content = {"model": {"w": shared, "part": shared[2:4]}, "epoch": 4, "names": ["a", None]}
    torch.save(content, tmp_path / "a.pt")
    write = importlib.import_module(save).save
    with penstock.open(tmp_path / "a.pt") as archive:
        write(archive, tmp_path / "b.pt")
        write({"inner": [archive, archive]}, tmp_path / "c.pt")
    loaded = torch.load(tmp_path / "b.pt")
    assert loaded["epoch"] == 4
    assert loaded["names"] == ["a", None]
    assert torch.equal(loaded["model"]["w"], shared)
    assert loaded["model"]["w"].untyped_storage().data_ptr() == loaded["model"]["part"].untyped_storage().data_ptr()
    first, second = torch.load(tmp_path / "c.pt")["inner"]
    assert first is second
    assert first["epoch"] == 4


def test_an_archive_of_a_bare_tensor_saves_as_one(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    penstock.save(penstock.open(tmp_path / "a.npy"), tmp_path / "b.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), array)


def test_a_closed_archive_is_shown_as_that(paths):
    archive = penstock.open(paths[0])
    with archive:
        pass
    assert repr(archive) == "penstock.Archive(closed)"


def test_lazy_tensors_are_sequences_of_rows(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    np.save(tmp_path / "number.npy", np.float32(3))
    lazy = penstock.open(tmp_path / "x.npy").structure
    assert [row.load().tolist() for row in lazy] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(TypeError, match="0-d"):
        list(penstock.open(tmp_path / "number.npy").structure)
    with pytest.raises(TypeError, match="not loaded"):
        3 in lazy  # noqa: B015


def test_lazy_tensors_have_no_memory_to_share(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3.0))
    lazy = penstock.open(tmp_path / "x.npy").structure
    with pytest.raises(ValueError, match="copy"):
        lazy.__array__(copy=False)
    assert lazy.__array__("float32").tolist() == [0, 1, 2]
    assert lazy.__array__(copy=True).tolist() == [0, 1, 2]


def test_lazy_tensors_are_saved_as_what_they_are(tmp_path):
    torch = pytest.importorskip("torch")
    state = {"w": torch.ones(3, dtype=torch.float8_e8m0fnu), "b": torch.ones(2, requires_grad=True)}
    torch.save(state, tmp_path / "x.pt")
    archive = penstock.open(tmp_path / "x.pt")
    penstock.save(dict(archive.items()), tmp_path / "y.pt")
    back = penstock.load(tmp_path / "y.pt")
    assert back["b"].requires_grad
    assert back["w"].dtype == "float8_e8m0fnu"
    with penstock.Writer(tmp_path / "z.safetensors") as writer:
        writer.add("w", archive["w"])
    assert penstock.load(tmp_path / "z.safetensors")["w"].equal(back["w"])
