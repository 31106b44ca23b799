"""Ranks that read a file once, in real processes with gloo. A program: `once_ranks.py FOLDER WORLD...`.

It imports torch once and forks each world, because importing it in every rank would take most of the time. Rank 0
prints one word a case; a rank that fails prints why and ends the program.
"""

from __future__ import annotations

import datetime
import json
import os
import resource
import shutil
import signal
import sys
import traceback
from pathlib import Path

import torch
import torch.distributed as dist

import penstock
import penstock.torch as pt
from penstock.torch.loading import _once, _weights_once

torch.set_num_threads(1)  # before anything is computed: threads do not survive a fork

_once._LEAST = 1 << 16  # so that tensors are taken apart
_once._ROUND = 1 << 18

STATE = {
    "rows": torch.arange(300_000, dtype=torch.float32).reshape(300, 1000),
    "one": torch.arange(200_000, dtype=torch.int64).reshape(1, 200_000),
    "half": torch.ones(7, 5, dtype=torch.bfloat16),
    "empty": torch.empty(0, 4),
    "scalar": torch.tensor(2.5),
}
TIED = STATE | {"tied": STATE["rows"], "turned": STATE["rows"].T, "step": 17, "flag": [torch.tensor([True, False])]}
BYTES = sum(tensor.untyped_storage().nbytes() for tensor in STATE.values())
FILES = {"m.pt": BYTES + 2, "m.safetensors": BYTES}  # with how many bytes there are to read


def write(folder):
    pt.save_file({"rows": STATE["rows"]}, folder / "two.safetensors")
    pt.save(TIED, folder / "m.pt")
    pt.save_file(STATE, folder / "m.safetensors")


def expected(name):
    return TIED if name == "m.pt" else STATE


def require_same(loaded, name):
    for key, value in expected(name.name).items():
        if isinstance(value, torch.Tensor):
            assert loaded[key].dtype == value.dtype, key
            assert loaded[key].stride() == value.stride(), key
            assert torch.equal(loaded[key], value), key
    if name.name == "m.pt":
        assert loaded["step"] == 17
        assert loaded["tied"].data_ptr() == loaded["rows"].data_ptr()


def bytes_read():
    """By system calls of this process."""
    with open("/proc/self/io") as lines:
        return int(next(line for line in lines if line.startswith("rchar:")).split()[1])


def error_of(call):
    try:
        call()
    except penstock.Error as error:
        return error
    raise AssertionError("nothing was raised")


def failure_of(call):
    """Python's own errors too."""
    try:
        call()
    except Exception as error:
        return error
    return None


def of_all(value):
    out = [None] * dist.get_world_size()
    dist.all_gather_object(out, value)
    return out


def refusing(*_):
    """As a system without memory that processes share."""
    raise penstock.UnsupportedError("memfd_create: Operation not permitted")


def forbidden(*_):
    """As memory of another user."""
    raise PermissionError(1, "Operation not permitted")


