"""Files that penstock.torch.load refuses, or does not believe."""

from __future__ import annotations

import fractions
import gc
import io
import json
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import torch
from load_pairs import (
    Model,
    rewritten,
    rewritten_storage,
    same,
)

import penstock
import penstock.torch as pt
import penstock.torch.safetensors as ps


class TestFiles:
    def test_objects_with_read(self, path):
        value = {"x": torch.randn(3)}
        torch.save(value, path)
        for file in (io.BytesIO(path.read_bytes()), path.open("rb"), str(path), path):
            same(pt.load(file), value)
        shifted = io.BytesIO(b"12345" + path.read_bytes())
        shifted.seek(5)
        same(pt.load(shifted), value)

    @pytest.mark.parametrize("in_memory", [True, False])
    def test_legacy_files_one_behind_the_other(self, path, in_memory):
        values = [{"x": torch.randn(3)}, [1, "a"], torch.arange(5)[1:]]
        with path.open("wb") as file:
            file.write(b"ahead")
            for value in values:
                torch.save(value, file, _use_new_zipfile_serialization=False)
            file.write(b"behind")
        places = []
        for load in (torch.load, pt.load):
            with io.BytesIO(path.read_bytes()) if in_memory else path.open("rb") as file:
                file.seek(5)
                places.append([])
                for value in values:
                    same(load(file), value)
                    places[-1].append(file.tell())
                assert file.read() == b"behind"
        assert places[0] == places[1]
        with pytest.raises(penstock.Error):
            pt.load(path)

    @pytest.mark.parametrize("zipped", [True, False])
    def test_objects_that_read_a_little_at_a_time(self, path, zipped):
        value = {"x": torch.randn(300)}
        torch.save(value, path, _use_new_zipfile_serialization=zipped)

        class Slow(io.BytesIO):
            def read(self, size=-1):
                return super().read(100 if size is None or size < 0 else min(size, 100))

        same(pt.load(Slow(path.read_bytes())), value)
        same(torch.load(Slow(path.read_bytes())), value)

    @pytest.mark.parametrize(("given", "error"), [("text", ValueError), (5, TypeError), (None, EOFError)])
    def test_objects_that_read_no_bytes(self, given, error):
        class Odd(io.BytesIO):
            def read(self, size=-1):
                return given

        with pytest.raises(error) as caught:
            pt.load(Odd())
        assert isinstance(caught.value, penstock.Error)

    def test_a_file_that_has_lost_its_name(self, path):
        torch.save(torch.ones(3), path)
        with path.open("rb") as file:
            path.unlink()
            same(pt.load(file), torch.ones(3))

    def test_tensors_outlive_the_bytes(self, path):
        torch.save(torch.arange(1000), path)
        data = bytearray(path.read_bytes())
        loaded = pt.load(io.BytesIO(bytes(data)))
        gc.collect()
        assert loaded.sum() == 499500

    def test_what_cannot_be_read(self, path):
        with pytest.raises(FileNotFoundError):
            pt.load(path)
        with pytest.raises(AttributeError, match="read"):
            pt.load(5)
        path.write_bytes(b"no tensors")
        with pytest.raises(penstock.UnknownFormatError):
            pt.load(path)
        with pytest.raises(penstock.UnknownFormatError, match="memory"):
            pt.load(io.BytesIO(b"no tensors"))

    def test_other_formats(self, tmp_path):
        np.save(tmp_path / "x.npy", np.arange(6).reshape(2, 3))
        same(pt.load(tmp_path / "x.npy"), torch.arange(6).reshape(2, 3))


class Evil:
    ran = False

    def __reduce__(self):
        return (setattr, (Evil, "ran", True))


