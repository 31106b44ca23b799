"""penstock.open(path, mode="r+"): tensors that are changed in place."""

import numpy as np
import pytest

import penstock


def test_an_array_is_changed_in_its_file(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6.0).reshape(2, 3))
    with penstock.open(path, mode="r+") as archive:
        np.asarray(archive.tensor)[1] = 7
    assert np.load(path).tolist() == [[0, 1, 2], [7, 7, 7]]
    with pytest.raises(penstock.InvalidArgumentError, match="closed"):
        archive.tensor  # noqa: B018


def test_a_checkpoint_of_torchs_has_right_checksums_afterwards(tmp_path):
    torch = pytest.importorskip("torch")
    path = str(tmp_path / "x.pt")
    torch.save({"w": torch.arange(100_000.0), "b": torch.ones(3, dtype=torch.bfloat16), "n": 3}, path)
    archive = penstock.open(path, "r+")
    torch.from_dlpack(archive["b"])[0] = 5
    np.asarray(archive["w"])[::2] = -1
    archive.flush()
    for _ in range(2):
        back = torch.load(path, weights_only=True)
        assert back["b"].tolist() == [5, 1, 1]
        assert back["w"][:4].tolist() == [-1, 1, -1, 3]
        assert penstock.load(path)["w"][:4].tolist() == [-1, 1, -1, 3]
        archive.close()


def test_safetensors_is_a_mapping(tmp_path):
    numpy_api = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "x.safetensors"
    numpy_api.save_file({"a": np.zeros(4), "é": np.ones((2, 2), "i4")}, path)
    with penstock.open(path, mode="r+") as archive:
        assert (archive.format, archive.path) == ("safetensors", str(path))
        assert sorted(archive) == sorted(archive.keys()) == ["a", "é"]
        assert len(archive) == 2
        assert "a" in archive
        assert 3 not in archive
        np.asarray(archive["é"])[0, 1] = 9
        with pytest.raises(penstock.KeyNotFoundError):
            archive["b"]
        with pytest.raises(penstock.InvalidArgumentError):
            archive.tensor  # noqa: B018
    assert numpy_api.load_file(path)["é"].tolist() == [[1, 9], [1, 1]]


def test_what_cannot_be_is_refused(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(6, dtype=">i4"))
    with pytest.raises(penstock.UnsupportedError, match="byte order"):
        penstock.open(path, mode="r+").tensor  # noqa: B018
    np.savez_compressed(tmp_path / "x.npz", a=np.ones(3))
    with pytest.raises(penstock.UnsupportedError, match="compressed"):
        penstock.open(tmp_path / "x.npz", mode="r+")["a"]
    for mode in ("w", "a", "", None, 3):
        with pytest.raises(penstock.InvalidArgumentError, match="mode"):
            penstock.open(path, mode=mode)
    with pytest.raises(penstock.NotFoundError):
        penstock.open(tmp_path / "none.npy", mode="r+")
    assert penstock.open(path, mode="r").format == penstock.open(path, "r").format == "npy"


def test_damage_is_refused_and_never_made_good(tmp_path):
    path = tmp_path / "x.pt"
    for verify in (True, False):
        penstock.save({"w": np.arange(10_000.0), "v": np.ones(3)}, path)
        raw = bytearray(path.read_bytes())
        raw[raw.find(np.arange(10_000.0).tobytes()) + 100] ^= 1
        path.write_bytes(raw)
        with penstock.open(path, mode="r+", verify=verify) as archive:
            np.asarray(archive["v"])[1] = 5
            if verify:
                with pytest.raises(penstock.ChecksumError, match="damaged"):
                    archive["w"]
            else:
                np.asarray(archive["w"])[0] = 3
        assert penstock.open(path)["v"].load().tolist() == [1, 5, 1]
        with pytest.raises(penstock.ChecksumError):
            penstock.load(path)
