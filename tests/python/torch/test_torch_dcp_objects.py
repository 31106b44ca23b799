"""Objects beside the tensors of a distributed checkpoint: StorageWriter takes what StorageReader reads, and neither
believes what a file says."""

from __future__ import annotations

import argparse
import enum
import io
import os
import pickle
import random
import resource
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import metadata as tm

import penstock
import penstock.torch as pt
from penstock.torch.dcp import StorageReader, StorageWriter
from penstock.torch.dcp._metadata import metadata_of

OBJECTS = {
    "array": np.arange(6.0).reshape(2, 3),
    "scalar": np.float32(1.5),
    "numpy state": np.random.RandomState(1).get_state(),
    "python state": random.Random(1).getstate(),
    "frozen": frozenset({1, "a"}),
    "nested": (1, (2, frozenset({3})), None),
}


def equal(a, b):
    if isinstance(b, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(b, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in b)
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


def failure(call):
    with pytest.raises(dcp.api.CheckpointException) as caught:
        call()
    return caught.value.failures[0][0]


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("by_torch", [False, True])
def test_what_load_reads_is_written_and_read(tmp_path, name, by_torch):
    state = {"w": torch.ones(2), "object": OBJECTS[name]}
    writer = dcp.FileSystemWriter(tmp_path / "ck") if by_torch else StorageWriter(tmp_path / "ck")
    dcp.save(state, storage_writer=writer, no_dist=True)
    found = {"w": torch.zeros(2), "object": None}
    dcp.load(found, storage_reader=StorageReader(tmp_path / "ck"), no_dist=True)
    assert equal(found["object"], OBJECTS[name])
    torch.save(state, tmp_path / "x.pt")
    assert equal(pt.load(tmp_path / "x.pt")["object"], OBJECTS[name])


def test_what_it_does_not_read_is_refused_when_it_is_written(tmp_path):
    state = {"w": torch.ones(2), "args": argparse.Namespace(lr=0.5)}

    def save(**options):
        dcp.save(state, storage_writer=StorageWriter(tmp_path / "ck", **options), no_dist=True)

    def load(**options):
        found = {"w": torch.zeros(2), "args": None}
        dcp.load(found, storage_reader=StorageReader(tmp_path / "ck", **options), no_dist=True)
        return found["args"]

    error = failure(save)
    assert isinstance(error, penstock.DTypeMismatchError)
    assert "add_safe_globals([argparse.Namespace])" in str(error)
    assert error.tensor == "args"
    assert not list((tmp_path / "ck").iterdir())
    save(weights_only=False)
    error = failure(load)
    assert isinstance(error, penstock.UnsafeError)
    assert "add_safe_globals([argparse.Namespace])" in str(error)
    assert load(weights_only=False).lr == 0.5
    with torch.serialization.safe_globals([argparse.Namespace]):
        save()
        assert load().lr == 0.5


def metadata(pickled):
    return metadata_of(pickled, "ck/.metadata")


def test_metadata_asks_for_no_memory_and_imports_nothing():
    program = """
        import resource, sys
        from penstock.torch.dcp._metadata import metadata_of
        import penstock
        limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + (4 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        bomb = b"\\x80\\x02}r\\xff\\xff\\xff\\x7f."
        encoded = b"\\x80\\x02cbuiltins\\nstr\\nB\\x01\\x00\\x00\\x00aX\\x06\\x00\\x00\\x00cp1026\\x86R."
        codec = b"\\x80\\x02c_codecs\\nencode\\nX\\x01\\x00\\x00\\x00aX\\x06\\x00\\x00\\x00cp1026\\x86R."
        for data in (bomb, encoded, codec):
            try:
                metadata_of(data, "ck/.metadata")
            except penstock.Error as error:
                assert "ck/.metadata" in str(error)
            else:
                raise SystemExit("taken")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
        assert "encodings.cp1026" not in sys.modules
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_that_claims_much_is_not_read_whole(tmp_path):
    (tmp_path / ".metadata").write_bytes(b"\x80\x04\x8d" + (3 << 30).to_bytes(8, "little"))
    os.truncate(tmp_path / ".metadata", 3 << 30)
    with pytest.raises(penstock.LimitError, match="longer than any name") as caught:
        StorageReader(tmp_path).read_metadata()
    assert caught.value.path == str(tmp_path / ".metadata")


def test_an_objects_stream_asks_for_no_memory(tmp_path):
    """The planner's own unpickler never sees what the file says."""
    state = {"object": (1, "a")}
    dcp.save(state, storage_writer=StorageWriter(tmp_path, weights_only=False), no_dist=True)
    file = next(tmp_path.glob("*.distcp"))
    bomb = b"\x80\x02}r\xff\xff\xff\x7f."
    described = dcp.FileSystemReader(tmp_path).read_metadata()
    for place in described.storage_data.values():
        place.offset, place.length = 0, len(bomb)
    (tmp_path / ".metadata").write_bytes(pickle.dumps(described))
    file.write_bytes(bomb)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"object": None}
    error = failure(lambda: dcp.load(found, storage_reader=StorageReader(tmp_path), no_dist=True))
    assert isinstance(error, penstock.Error)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 << 10


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_metadata_of_any_protocol(tmp_path, protocol):
    dcp.save({"w": torch.arange(4), "n": {"e": 3}}, checkpoint_id=tmp_path, no_dist=True)
    theirs = dcp.FileSystemReader(tmp_path).read_metadata()
    assert metadata(pickle.dumps(theirs, protocol)) == theirs


class _MembersByName(pickle.Pickler):
    """As Python 3.11.2 pickles, which Debian 12 has."""

    def reducer_override(self, value):
        return (getattr, (type(value), value.name)) if isinstance(value, enum.Enum) else NotImplemented


@pytest.mark.parametrize("memory_format", list(tm._MEM_FORMAT_ENCODING), ids=lambda member: member.name)
def test_metadata_with_memory_formats_by_name(tmp_path, memory_format):
    dcp.save({"w": torch.arange(4)}, checkpoint_id=tmp_path, no_dist=True)
    theirs = dcp.FileSystemReader(tmp_path).read_metadata()
    known = (torch.contiguous_format, torch.channels_last, torch.preserve_format)
    theirs.state_dict_metadata["w"].properties.memory_format = known[memory_format.value]
    written = io.BytesIO()
    _MembersByName(written).dump(theirs)
    assert b"getattr" in written.getvalue()
    assert metadata(written.getvalue()) == theirs
    (tmp_path / ".metadata").write_bytes(written.getvalue())
    assert penstock.load(tmp_path)["w"].numpy().tolist() == [0, 1, 2, 3]


def test_metadata_that_takes_other_attributes_is_refused(tmp_path):
    class Taken:
        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            return getattr, self.arguments

    for arguments in [(tm._MEM_FORMAT_ENCODING, "__class__"), (tm.Metadata, "__init__"), (torch.Size, "numel")]:
        with pytest.raises(penstock.UnsafeError, match="nothing was run"):
            metadata(pickle.dumps(Taken(*arguments), 2))
