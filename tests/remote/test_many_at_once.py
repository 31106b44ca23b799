"""Servers are asked for much at once, whatever is loaded: the answers take long, so their number one after the other
would be the time of a load."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from contents import numbers, same

import penstock

torch = pytest.importorskip("torch")

DELAY = 0.05  # of each answer; long enough that requests which are made together overlap
ENOUGH = 12  # of 32 and more that are asked for; a busy machine starts threads late


def saved(content: object) -> bytes:
    out = io.BytesIO()
    torch.save(content, out)
    return out.getvalue()


def checkpoint(tensors: dict[str, torch.Tensor], chunks: int, dim: int = 0) -> dict[str, bytes]:
    """The files of a checkpoint in which each tensor is cut along a dimension; eight ranks have the chunks."""
    from torch.distributed.checkpoint import metadata as meta
    from torch.distributed.checkpoint.filesystem import _StorageInfo

    files: dict[str, bytes] = {f"__{rank}_0.distcp": b"" for rank in range(8)}
    described, places = {}, {}
    for name, tensor in tensors.items():
        boxes, at = [], 0
        for number, piece in enumerate(tensor.chunk(chunks, dim)):
            offset = torch.Size(at if d == dim else 0 for d in range(tensor.dim()))
            at += piece.shape[dim]
            boxes.append(meta.ChunkStorageMetadata(offset, piece.shape))
            file, stream = f"__{number % 8}_0.distcp", saved(piece.clone(memory_format=torch.contiguous_format))
            places[meta.MetadataIndex(name, offset)] = _StorageInfo(file, len(files[file]), len(stream))
            files[file] += stream
        described[name] = meta.TensorStorageMetadata(meta.TensorProperties(dtype=tensor.dtype), tensor.shape, boxes)
    all_of_it = meta.Metadata(state_dict_metadata=described, planner_data=None, storage_data=places)
    return {".metadata": pickle.dumps(all_of_it), **files}


@pytest.fixture
def served(proxy):
    """Puts files on a server that answers late; gives their URL."""

    def serve(**files: bytes) -> str:
        for name, content in files.items():
            proxy.origin.objects[f"/{name}"] = content
        proxy.delay = DELAY
        return proxy.url + "/"

    return serve


def put_checkpoint(served, files: dict[str, bytes]) -> str:
    return served(**{f"ckpt/{name}": content for name, content in files.items()}) + "ckpt/.metadata"


def damaged(content: bytes, at: bytes) -> bytes:
    """The same with another byte in the middle of the payload `at`."""
    place = content.index(at) + len(at) // 2
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def filled(proxy, url: str, into: dict[str, np.ndarray]) -> list:
    """Loads into memory that is there. Gives the requests behind those of opening."""
    penstock.open(url)
    opening = len(proxy.requests)
    proxy.forget()
    penstock.load_into(into, url)
    return proxy.requests[opening:]


def at_once(requests: list) -> int:
    """The most that came while the first of them was waiting for its answer."""
    times = sorted(request.at for request in requests)
    return max(sum(begin <= at < begin + DELAY for at in times) for begin in times)


def equal(found: object, arrays: dict[str, np.ndarray]) -> None:
    """Compares by name."""
    assert sorted(found) == sorted(arrays)
    for name, array in arrays.items():
        assert np.array_equal(np.asarray(found[name]), array), name


WEIGHTS = numbers(64, 10_000)  # chunks of 40 KB


@pytest.mark.parametrize("dim", [0, 1])
def test_the_chunks_of_a_checkpoint(served, proxy, dim):
    """Along the second dimension each chunk is 64 short runs of the tensor."""
    of = {"w": torch.from_numpy(WEIGHTS), "b": torch.arange(640.0)}
    archive = penstock.open(
        put_checkpoint(served, checkpoint(of | {"b": of["b"].reshape(64, 10)}, 64 if dim == 0 else 50, dim))
    )
    proxy.forget()
    loaded = archive.load()
    assert np.array_equal(np.asarray(loaded["w"]), WEIGHTS)
    assert np.array_equal(np.asarray(loaded["b"]).ravel(), np.arange(640.0))
    assert proxy.most_at_once >= ENOUGH
    assert len(proxy.requests) <= 2 * 64


def test_a_slice_of_a_checkpoint_asks_for_its_chunks_alone(served, proxy):
    archive = penstock.open(put_checkpoint(served, checkpoint({"w": torch.from_numpy(WEIGHTS)}, 64)))
    proxy.forget()
    assert np.array_equal(np.asarray(archive["w"][10:40].load()), WEIGHTS[10:40])
    assert proxy.most_at_once >= ENOUGH
    assert len(proxy.requests) <= 30


@pytest.mark.parametrize("dim", [0, 1])
def test_a_damaged_chunk_is_noticed(served, dim):
    files = checkpoint({"w": torch.from_numpy(WEIGHTS)}, 50, dim)
    chunk = torch.from_numpy(WEIGHTS).chunk(50, dim)[11].contiguous().numpy().tobytes()
    files["__3_0.distcp"] = damaged(files["__3_0.distcp"], chunk)
    with pytest.raises(penstock.ChecksumError, match=r"'w'|CRC-32"):
        penstock.load(put_checkpoint(served, files))


ARRAYS = {f"a{i}": np.arange(i, i + 5_000, dtype="f4") for i in range(150)}


def of_arrays(save, **how) -> bytes:
    out = io.BytesIO()
    save(out, **ARRAYS, **how)
    return out.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_headers_of_an_npz(served, proxy, save):
    url = served(**{"x.npz": of_arrays(save)}) + "x.npz"
    archive = penstock.open(url)
    assert proxy.most_at_once >= ENOUGH
    assert len(proxy.requests) <= len(ARRAYS) + 3
    equal(archive.load(), ARRAYS)


def test_the_headers_of_a_pt(served, proxy):
    of = {name: torch.from_numpy(array) for name, array in ARRAYS.items()}
    archive = penstock.open(served(**{"x.pt": saved(of)}) + "x.pt")
    assert proxy.most_at_once >= ENOUGH
    assert len(proxy.requests) <= len(ARRAYS) + 10
    equal(archive.load(), ARRAYS)


def halves() -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array)[:2_000] for name, array in ARRAYS.items()}


def test_records_that_are_read_for_their_crc_alone(served, proxy):
    """Each tensor is a part of its record, all of which the checksum is of."""
    url = served(**{"x.pt": saved(halves())}) + "x.pt"
    into = {name: np.zeros(2_000, "f4") for name in ARRAYS}
    requests = filled(proxy, url, into)
    equal(into, {name: array[:2_000] for name, array in ARRAYS.items()})
    assert at_once(requests) >= min(ENOUGH, len(requests) - 3)
    assert len(requests) <= len(ARRAYS) + 5, "records that lie together are asked for together"


def test_a_large_record_that_is_read_for_its_crc_alone(served, proxy):
    whole = torch.from_numpy(numbers(5_000_000))
    archive = penstock.open(served(**{"x.pt": saved({"w": whole[:1_000]})}) + "x.pt")
    proxy.forget()
    assert np.array_equal(np.asarray(archive["w"].load()), whole[:1_000].numpy())
    assert proxy.most_at_once >= ENOUGH


def test_damage_behind_the_tensor_is_noticed(served):
    content = damaged(saved(halves()), ARRAYS["a77"][2_000:].tobytes())
    with pytest.raises(penstock.ChecksumError):
        penstock.open(served(**{"x.pt": content}) + "x.pt")["a77"].load()


def test_arrays_of_an_npz_into_memory_that_is_there(served, proxy):
    """The header in front of each array belongs to what its checksum is of."""
    into = {name: np.zeros(5_000, "f4") for name in ARRAYS}
    requests = filled(proxy, served(**{"x.npz": of_arrays(np.savez)}) + "x.npz", into)
    equal(into, ARRAYS)
    assert at_once(requests) >= ENOUGH
    content = damaged(of_arrays(np.savez), ARRAYS["a77"].tobytes())
    with pytest.raises(penstock.ChecksumError):
        penstock.load(served(**{"y.npz": content}) + "y.npz")


LARGE = numbers(6_000_000)  # 24 MB: three requests at least


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.pt", "x.safetensors"])
def test_whole_files(served, proxy, tmp_path, name):
    content = LARGE if name.endswith("npy") else {"w": LARGE[:4_000_000], "v": LARGE[4_000_000:]}
    penstock.save(content, tmp_path / name, sync=False)
    url = served(**{name: (tmp_path / name).read_bytes()}) + name
    archive = penstock.open(url)
    proxy.forget()
    same(archive.load(), penstock.load(tmp_path / name))
    assert proxy.most_at_once >= 3
    assert len(proxy.requests) <= 5


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.pt", "x.safetensors"])
def test_large_files_of_a_batch(served, proxy, tmp_path, name):
    penstock.save(LARGE if name.endswith("npy") else {"w": LARGE}, tmp_path / name, sync=False)
    url = served(**{name: (tmp_path / name).read_bytes()}) + name
    dataset = penstock.files([url])
    [batch] = penstock.DataLoader(dataset, batch_size=1)
    found = batch if name.endswith("npy") else batch["w"]
    assert np.array_equal(np.asarray(found)[0], LARGE)
    assert proxy.most_at_once >= 3
