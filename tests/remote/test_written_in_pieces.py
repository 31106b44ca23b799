"""Objects that penstock.Writer writes piece by piece: the bytes of a file here, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import every_dialect
from contents import numbers, same
from fault_proxy import Fault
from refusals import has_no_secret, refused
from written import MEGA, bytes_of, kill_in_third_part

import penstock

sys.path.append(str(Path(__file__).parents[1] / "python"))
from ctrl_c import answers_ctrl_c


def write_rows(place, rows: int, **options) -> None:
    """An .npy of 1,000 numbers a row."""
    with penstock.Writer(place, **options) as writer:
        for seed in range(rows):
            writer.append_row(numbers(1000, seed=seed))


def write_tensors(place, tensors: int, elements: int) -> None:
    """Every third tensor has a number of bytes that would put the next one off."""
    with penstock.Writer(place) as writer:
        for number in range(tensors):
            count = elements + (number % 3 == 0)
            writer.add(f"layer.{number:05}.weight", numbers(count, seed=number).astype("f2"))


@pytest.mark.parametrize("rows", [3, 5000])  # one request; three parts, of which the first is sent last
def test_rows(server, tmp_path, rows):
    write_rows(f"{server.base}/pieces/x.npy", rows)
    write_rows(tmp_path / "x.npy", rows, sync=False)
    assert bytes_of(server, "pieces/x.npy") == (tmp_path / "x.npy").read_bytes()
    assert np.load(tmp_path / "x.npy").shape == (rows, 1000)


SHAPES = {"small": (4, 50), "in parts": (6, 2 * MEGA), "a header that outgrows its room": (2000, 5000)}


# Only a .safetensors has all names in one header; an .npz of 2,000 arrays takes 2,000 requests to open.
@pytest.mark.parametrize(
    ("extension", "size"),
    [
        *((extension, size) for extension in ("npz", "safetensors", "pt") for size in ("small", "in parts")),
        ("safetensors", "a header that outgrows its room"),
    ],
)
def test_tensors(server, tmp_path, extension, size):
    write_tensors(f"{server.base}/pieces/x.{extension}", *SHAPES[size])
    write_tensors(tmp_path / f"x.{extension}", *SHAPES[size])
    assert bytes_of(server, f"pieces/x.{extension}") == (tmp_path / f"x.{extension}").read_bytes()
    same(penstock.load(f"{server.base}/pieces/x.{extension}"), penstock.load(tmp_path / f"x.{extension}"))


def test_what_is_there_cannot_be_appended_to(server, tmp_path):
    write_rows(f"{server.base}/pieces/new.npy", 2, resume=True)
    assert penstock.load(f"{server.base}/pieces/new.npy").shape == (2, 1000)
    with refused(penstock.UnsupportedError, "cannot be appended to", f"{server.base}/pieces/new.npy"):
        penstock.Writer(f"{server.base}/pieces/new.npy", resume=True)
    assert penstock.load(f"{server.base}/pieces/new.npy").shape == (2, 1000)


@every_dialect
def test_an_object_that_others_wrote_meanwhile_is_not_replaced_by_resume(dialect, faulty, memory):
    writer = penstock.Writer(f"{dialect.base}/x.npy", resume=True)
    memory.objects["/bucket/x.npy"] = b"others"
    writer.append(numbers(3, 2))
    with refused(penstock.InvalidArgumentError, "object of this name"):
        writer.finish()
    assert memory.objects["/bucket/x.npy"] == b"others"


@pytest.mark.parametrize("url", ["https://h/x.npy", "hf://owner/repo/x.npy"])
def test_what_cannot_be_written_to(url):
    with refused(penstock.UnsupportedError, "s3://, gs:// or az://"):
        penstock.Writer(url)


def test_nothing_is_there_without_an_end(faulty, memory):
    def breaks_off() -> None:
        with penstock.Writer("s3://bucket/x.npy") as writer:
            writer.append(numbers(5 * MEGA))
            writer.append(np.zeros(3, "i8"))

    with pytest.raises(penstock.DTypeMismatchError):
        breaks_off()
    writer = penstock.Writer("s3://bucket/x.npy")
    writer.append(numbers(5 * MEGA))
    del writer
    assert memory.begun == 2
    assert not memory.objects
    assert not memory.uploads


REFUSED = {"a part": "partNumber=2", "the first part": "partNumber=1", "the end": "?uploadId"}


@every_dialect
@pytest.mark.parametrize("target", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("extension", ["npy", "npz", "safetensors", "pt"])
def test_a_refusal_leaves_nothing(dialect, faulty, memory, target, extension):
    body = "<Error><Code>AccessDenied</Code></Error>"
    faulty.faults = [Fault(status=403, target=dialect.at(target), methods=["PUT", "POST"], body=body)]
    with refused(penstock.PermissionDeniedError, f"{dialect.base}/x.{extension}") as failed:
        if extension == "npy":
            write_rows(f"{dialect.base}/x.{extension}", 5000)
        else:
            write_tensors(f"{dialect.base}/x.{extension}", 6, 2 * MEGA)
    has_no_secret(failed.value)
    assert not memory.objects
    assert not memory.uploads


@every_dialect
def test_what_passes_is_not_noticed(dialect, faulty, memory, tmp_path):
    faulty.faults = [Fault(status=503, times=3), Fault(reset=True, target=dialect.at("partNumber=1"), times=1)]
    write_rows(f"{dialect.base}/x.npy", 5000)
    write_rows(tmp_path / "x.npy", 5000, sync=False)
    assert memory.objects["/bucket/x.npy"] == (tmp_path / "x.npy").read_bytes()
    assert not memory.uploads


SLOW = """with penstock.Writer("BASE/x.npy") as writer:
    for row in range(40): writer.append(np.zeros(1 << 20, "f4"))"""


@every_dialect
def test_a_process_that_is_killed_leaves_no_object(dialect, faulty, memory):
    program = "import numpy as np, penstock\n" + SLOW.replace("BASE", dialect.base)
    kill_in_third_part(faulty, program, dialect)
    assert not memory.objects


def test_ctrl_c_takes_the_parts_back(faulty, memory, tmp_path):
    faulty.faults = [Fault(hang=True, target="partNumber=3")]
    setup = 'import numpy as np; writer = penstock.Writer("s3://bucket/x.npy")'
    answers_ctrl_c(tmp_path, setup, "[writer.append(np.zeros(1 << 20, 'f4')) for row in range(40)]")
    assert memory.begun >= 1
    assert not memory.objects
    assert not memory.uploads


FORKED = """import os, numpy as np, penstock
writer = penstock.Writer("s3://bucket/x.npy")
writer.append(np.arange(5 << 20, dtype="f4"))
child = os.fork()
if child == 0:
    try:
        writer.append(np.zeros(9, "f4"))
    except penstock.InvalidArgumentError as error:
        assert "forked" in str(error), error
        del writer
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
writer.append(np.arange(3, dtype="f4"))
writer.finish()
"""


def test_a_forked_process_has_no_part_in_it(faulty, memory):
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert len(memory.objects["/bucket/x.npy"]) == 128 + 4 * ((5 << 20) + 3)
    assert not memory.uploads


def test_a_trace_goes_into_a_bucket(server, tmp_path):
    for number in range(4):
        penstock.save(numbers(5, seed=number), tmp_path / f"{number}.npy", sync=False)
    loader = penstock.DataLoader(penstock.files(tmp_path), batch_size=2, trace=f"{server.base}/pieces/trace.json")
    assert len(list(loader)) == 2
    loader.write_trace()
    assert b"traceEvents" in bytes_of(server, "pieces/trace.json")
