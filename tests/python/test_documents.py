"""Files of tokens of Megatron and llm.c: as files of a known format, and as documents."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import token_files

import penstock

FOUND = Path(__file__).resolve().parents[3] / "shared" / "found"


def sequences(dtype, *lengths):
    random = np.random.default_rng(sum(lengths))
    return [random.integers(0, 100, length).astype(dtype) for length in lengths]


def arrays(dataset):
    return [sample.numpy() for sample in dataset]


def same(found, wanted):
    assert [(a.dtype, a.tolist()) for a in found] == [(a.dtype, a.tolist()) for a in wanted]


@pytest.mark.parametrize("dtype", token_files.CODES)
def test_documents_of_megatron(tmp_path, dtype):
    corpus = [sequences(dtype, 7, 0, 300), [], sequences(dtype, 1), sequences(dtype, 40, 2)]
    path = token_files.megatron(tmp_path / "corpus", corpus)
    documents = penstock.documents(path)
    same(arrays(documents), token_files.megatron_documents(path))
    same(arrays(penstock.documents(path, sequences=True)), [one for document in corpus for one in document])
    same(arrays(pickle.loads(pickle.dumps(documents))), arrays(documents))
    assert penstock.lengths(documents) == [307, 0, 1, 42]
    content = penstock.load(f"{path}.idx")
    assert list(content) == ["tokens", "lengths", "offsets", "documents"]
    assert content["tokens"].numpy().tobytes() == Path(f"{path}.bin").read_bytes()
    assert penstock.rows(f"{path}.idx", "tokens")[0].item() == corpus[0][0][0]


def test_documents_in_a_loader(tmp_path):
    path = token_files.megatron(tmp_path / "corpus", [sequences("uint16", 5, 6), sequences("uint16", 9)])
    for mmap in (True, False, None):
        with penstock.DataLoader(
            penstock.documents(path, mmap=mmap), batch_size=2, shuffle=True, collate=penstock.pad(lengths=True)
        ) as loader:
            batch = next(iter(loader))
        assert sorted(batch["lengths"].tolist()) == [9, 11]


@pytest.mark.parametrize("form", ["llmc", "megatron"])
def test_documents_of_several_files_are_joined_in_one_order(tmp_path, form):
    """Windows over shards are those of one array with the same documents, by NumPy alone but for the order."""
    tokens, lengths = [], []
    for shard in range(5):
        corpus = [np.arange(n, dtype="uint16") + 1000 * shard + 1 for n in (7, 300, 1, 40 + shard)]
        if form == "llmc":
            for document in corpus:
                document[0] = 50256
            token_files.llmc(tmp_path / f"train_{shard}.bin", np.concatenate(corpus))
        else:
            token_files.megatron(tmp_path / f"train_{shard}", [[document] for document in corpus])
        tokens += corpus
        lengths += map(len, corpus)
    names = "train_*.bin" if form == "llmc" else "train_*.idx"
    listed = sorted(tmp_path.glob(names))
    one = penstock.rows(np.concatenate(tokens)).slices(lengths=lengths)
    for documents in (penstock.documents(tmp_path / names), penstock.documents(listed)):
        assert penstock.lengths(documents) == lengths
        for join in ("ordered", "shuffled", None):
            found, wanted = (data.windows(64, shift=1, join=join).cast("int64") for data in (documents, one))
            assert len(found) == len(wanted)
            for epoch in (0, 1):
                ours, theirs = (
                    penstock.DataLoader(data, batch_size=5, shuffle=True, seed=3) for data in (found, wanted)
                )
                for loader in (ours, theirs):
                    loader.set_epoch(epoch)
                for (x, y), (u, v) in zip(ours, theirs, strict=True):
                    assert (x.tolist(), y.tolist()) == (u.tolist(), v.tolist())
    again = pickle.loads(pickle.dumps(documents.windows(64, join="shuffled")))
    same(arrays(again), arrays(one.windows(64, join="shuffled")))
    joined = np.concatenate(tokens)
    for i, window in enumerate(documents.windows(100, join="ordered")):
        np.testing.assert_array_equal(window, joined[100 * i : 100 * i + 100])


def test_corpora_are_mixed_by_weights(tmp_path):
    one = token_files.megatron(tmp_path / "one", [[np.full(3, 1, "int32")] for _ in range(60)])
    other = token_files.megatron(tmp_path / "other", [[np.full(3, 2, "int32")] for _ in range(20)])
    mixed = penstock.mix([penstock.documents(one), penstock.documents(other)], [0.75, 0.25])
    firsts = [sample[0].item() for sample in mixed]
    assert firsts.count(2) * 3 == pytest.approx(firsts.count(1), abs=3)


@pytest.mark.parametrize(("dtype", "begin"), [("uint16", 50256), ("uint32", 128000)])
def test_documents_of_llmc(tmp_path, dtype, begin):
    corpus = [np.array([begin, *range(n)], dtype) for n in (3, 0, 200)]
    path = token_files.llmc(tmp_path / "train_000001.bin", np.concatenate(corpus))
    assert penstock.open(path).format == "llmc"
    assert penstock.load(path).numpy().tolist() == np.concatenate(corpus).tolist()
    same(arrays(penstock.documents(path)), corpus)
    token_files.llmc(tmp_path / "train_000002.bin", np.array([9, begin, 4], dtype))
    rest = [np.array([9], dtype), np.array([begin, 4], dtype)]
    shards = penstock.documents(tmp_path / "train_*.bin")
    same(arrays(shards), [*corpus, *rest])
    same(arrays(pickle.loads(pickle.dumps(shards))), [*corpus, *rest])
    listed = penstock.documents([tmp_path / "train_000002.bin", str(path)])
    same(arrays(listed), [*rest, *corpus])
    # The header may also be skipped by hand, as a program of nanoGPT's does.
    skipped = penstock.rows(path, dtype=dtype, shape=-1, offset=1024)
    assert len(skipped) == 206
    with pytest.raises(penstock.InvalidArgumentError, match="format llmc"):
        penstock.rows(path, dtype=dtype, shape=-1)


def test_documents_of_an_array(tmp_path):
    tokens = np.array([1, 2, 0, 3, 0, 0, 4], "uint16")
    tokens.tofile(tmp_path / "x.bin")
    array = penstock.raw(tmp_path / "x.bin", "uint16")
    found = penstock.documents(array, begin=0)
    assert [a.tolist() for a in arrays(found)] == [[1, 2], [0, 3], [0], [0, 4]]
    same(arrays(pickle.loads(pickle.dumps(found))), arrays(found))
    with pytest.raises(penstock.InvalidArgumentError, match="sequences=True beside an array"):
        penstock.documents(array, sequences=True, begin=0)
    with pytest.raises(penstock.InvalidArgumentError, match="begin="):
        penstock.documents(array)


def test_an_index_that_lies(tmp_path):
    path = token_files.megatron(tmp_path / "corpus", [sequences("int32", 4, 5), sequences("int32", 3)])
    whole = bytearray(Path(f"{path}.idx").read_bytes())

    def error(at, value, width, **options):
        hostile = whole.copy()
        hostile[at : at + width] = int(value).to_bytes(width, "little", signed=True)
        Path(f"{path}.idx").write_bytes(hostile)
        with pytest.raises(penstock.Error) as raised:
            penstock.documents(path, **options)
        assert raised.value.path.startswith(str(path))
        return raised.value

    assert "length -1" in str(error(34, -1, 4))
    assert "takes 400 bytes" in str(error(34, 100, 4))
    assert "beginning of no token" in str(error(34 + 12, 3, 8))
    assert "of another index" in str(error(34 + 12, 1 << 40, 8))
    assert isinstance(error(18, 1 << 59, 8), penstock.TruncatedError)
    assert isinstance(error(26, 1 << 60, 8), penstock.TruncatedError)
    assert "sequences=True" in str(error(34 + 12 + 8, 0, 8))
    assert isinstance(error(17, 9, 1), penstock.UnsupportedError)
    assert isinstance(error(9, 2, 8), penstock.UnsupportedError)
    Path(f"{path}.idx").write_bytes(whole)
    Path(f"{path}.bin").unlink()
    with pytest.raises(FileNotFoundError, match=r"corpus\.bin.*not there"):
        penstock.documents(path)


def test_a_folder_does_not_stand_for_them(tmp_path):
    token_files.llmc(tmp_path / "train.bin", np.arange(9, dtype="uint16"))
    token_files.megatron(tmp_path / "corpus", [sequences("int32", 4)])
    np.save(tmp_path / "x.npy", np.arange(3))
    assert [Path(path).name for path in penstock.files(tmp_path).paths] == ["x.npy"]


@pytest.mark.skipif(not FOUND.exists(), reason="files by others are not here")
def test_files_by_others():
    tokens = np.fromfile(FOUND / "tokens.bin", "uint16")
    assert penstock.load(FOUND / "tokens.bin", dtype="uint16", shape=-1).numpy().tolist() == tokens.tolist()
    assert penstock.load(FOUND / "llmc.bin").numpy().tolist() == tokens.tolist()
    documents = penstock.documents(FOUND / "megatron")
    assert penstock.lengths(documents) == [701, 1299, 1000]
    assert np.concatenate(arrays(documents)).tolist() == tokens.tolist()
    assert penstock.lengths(penstock.documents(FOUND / "megatron.bin", sequences=True)) == [700, 1, 1299, 1000]