def in_memory(folder, rank, size):
    """One block that all map: each byte is read by one rank, and what one writes later is its own."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 16, 1 << 16))
    for name, nbytes in FILES.items():
        report = {}
        before = bytes_read()
        loaded = pt.load(folder / name, ranks="auto", report=report)
        assert bytes_read() - before < report["read_bytes"] + 150_000  # the index, and what gloo says
        require_same(loaded, folder / name)
        assert report["way"] == "shared memory", report
        told = of_all(report["read_bytes"])
        assert sum(told) == nbytes, told
        assert name == "m.pt" or max(told) < nbytes * 0.4, told
        if rank == 0:
            loaded["rows"].zero_()
        dist.barrier()
        assert loaded["rows"][1, 1] == (0 if rank == 0 else 1001)
        dist.barrier()
    yield "private"
    loaded = pt.load(folder / "m.pt", ranks=dist.group.WORLD, shared=True)
    require_same(loaded, folder / "m.pt")
    dist.barrier()
    if rank == 1:
        loaded["rows"][1, 1] = -1
    dist.barrier()
    assert loaded["turned"][1, 1] == -1
    named = pt.load_file(folder / "m.safetensors", ranks="auto", shared=True)
    assert all(torch.equal(named[key], STATE[key]) for key in STATE)
    assert list(named) == list(pt.load_file(folder / "m.safetensors"))
    dist.barrier()
    if rank == 1:
        named["rows"][1, 1] = -1
    dist.barrier()
    assert named["rows"][1, 1] == -1
    error = error_of(lambda: pt.load_file(folder / "m.pt", ranks="auto"))
    assert isinstance(error, pt.SafetensorError), error
    yield "shared"
    for name in FILES:
        for options in ({}, {"shared": True}):
            loaded = pt.load(folder / name, ranks="auto", dtype=torch.float64, **options)
            alone = pt.load(folder / name, dtype=torch.float64)
            assert all(torch.equal(loaded[key], alone[key]) for key in STATE)
            assert loaded["half"].dtype == torch.float64
            dist.barrier()
            if rank == 1:
                loaded["rows"][1, 1] = -1
            dist.barrier()
            assert (loaded["rows"][1, 1] == -1) == (rank == 1 or bool(options))
    error = error_of(lambda: pt.load(folder / "m.pt", ranks="auto", dtype=torch.float16 if rank == 1 else None))
    assert "rank 1 has other tensors, or other arguments" in str(error), error
    error = error_of(lambda: pt.load(folder / "m.pt", "meta" if rank == 1 else "cpu", ranks="auto"))
    assert "rank 1 has other tensors, or other arguments" in str(error), error
    yield "converted"


def by_messages(folder, rank, size):
    """Where memory cannot be shared, the bytes are sent."""
    _once.new_file, kept = refusing, _once.new_file
    for name, nbytes in FILES.items():
        report = {}
        require_same(pt.load(folder / name, ranks="auto", report=report), folder / name)
        assert report["way"] == "torch.distributed", report
        assert "Operation not permitted" in report["why"], report
        assert sum(of_all(report["read_bytes"])) == nbytes
        converted = pt.load(folder / name, ranks="auto", dtype="float64")
        assert torch.equal(converted["rows"], STATE["rows"].double())
        assert torch.equal(converted["one"], STATE["one"])
    error = error_of(lambda: pt.load(folder / "m.pt", ranks="auto", shared=True))
    assert isinstance(error, penstock.UnsupportedError), error
    assert "memfd_create: Operation not permitted" in str(error), error
    yield "sent"
    some = dist.new_group([0, 2])
    if rank != 1:
        require_same(pt.load(folder / "m.pt", ranks=some, report=report), folder / "m.pt")
        assert report["ranks"] == 2
        found = dict(pt.weights(folder / "m.safetensors", ranks=some))
        assert all(torch.equal(found[key], STATE[key]) for key in STATE)
    yield "some"
    _once.new_file = kept if rank == 0 else refusing  # which only the first rank needs
    report = {}
    require_same(pt.load(folder / "m.pt", ranks="auto", report=report), folder / "m.pt")
    assert report["way"] == "shared memory", report
    _once.new_file = kept
    opened = _once.opened
    if rank == 1:
        _once.opened = forbidden
    require_same(pt.load(folder / "m.pt", ranks="auto", report=report), folder / "m.pt")
    assert report["way"] == "torch.distributed", report
    assert "rank 1 cannot open the memory of rank 0" in report["why"], report
    _once.opened = opened
    yield "first"


def faults(folder, rank, size):
    """What is wrong on one rank is said on all, which can go on together."""
    own = folder / f"rank{rank}.pt"
    shutil.copy(folder / "m.pt", own)
    os.utime(own, ns=(10**18, 10**18))
    dist.barrier()
    require_same(pt.load(own, ranks="auto"), folder / "m.pt")  # copies are alike

    missing = error_of(lambda: pt.load(own if rank != 1 else folder / "none.pt", ranks="auto"))
    assert isinstance(missing, penstock.NotFoundError) if rank == 1 else "rank 1 could not open" in str(missing)
    assert "none.pt" in str(missing)
    yield "missing"

    if rank == 2:
        os.utime(own, ns=(10**18, 10**18 + 1))
    other = error_of(lambda: pt.load(own, ranks="auto"))
    assert isinstance(other, penstock.InvalidArgumentError), other
    assert "rank 2 has another version of the file" in str(other), other
    yield "version"

    part = error_of(lambda: pt.load(folder / "m.pt", key="rows" if rank == 1 else "one", ranks="auto"))
    assert "rank 1 has other tensors, or other arguments" in str(part), part
    shared = error_of(lambda: pt.load(folder / "m.pt", ranks="auto", shared=rank == 1))
    assert "rank 1 has other tensors, or other arguments" in str(shared), shared
    yield "plan"

    for way in ("memory", "messages"):
        kept = _once.new_file
        if way == "messages":
            _once.new_file = refusing
        shutil.copy(folder / "m.pt", own)
        os.utime(own, ns=(10**18, 10**18))
        read = _once._read

        def cut(*arguments, read=read):
            if rank == 2:
                os.truncate(own, 1000)
            read(*arguments)

        dist.barrier()
        _once._read = cut
        short = error_of(lambda: pt.load(own, ranks="auto"))
        _once._read, _once.new_file = read, kept
        assert isinstance(short, penstock.TruncatedError) if rank == 2 else "rank 2 could not read" in str(short), short
        yield f"cut {way}"
    private = _once.private_storage

    def unmappable(*_):
        raise penstock.OutOfMemoryError("no addresses are left")

    if rank == 1:
        _once.private_storage = unmappable
    full = error_of(lambda: pt.load(folder / "m.pt", ranks="auto"))
    assert isinstance(full, penstock.OutOfMemoryError) if rank == 1 else "rank 1 could not read" in str(full), full
    _once.private_storage = private
    yield "unmappable"
    wrong = error_of(lambda: pt.load(own, ranks=3))
    assert isinstance(wrong, penstock.DTypeMismatchError), wrong
    require_same(pt.load(folder / "m.pt", ranks="auto"), folder / "m.pt")
    yield "after"


def arguments(folder, rank, size):
    """What one rank alone cannot do as it was asked is said on all, before anyone waits for it."""
    model, named = folder / "m.pt", folder / "m.safetensors"
    wrong = rank == 1
    absent = "cuda:7" if wrong else "cpu"
    zeros = {"rows": torch.zeros(300, 1000)}
    with pt.safe_open(named, "pt", ranks="auto") as file, pt.safe_open(named, "pt", ranks="auto") as closed:
        if wrong:
            closed.__exit__()
        calls = [
            lambda: pt.load(model, absent, ranks="auto"),
            lambda: pt.load(model, 3 if wrong else "cpu", ranks="auto"),
            lambda: pt.load(model, unknown="all" if wrong else "error", ranks="auto"),
            lambda: pt.load(model, dtype="int8" if wrong else "float32", ranks="auto"),
            lambda: pt.load(model, mmap=wrong, ranks="auto"),
            lambda: pt.load(model, shared="yes" if wrong else False, ranks="auto"),
            lambda: pt.load_into(zeros, model, dtype=torch.float64 if wrong else None, ranks="auto", strict=False),
            lambda: pt.load_file(named, absent, ranks="auto"),
            lambda: pt.weights(named, threads=0 if wrong else 1, ranks="auto"),
            lambda: pt.weights(named, device=absent, ranks="auto"),
            lambda: pt.safe_open(folder / "none.safetensors" if wrong else named, "pt", ranks="auto"),
            lambda: pt.safe_open(named, "tf" if wrong else "pt", ranks="auto"),
            lambda: pt.safe_open(named, 3 if wrong else "pt", ranks="auto"),
            lambda: file.prefetch(device=absent, ranks="auto"),
            lambda: file.prefetch(threads=0 if wrong else 1, ranks="auto"),
            lambda: file.prefetch(["rows"] if wrong else None, ranks="auto"),
            lambda: closed.prefetch(ranks="auto"),
        ]
        for number, call in enumerate(calls):
            error = failure_of(call)
            assert wrong or "rank 1 could not open what this rank was to read with it: " in str(error), (number, error)
            assert not wrong or "rank 1" not in str(error), (number, error)
            dist.barrier()
        assert torch.equal(file.prefetch(ranks="auto").take("rows"), STATE["rows"])  # all go on together
    error = error_of(lambda: pt.safe_open(named if wrong else folder / "two.safetensors", "pt", ranks="auto"))
    assert "rank 1 has other tensors" in str(error), error
    yield "arguments"


def shards(folder, rank, size):
    """A shard that is missing, or cut, on one machine alone."""
    own = folder / f"shards{rank}"
    own.mkdir()
    places = {}
    for number, names in enumerate((("rows", "half"), ("one", "empty", "scalar"))):
        last = own / f"model-{number}.safetensors"
        pt.save_file({name: STATE[name] for name in names}, last)
        places.update(dict.fromkeys(names, last.name))
    index = own / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    for path in own.iterdir():
        os.utime(path, ns=(10**18, 10**18))
    dist.barrier()
    calls = [
        lambda: pt.load(index, ranks="auto"),
        lambda: pt.load_file(index, ranks="auto"),
        lambda: dict(pt.weights(own, ranks="auto")),
        lambda: pt.load_into({"one": torch.zeros(1, 200_000)}, index, ranks="auto", strict=False),
    ]
    for call in calls:
        call()
    for harm, kind in ((lambda: os.truncate(last, 5000), penstock.Error), (last.unlink, penstock.NotFoundError)):
        if rank == 2:
            harm()
        for call in calls:
            error = error_of(call)
            assert last.name in str(error), error
            assert isinstance(error, kind) if rank == 2 else "rank 2 could not open" in str(error), error
    yield "shards"


def into(folder, rank, size):
    """Targets of each rank are filled from what all have read together."""
    for name in FILES:
        target = {key: torch.zeros_like(tensor) for key, tensor in STATE.items()}
        target["half"] = torch.zeros(7, 5, dtype=torch.float64)  # is converted
        keys = pt.load_into(target, folder / name, ranks="auto", strict=False)
        assert not keys.missing_keys
        assert torch.equal(target["rows"], STATE["rows"])
        assert torch.equal(target["half"], STATE["half"].double())
    yield "filled"
    wrong = {"rows": torch.zeros(2)} if rank == 1 else {"rows": torch.zeros(300, 1000)}
    said = ""
    try:
        pt.load_into(wrong, folder / "m.safetensors", ranks="auto", strict=False)
    except RuntimeError as error:
        said = str(error)
    assert ("size mismatch" in said) == (rank == 1), said  # which the others need not hear of
    yield "mismatch"


def taken(folder, rank, size):
    """Weights one after another: each is read by one rank."""
    model = folder / "model"
    if rank == 0:
        model.mkdir()
        pt.save_file({key: STATE[key] for key in ("rows", "half")}, model / "a.safetensors")
        pt.save_file({key: STATE[key] for key in ("one", "empty", "scalar")}, model / "b.safetensors")
    dist.barrier()
    for way in ("memory", "messages"):
        kept = _once.new_file
        if way == "messages":
            _once.new_file = refusing
        read = _weights_once._load_into
        mine = 0

        def counting(archive, numbers, places, read=read):
            nonlocal mine
            mine += sum(place.nbytes for place in places)
            read(archive, numbers, places)

        _weights_once._load_into = counting
        for ring in (1 << 16, 1 << 22, 1 << 30):
            mine = 0
            found = dict(pt.weights(model, ranks="auto", ring_bytes=ring))
            assert list(found) == list(dict(pt.weights(model)))
            assert all(torch.equal(found[key], STATE[key]) for key in STATE)
            found["rows"].zero_()  # each has memory of its own
            dist.barrier()
            assert sum(of_all(mine)) == BYTES
        found = dict(pt.weights(folder / "m.pt", ranks="auto", exclude=["step", "flag"]))
        assert torch.equal(found["turned"], TIED["turned"])
        yield f"taken {way}"

        taker = pt.weights(model, ranks="auto", ring_bytes=1 << 16)
        if rank == 1:
            next(taker)
            taker.close()
        else:
            error = error_of(lambda taker=taker: list(taker))
            assert "rank 1 has stopped taking tensors" in str(error), error
        yield f"stopped {way}"

        def failing(archive, numbers, places, read=read):
            if rank == 2:
                raise penstock.TruncatedError("it was cut")
            read(archive, numbers, places)

        _weights_once._load_into = failing
        error = error_of(lambda: dict(pt.weights(model, ranks="auto")))
        assert isinstance(error, penstock.TruncatedError) if rank == 2 else "rank 2 could not read" in str(error), error
        _weights_once._load_into, _once.new_file = read, kept
    for blocks in (_weights_once._Blocks, _weights_once._SharedBlocks):

        def full(self, tensor, each):
            raise torch.OutOfMemoryError("no memory is left")

        kept, blocks.owned = blocks.owned, full if rank == 1 else blocks.owned
        with_memory = blocks is _weights_once._SharedBlocks
        new_file = _once.new_file
        _once.new_file = new_file if with_memory else refusing
        error = failure_of(lambda: list(pt.weights(model, ranks="auto", ring_bytes=1 << 16)))
        assert isinstance(error, torch.OutOfMemoryError) if rank == 1 else "rank 1 could not take" in str(error), error
        _once.new_file, blocks.owned = new_file, kept
    left_out = ["step", "flag"] if rank != 1 else []
    error = error_of(lambda: list(pt.weights(folder / "m.pt", ranks="auto", exclude=left_out)))
    assert "rank 1 could not take what the file holds" in str(error) if rank != 1 else "'step'" in str(error), error
    error = error_of(lambda: pt.weights(model if rank != 1 else folder / "none", ranks="auto"))
    assert isinstance(error, penstock.NotFoundError) if rank == 1 else "rank 1 could not open" in str(error), error
    error = error_of(lambda: pt.weights(model, include=["rows"] if rank == 1 else ["*"], ranks="auto"))
    assert "rank 1 has other tensors, or other arguments" in str(error), error
    yield "refused"


def own_rows(rank, size):
    first, last = 300 * rank // size, 300 * (rank + 1) // size
    return slice(max(first - 10, 0), last)  # which others want too, in part


def parts(folder, rank, size):
    """Whole tensors and a rank's own rows: what any rank wants is read once."""
    path = folder / "m.safetensors"
    for way in ("memory", "messages"):
        kept = _once.new_file
        if way == "messages":
            _once.new_file = refusing
        plan = {"rows": own_rows(rank, size), "one": None, "scalar": None, "empty": None}
        report = {}
        with pt.safe_open(path, "pt") as file:
            found = dict(file.prefetch(plan, ranks="auto", report=report))
            assert found.keys() == plan.keys()
            assert all(torch.equal(found[key], STATE[key]) for key in ("one", "scalar", "empty"))
            assert torch.equal(found["rows"], STATE["rows"][plan["rows"]])
            told = of_all(report["read_bytes"])
            assert sum(told) == 300 * 4000 + 200_000 * 8 + 4, told  # "half" is wanted by nobody
            assert max(told) < sum(told) * 0.4, told
            assert (report["way"] == "shared memory") == (way == "memory"), report
            some = {"half": None} if rank == 0 else {"rows": slice(7, 9), "half": slice(1, 1)}
            found = file.prefetch(some, ranks="auto", report=report)
            assert torch.equal(found.take("half"), STATE["half"] if rank == 0 else STATE["half"][1:1])
            assert rank == 0 or torch.equal(found.take("rows"), STATE["rows"][7:9])
            assert sum(of_all(report["read_bytes"])) == 2 * 4000 + 70
        yield f"parts {way}"
        _once.new_file = kept
    with pt.safe_open(path, "pt") as file:
        error = error_of(lambda: file.prefetch({"none" if rank == 1 else "one": None}, ranks="auto"))
        assert isinstance(error, pt.SafetensorError) or rank != 1
        assert "does not contain tensor none" in str(error), error
        assert rank == 1 or "rank 1 could not" in str(error), error
        error = error_of(lambda: file.prefetch({"rows": slice(0, 301) if rank == 2 else None}, ranks="auto"))
        assert "out of range for 300 rows" in str(error), error
    other = folder / "m.safetensors" if rank else folder / "other.safetensors"
    if rank == 0:
        pt.save_file({"rows": torch.zeros(2)}, other)
    with pt.safe_open(other, "pt") as file:
        error = error_of(lambda: file.prefetch(ranks="auto"))
        assert "has other tensors, or other arguments" in str(error), error
    yield "parts refused"


