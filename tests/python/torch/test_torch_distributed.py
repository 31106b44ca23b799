"""Distributed tensors (DTensor) beside torch.load; in processes of their own, since torch keeps what they import."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch
import torch.distributed

import penstock
import penstock.torch as pt

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without torch.distributed"
)

SAVE = """
    import os, sys, torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, DTensor, distribute_tensor

    dist.init_process_group("gloo", init_method="file://" + sys.argv[1] + ".store", rank=0, world_size=1)
    mesh = init_device_mesh("cpu", (1,))
    named = init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    whole = torch.arange(6.0).reshape(2, 3)
    values = {
        "sharded": distribute_tensor(whole, mesh, [Shard(1)]),
        "replicated": distribute_tensor(torch.ones(2, dtype=torch.bfloat16), mesh, [Replicate()]),
        "partial": DTensor.from_local(torch.full((3,), 2), mesh, [Partial("sum")]),
        "two dimensions": distribute_tensor(whole, named, [Shard(0), Replicate()]),
        "parameter": torch.nn.Parameter(distribute_tensor(whole, mesh, [Shard(0)])),
        "plain": torch.ones(3),
    }
    torch.save(values, sys.argv[1])
    dist.destroy_process_group()
"""

COMPARE = """
    import logging, sys, torch
    logging.disable()
    import penstock.torch as pt
    import torch.distributed.tensor

    theirs, ours = torch.load(sys.argv[1]), pt.load(sys.argv[1])
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        found = ours[name]
        assert type(found) is type(expected), name
        assert (found.dtype, found.shape, found.stride()) == (expected.dtype, expected.shape, expected.stride()), name
        assert found.requires_grad == expected.requires_grad, name
        assert isinstance(found, torch.nn.Parameter) == isinstance(expected, torch.nn.Parameter), name
        if name != "plain":
            assert found._spec == expected._spec, name
            assert (found.placements, found.device_mesh) == (expected.placements, expected.device_mesh), name
            found, expected = found._local_tensor, expected._local_tensor
        assert torch.equal(found, expected), name
    print("same", len(ours))
"""

TYPED = """
    import logging, sys, torch
    logging.disable()
    import penstock.torch as pt
    import torch.distributed.tensor

    theirs, ours = torch.load(sys.argv[1]), pt.load(sys.argv[1], dtype="float16")
    for name, expected in theirs.items():
        found = ours[name]
        wanted = torch.float16 if expected.is_floating_point() else expected.dtype
        assert found.dtype == wanted, name
        assert (found.shape, found.stride(), found.requires_grad) == (
            expected.shape, expected.stride(), expected.requires_grad), name
        if name != "plain":
            assert found._spec.tensor_meta.dtype == wanted, name
            assert found.placements == expected.placements, name
            found, expected = found._local_tensor, expected._local_tensor
        assert torch.equal(found, expected.to(wanted)), name
    print("same", len(ours))
"""

WITHOUT_IMPORT = """
    import sys
    import penstock.torch as pt
    try:
        pt.load(sys.argv[1])
    except pt.UnknownGlobalsError as error:
        print(error)
"""

BROKEN = """
    import sys, torch, pickle, torch.distributed.tensor
    import penstock, penstock.torch as pt
    from torch.distributed.tensor import DTensor

    class Wrapped:
        def __init__(self, state):
            self.state = state

        def __reduce__(self):
            parts = (DTensor, torch.float32, (2, 3), (3, 1), 0, torch.strided, torch.device("cpu"), False)
            wrapper = torch._utils._rebuild_wrapper_subclass
            return torch._tensor._rebuild_from_type_v2, (wrapper, DTensor, parts, self.state)

    for state in ({}, {"_local_tensor": torch.ones(2, 3)}, {"_local_tensor": 5, "_spec": 6}, None):
        torch.save({"w": Wrapped(state)}, sys.argv[1])
        try:
            pt.load(sys.argv[1])
        except penstock.CorruptError as error:
            assert "DTensor" in str(error), error
            print("refused")
"""


def run(code, path):
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("distributed") / "x.pt"
    run(SAVE, path)
    return path


def test_they_come_back_without_a_process_group(saved):
    assert run(COMPARE, saved) == "same 6\n"


def test_their_type_is_that_of_what_they_hold(saved):
    assert run(TYPED, saved) == "same 6\n"


def test_without_their_module_the_error_names_it(saved):
    assert "import torch.distributed.tensor first" in run(WITHOUT_IMPORT, saved)


def test_what_lacks_parts_is_refused(tmp_path):
    assert run(BROKEN, tmp_path / "x.pt") == "refused\n" * 4


@pytest.mark.filterwarnings("ignore")
def test_a_sharded_checkpoint_loads_and_its_files_are_called_what_they_are(tmp_path):
    from torch.distributed import checkpoint

    checkpoint.save({"a": torch.ones(2), "b": {"c": torch.zeros(3)}}, checkpoint_id=tmp_path)
    for path in (tmp_path, tmp_path / ".metadata"):
        assert torch.equal(pt.load(path)["b"]["c"], torch.zeros(3))
    (shard,) = tmp_path.glob("*.distcp")
    with pytest.raises(penstock.UnsupportedError, match=r"like a \.distcp of torch\.distributed\.checkpoint"):
        pt.load(shard)