class TestUnknown:
    def test_code_is_named_and_never_run(self, path):
        torch.save({"x": torch.ones(2), "evil": Evil(), "also": Model}, path)
        with pytest.raises(pickle.UnpicklingError) as caught:
            pt.load(path)
        assert isinstance(caught.value, penstock.UnsafeError)
        assert "builtins.setattr" in str(caught.value)
        assert f"{Model.__module__}.Model" in str(caught.value)
        assert str(path) in str(caught.value)
        assert not Evil.ran

    def test_kept_as_inert_objects(self, path):
        torch.save({"x": torch.ones(2), "evil": Evil()}, path)
        loaded = pt.load(path, unknown="keep")
        assert torch.equal(loaded["x"], torch.ones(2))
        assert isinstance(loaded["evil"], penstock.Opaque)
        assert "builtins.setattr" in repr(loaded["evil"])
        assert not Evil.ran

    def test_whatever_would_run_code_is_refused(self, path):
        torch.save(1, path)
        with pytest.raises(penstock.UnsafeError, match="weights_only"):
            pt.load(path, weights_only=False)
        with pytest.raises(penstock.UnsafeError, match="pickle_module"):
            pt.load(path, pickle_module=pickle)
        assert pt.load(path, weights_only=True) == 1
        with pytest.raises(ValueError, match="unknown"):
            pt.load(path, unknown="ignore")

    def test_attributes_cannot_hide_methods(self, path):
        tensor = torch.ones(2)
        tensor.tag = "kept"
        tensor.__dict__["numpy"] = "hidden"
        torch.save(tensor, path)
        loaded = pt.load(path)
        assert loaded.tag == "kept"
        assert callable(loaded.numpy)


class TestHostileComposites:
    """Parts that do not fit together: torch would read outside its memory."""

    def test_sparse_indices(self, path):
        coo = torch.sparse_coo_tensor([[0, 7]], [1.0, 2.0], (4,), check_invariants=False)
        torch.save(coo, path)
        with pytest.raises(penstock.CorruptError, match=r"sparse COO tensor .* size is inconsistent"):
            pt.load(path)

    @pytest.mark.parametrize("rows", [[0, 1 << 28, 1 << 29], [0, -1, 2], [0, 3, 2]])
    def test_compressed_rows_of_more_than_is_there(self, path, rows, monkeypatch):
        def unwanted(*args):
            raise AssertionError("counted through the rows")

        monkeypatch.setattr(torch, "repeat_interleave", unwanted)
        torch.save(torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 4)), path)
        rewritten_storage(path, torch.tensor([0, 1, 2]), torch.tensor(rows))
        with pytest.raises(penstock.CorruptError, match="sparse CSR tensor") as caught:
            pt.load(path, verify=False)
        assert caught.value.path == str(path)

    @pytest.mark.parametrize("offsets", [[0, 60], [-1, 6], [4, 2]])
    def test_jagged_offsets(self, path, offsets):
        values = torch.randn(6, 2)
        torch.save(torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 6])), path)
        rewritten_storage(path, torch.tensor([0, 6]), torch.tensor(offsets))
        with pytest.raises(penstock.CorruptError, match="jagged"):
            pt.load(path, verify=False)

    def test_jagged_lengths_that_wrap(self, path):
        jagged = torch.nested.nested_tensor_from_jagged(torch.randn(6, 2), torch.tensor([1, 6]), torch.tensor([5]))
        torch.save(jagged, path)
        rewritten_storage(path, torch.tensor([5]), torch.tensor([2**63 - 1]))
        with pytest.raises(penstock.CorruptError, match="jagged"):
            pt.load(path, verify=False)

    def test_nested_offsets(self, path):
        nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)])
        torch.save(nested, path)
        rewritten_storage(path, torch.tensor([0, 6]), torch.tensor([0, 60]))
        with pytest.raises(penstock.CorruptError, match="nested"):
            pt.load(path)


class Called:
    """A call with these arguments."""

    def __init__(self, function, *arguments):
        self.parts = function, arguments

    def __reduce__(self):
        return self.parts


def renamed(path, name):
    """The archive with another name in place of fractions.Fraction."""
    module, _, attribute = name.rpartition(".")
    return rewritten(path, lambda data: data.replace(b"cfractions\nFraction\n", f"c{module}\n{attribute}\n".encode()))