def absent(folder, rank, size):
    """A rank that never comes is waited for until the time-out of the group."""
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if rank != size - 1:
        error = error_of(lambda: pt.load(folder / "m.pt", ranks=group))
        assert isinstance(error, penstock.InputOutputError), error
        assert "within the time-out of the process group" in str(error), error
    dist.barrier()
    yield "timed out"


def killed(folder, rank, size):
    """A rank that dies while it reads ends the others."""

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    if rank == size - 1:
        _once._read = die
    error = error_of(lambda: pt.load(folder / "m.pt", ranks="auto"))
    assert isinstance(error, penstock.InputOutputError), error
    assert "waited for the others in vain" in str(error), error
    yield "killed"


def killed_in_the_middle(folder, rank, size):
    """Of a model's weights."""
    taker = pt.weights(folder / "m.safetensors", ranks="auto", ring_bytes=1 << 16)
    next(taker)
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    error = error_of(lambda: list(taker))
    assert "waited for the others in vain" in str(error), error
    yield "killed"


def killed_while_sending(folder, rank, size):
    _once.new_file = refusing
    yield from killed(folder, rank, size)


WORLDS = {
    f.__name__: f
    for f in (
        in_memory,
        by_messages,
        faults,
        arguments,
        shards,
        into,
        taken,
        parts,
        absent,
        killed,
        killed_in_the_middle,
        killed_while_sending,
    )
}


def run(world, folder, size):
    pids = []
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                meeting = f"file://{folder}/meeting-{world}"
                limit = datetime.timedelta(seconds=60)
                dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=size, timeout=limit)
                for done in WORLDS[world](folder, rank, size):
                    if rank == 0:
                        print(done, flush=True)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        pids.append(pid)
    failed = False
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        was_to_die = world.startswith("killed") and pid == pids[-1]
        failed = failed or status != (signal.SIGKILL if was_to_die else 0)
    if failed:
        sys.exit(f"a rank of {world} failed")


if __name__ == "__main__":
    place = Path(sys.argv[1])
    write(place)
    for each in sys.argv[2:]:
        run(each, place, 3)