class TestNamesOfOurs:
    """Files that name calls like what Penstock makes of torch's, whose parts nobody has checked."""

    @pytest.mark.parametrize(
        "name",
        ["torch.sparse_coo_tensor", "torch.sparse_csr_tensor", "torch.storage.TypedStorage", "torch.quantized"],
    )
    def test_are_named(self, path, name):
        parts = torch.eye(2).to_sparse_csr()
        arguments = parts.crow_indices(), parts.col_indices(), parts.values(), (2, 2)
        torch.save(Called(fractions.Fraction, *arguments), path)
        path = renamed(path, name)
        with pytest.raises((pickle.UnpicklingError, RuntimeError)):
            torch.load(path)
        with pytest.raises(penstock.UnsafeError, match=name):
            pt.load(path)
        kept = pt.load(path, unknown="keep")
        assert kept.type_name == f"{name}()"
        assert torch.equal(kept.args[0], parts.crow_indices())

    @pytest.mark.parametrize("name", ["torch.sparse_coo_tensor", "torch.sparse_csr_tensor"])
    def test_are_not_saved_as_tensors(self, path, name):
        torch.save([Called(fractions.Fraction, torch.eye(2), torch.ones(3), torch.ones(2), (7, 7))], path)
        with pytest.raises(penstock.UnsupportedError, match=name):
            penstock.save(penstock.load(renamed(path, name)), path)

    @pytest.mark.parametrize("name", ["torch.sparse_coo_tensor", "torch.per_foo"])
    def test_other_names_are_not_saved_as_layouts_and_schemes(self, path, name):
        torch.save([fractions.Fraction], path)
        with pytest.raises(penstock.UnsupportedError, match=name):
            penstock.save(penstock.load(renamed(path, name)), path)

    @pytest.mark.parametrize("kind", [torch.UntypedStorage, torch.Size, np.ndarray, np.float32])
    def test_are_no_classes_of_tensors(self, path, kind):
        call = torch.ones(3).__reduce_ex__(2)
        torch.save(Called(torch._tensor._rebuild_from_type_v2, call[0], kind, call[1], None), path)
        with pytest.raises((pickle.UnpicklingError, TypeError)):
            torch.load(path)
        with pytest.raises(penstock.Error):
            pt.load(path)

    def test_storages_are_not_made_of_tensors(self, path):
        torch.save(Called(torch.UntypedStorage, torch.eye(2).to_sparse()), path)
        with pytest.raises(penstock.UnsafeError, match="UntypedStorage"):
            pt.load(path)


def unknown_safetensors(path, dtype):
    header = json.dumps({"a": {"dtype": dtype, "shape": [2], "data_offsets": [0, 16]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(range(16)))
    return path


IMPORTS = """
import sys, torch, penstock, penstock.torch as pt, penstock.torch.safetensors as ps
before = set(sys.modules)
for load in (pt.load, lambda path: pt.load(path, unknown="keep"), ps.load_file):
    try:
        load(sys.argv[1])
    except Exception as error:
        pass
print([name for name in set(sys.modules) - before if name.startswith("torch._inductor")])
"""


def test_names_in_a_file_import_nothing(tmp_path):
    """torch imports modules when they are asked for as attributes."""
    named = tmp_path / "named.pt"
    with zipfile.ZipFile(named, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02ctorch\n_inductor\n.")
        archive.writestr("archive/version", b"3\n")
    for path in (named, unknown_safetensors(tmp_path / "x.safetensors", "_inductor")):
        ran = subprocess.run([sys.executable, "-c", IMPORTS, str(path)], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == "[]", path


@pytest.mark.parametrize("dtype", ["int8", "float64", "quint8", "float", "complex128", "int64"])
def test_types_that_safetensors_lacks_are_none_of_ours(tmp_path, dtype):
    path = unknown_safetensors(tmp_path / "x.safetensors", dtype)
    for load in (ps.load_file, pt.load, lambda path: ps.load_file(path, backend="pread")):
        with pytest.raises(Exception, match="safetensors type") as refused:
            load(path)
        assert str(path) in str(refused.value)
        assert isinstance(refused.value, (penstock.Error, ps.SafetensorError))
    tensor = penstock.load(path)["a"]
    assert str(tensor.dtype) == f"safetensors type '{dtype}'"
    assert tensor.view_bytes().reshape(-1).tolist() == list(range(16))
    with pytest.raises(penstock.Error):
        penstock.save({"a": tensor}, tmp_path / "x.pt")


class _ArrayInAFile:
    def __reduce__(self):
        return np.ones(2).__reduce__()


@pytest.mark.parametrize("value", [{_ArrayInAFile(): 1}, {_ArrayInAFile()}, frozenset([_ArrayInAFile()])], ids=type)
def test_parts_without_a_hash_name_the_file(tmp_path, value):
    path = tmp_path / "x.pt"
    torch.save([value], path)
    with pytest.raises(penstock.UnsupportedError, match="cannot hash") as caught:
        pt.load(path)
    assert caught.value.path == str(path)
