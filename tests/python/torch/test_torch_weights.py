"""A model's weights one after another: `penstock.torch.weights`."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading

import pytest
import torch
import torch.distributed.checkpoint as dcp

import penstock
import penstock.torch as pt
from penstock.torch.loading import _lending
from penstock.torch.loading._weights import Unit, _in_order


def state(*names, rows=4):
    random = torch.Generator().manual_seed(len(names))
    return {name: torch.randn(rows, 3, generator=random) for name in names}


def write_sharded(folder):
    """Two shards and their index, beside files that are no part of the model."""
    one, two = state("b", "a", rows=2), state("z", "c")
    pt.save_file(one, folder / "model-00001-of-00002.safetensors")
    pt.save_file(two, folder / "model-00002-of-00002.safetensors")
    shards = {name: f"model-0000{n}-of-00002.safetensors" for n, part in ((2, two), (1, one)) for name in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
    pt.save_file(state("other"), folder / "consolidated.safetensors")
    pt.save_file(state("stale"), folder / "adapter.safetensors")
    torch.save(state("bin"), folder / "pytorch_model.bin")
    return {**one, **two}


def same(found, expected):
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_a_folder_gives_what_its_index_names_in_the_order_of_files_and_bytes(tmp_path):
    expected = write_sharded(tmp_path)
    found = list(pt.weights(tmp_path))
    in_files = [pt.safe_open(path, "pt").offset_keys() for path in sorted(tmp_path.glob("model-*.safetensors"))]
    assert [name for name, _ in found] == [name for names in in_files for name in names]
    same(dict(found), expected)
    same(dict(pt.weights(tmp_path / "model.safetensors.index.json")), expected)


@pytest.mark.parametrize("name", ["model-{:05}-of-00003.safetensors", "pytorch_model-{:05}-of-00003.bin"])
@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_shard_that_is_missing_is_told_of_by_the_names_of_the_others(name, missing, tmp_path):
    for i in {1, 2, 3} - {missing}:
        (pt.save_file if name.endswith(".safetensors") else torch.save)(state(f"w{i}"), tmp_path / name.format(i))
    with pytest.raises(penstock.NotFoundError, match=f"'{name.format(missing)}' is missing"):
        list(pt.weights(tmp_path))


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "model.pt"])
def test_one_file_and_its_folder(name, tmp_path):
    expected = state("x.weight", "y.weight")
    (pt.save_file if name.endswith(".safetensors") else torch.save)(expected, tmp_path / name)
    torch.save({"lr": 1}, tmp_path / "training_args.bin")
    same(dict(pt.weights(tmp_path / name)), expected)
    same(dict(pt.weights(str(tmp_path))), expected)


@pytest.mark.parametrize("names", [("a.pt", "b.pt"), ("a.safetensors", "b.pt"), ("a.pt", "b.safetensors")], ids=str)
def test_a_name_in_two_files_is_an_error_when_they_are_read(tmp_path, names):
    for name in names:
        (torch.save if name.endswith(".pt") else pt.save_file)(state("w", name[:1]), tmp_path / name)
    paths = [tmp_path / name for name in names]
    with pytest.raises(penstock.InvalidArgumentError, match=r"'w' is in .*[ab]\..* too"):
        list(pt.weights(paths))
    assert [name for name, _ in pt.weights(paths, exclude="w")] == ["a", "b"]


def test_a_key_that_is_no_name_is_an_error(tmp_path):
    torch.save({**state("w"), 0: torch.ones(1)}, tmp_path / "a.pt")
    with pytest.raises(penstock.InvalidArgumentError, match="its key 0 is no text"):
        list(pt.weights(tmp_path / "a.pt"))


def test_without_an_index_consolidated_files_are_left_out(tmp_path):
    pt.save_file(state("a"), tmp_path / "consolidated.safetensors")
    assert [name for name, _ in pt.weights(tmp_path)] == ["a"]
    pt.save_file(state("b"), tmp_path / "model.safetensors")
    assert [name for name, _ in pt.weights(tmp_path)] == ["b"]


def test_files_of_a_bin_index(tmp_path):
    one, two = state("a"), state("b", "c")
    torch.save(one, tmp_path / "pytorch_model-00001-of-00002.bin")
    torch.save(two, tmp_path / "pytorch_model-00002-of-00002.bin")
    torch.save(two, tmp_path / "copy.bin")
    shards = {"a": "pytorch_model-00001-of-00002.bin", **dict.fromkeys(two, "pytorch_model-00002-of-00002.bin")}
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": shards}))
    found = list(pt.weights(tmp_path))
    assert [name for name, _ in found] == ["a", "b", "c"]
    same(dict(found), {**one, **two})
    (tmp_path / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(penstock.NotFoundError, match="pytorch_model-00002-of-00002"):
        pt.weights(tmp_path)
    index.write_text("[]")
    with pytest.raises(penstock.CorruptError, match="no index"):
        pt.weights(tmp_path)


def test_a_folder_of_dcp(tmp_path):
    expected = state("w.x", "b")
    dcp.save({"model": expected, "step": 3}, checkpoint_id=str(tmp_path / "all"), no_dist=True)
    same(dict(pt.weights(tmp_path / "all", key="model")), expected)
    with pytest.raises(penstock.NotFoundError, match="key='ema'"):
        pt.weights(tmp_path / "all", key="ema")


def test_a_part_of_a_pt(tmp_path):
    expected = state("w.x")
    torch.save({"model": expected, "step": 3}, tmp_path / "model.pt")
    same(dict(pt.weights(tmp_path, key="model")), expected)
    with pytest.raises(penstock.InvalidArgumentError, match=r"'model' is a dict.*key="):
        list(pt.weights(tmp_path))


def test_nothing_of_a_bin_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    torch.save({"w": torch.ones(2), "evil": Evil()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(penstock.UnsafeError):
        list(pt.weights(tmp_path))


def test_names_are_chosen_by_patterns_and_functions(tmp_path):
    write_sharded(tmp_path)
    assert {name for name, _ in pt.weights(tmp_path, include=["a", "z"])} == {"a", "z"}
    assert {name for name, _ in pt.weights(tmp_path, exclude=["[a-c]"])} == {"z"}
    assert {name for name, _ in pt.weights(tmp_path, include=lambda name: name > "b")} == {"c", "z"}
    assert [name for name, _ in pt.weights(tmp_path, ignore=["*.safetensors*"], files=["*.bin"])] == ["bin"]
    assert list(pt.weights(tmp_path, include=())) == []


@pytest.mark.parametrize("kind", ["safetensors", "bin", "both"])
@pytest.mark.parametrize("option", ["include", "exclude"])
def test_a_pattern_that_matches_no_name_is_an_error(tmp_path, kind, option):
    """Else a typing error leaves the model as it was initialised, and nobody is told."""
    expected = state("model.wq", "model.wk")
    if kind != "bin":
        pt.save_file(expected, tmp_path / "a.safetensors")
    if kind != "safetensors":
        torch.save(expected if kind == "bin" else state("other"), tmp_path / "b.bin")
    paths = sorted(tmp_path.iterdir())
    for patterns, meant in ([["modle.wq"], r"did you mean 'model\.wq'"], [["*wk", "enc.*"], r"there are .*model\.w"]):
        with pytest.raises(penstock.KeyNotFoundError, match=rf"no name matches .*{meant}"):
            list(pt.weights(paths, **{option: patterns}))
    assert len(dict(pt.weights(paths, include=["model.*"], exclude=["*q"]))) == 1
    assert list(pt.weights(paths, include=lambda name: False)) == []


def test_tensors_are_handed_out_behind_the_end_of_the_main_thread(tmp_path):
    pt.save_file({f"t{i}": torch.ones(9) for i in range(9)}, tmp_path / "m.safetensors")
    program = """if 1:
        import sys, threading
        import penstock.torch as pt

        def run():
            threading.main_thread().join()
            options = {"ring_bytes": 40, "threads": 2, "mmap": False}
            print(len(list(pt.weights(sys.argv[1], **options))))
            with pt.safetensors.safe_open(sys.argv[1], "pt") as file:
                print(len(list(file.prefetch())))

        threading.Thread(target=run).start()
    """
    call = [sys.executable, "-c", program, str(tmp_path / "m.safetensors")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=100)
    assert (done.stdout.split(), done.stderr) == (["9", "9"], "")


def test_tensors_are_kept_and_own_their_memory(tmp_path):
    expected = write_sharded(tmp_path)
    kept = dict(pt.weights(tmp_path))
    assert all(tensor.untyped_storage().nbytes() == tensor.nbytes for tensor in kept.values())
    kept["a"].fill_(7)
    for path in tmp_path.iterdir():
        path.unlink()
    same({**kept, "a": expected["a"]}, expected)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda folder: (folder / "model-00002-of-00002.safetensors").unlink(), penstock.NotFoundError, "00002-of"),
        (lambda folder: [path.unlink() for path in folder.iterdir()], penstock.NotFoundError, "no weights are there"),
        (
            lambda folder: (folder / "model-00001-of-00002.safetensors").write_bytes(b"x" * 9),
            penstock.Error,
            "00001-of",
        ),
    ],
)
def test_what_is_wrong_is_told_before_the_first_tensor(change, error, text, tmp_path):
    write_sharded(tmp_path)
    change(tmp_path)
    with pytest.raises(error, match=text):
        pt.weights(tmp_path)


def test_a_name_in_two_files_is_an_error(tmp_path):
    pt.save_file(state("a"), tmp_path / "one.safetensors")
    pt.save_file(state("a", "b"), tmp_path / "two.safetensors")
    with pytest.raises(penstock.InvalidArgumentError, match=r"two.safetensors: tensor 'a' is in .*one.safetensors too"):
        pt.weights(tmp_path)
    assert len(list(pt.weights(tmp_path, ignore=["two*"]))) == 1


@pytest.mark.parametrize("options", [{"ring_bytes": 0}, {"ring_bytes": 1.5}, {"threads": 0}, {"threads": True}])
def test_counts_are_whole_numbers(options, tmp_path):
    with pytest.raises(penstock.InvalidArgumentError, match=next(iter(options))):
        pt.weights(tmp_path, **options)


class Watched:
    """Units that count the bytes that are on their way, and how many of them began."""

    def __init__(self, sizes):
        self.lock = threading.Lock()
        self.begun = []
        self.units = [Unit(size, lambda n=n: self.read(n)) for n, size in enumerate(sizes)]

    def read(self, number):
        with self.lock:
            self.begun.append(number)
        return [(str(number), torch.tensor(number))]


@pytest.mark.parametrize(("ring_bytes", "ahead"), [(1, 1), (10, 1), (20, 2), (35, 3), (1000, 7)])
def test_no_more_than_the_ring_is_on_its_way(ring_bytes, ahead):
    watched = Watched([10] * 8)
    taken = _in_order(watched.units, ring_bytes, 8)
    assert next(taken)[0] == "0"
    rest = [next(taken)[0] for _ in range(2)]
    assert rest == ["1", "2"]
    taken.close()
    assert set(watched.begun) <= set(range(3 + ahead))


def test_units_are_handed_out_in_order_whichever_is_ready_first():
    late = threading.Event()

    def first():
        assert late.wait(60)
        return [("first", torch.ones(1))]

    def second():
        late.set()
        return [("second", torch.ones(1))]

    found = _in_order([Unit(1, first), Unit(1, second)], 2, 2)  # the second is read while the first is waited for
    assert [name for name, _ in found] == ["first", "second"]


def test_a_tensor_larger_than_the_ring_is_read_alone():
    watched = Watched([5, 50, 5])
    assert [name for name, _ in _in_order(watched.units, 10, 2)] == ["0", "1", "2"]


def test_an_error_of_reading_ends_the_iterator_and_its_threads():
    def fail():
        raise penstock.NotFoundError("gone")

    before = threading.active_count()
    found = _in_order([Watched([1]).units[0], Unit(1, fail), Watched([1]).units[0]], 10, 2)
    assert next(found)[0] == "0"
    with pytest.raises(penstock.NotFoundError, match="gone"):
        next(found)
    assert threading.active_count() == before
    assert list(found) == []


LARGE = {f"{n}.weight": torch.full((600, 512), float(n)) for n in range(12)}


@pytest.fixture
def large(tmp_path):
    """A file in the page cache whose tensors are large enough to be lent; the last one never is."""
    path = tmp_path / "model.safetensors"
    pt.save_file(LARGE, path)
    path.read_bytes()
    return path


def mapped(path):
    gc.collect()
    with open("/proc/self/maps") as lines:
        return sum(str(path) in line for line in lines)


def copied(path, at_each=lambda name, tensor: None, **options):
    """What an engine's loop does. The parameters, and in how many steps a tensor was a part of the mapped file."""
    parameters = {name: torch.empty_like(tensor) for name, tensor in LARGE.items()}
    lent = 0
    for name, tensor in pt.weights(path, threads=1, ring_bytes=1, **options):
        parameters[name].copy_(tensor)
        lent += mapped(path) > 0
        at_each(name, tensor)
    return parameters, lent


def test_a_loop_that_copies_gets_parts_of_the_mapped_file_and_leaves_no_mapping(large):
    parameters, lent = copied(large)
    same(parameters, LARGE)
    assert lent == len(LARGE) - 1  # the loop keeps the last one, which is read
    assert mapped(large) == 0
    parameters, lent = copied(large, mmap=False)
    same(parameters, LARGE)
    assert lent == 0


def test_what_is_kept_is_no_part_of_the_file_any_more(large):
    kept = {}

    def keep(name, tensor):
        if name in ("1.weight", "6.weight"):
            kept[name] = tensor[100:300]  # also a part of one
            tensor[100] = -1  # which the loop may do

    before = large.read_bytes()
    copied(large, keep)
    assert large.read_bytes() == before
    assert mapped(large) == 0
    large.write_bytes(b"")  # would end the process that reads a mapping
    for name, tensor in kept.items():
        expected = LARGE[name][100:300].clone()
        expected[0] = -1
        assert torch.equal(tensor, expected), name
        tensor.zero_()


def test_when_much_is_kept_the_rest_is_read(large):
    found = dict(pt.weights(large, threads=1, ring_bytes=1))
    assert mapped(large) == 0
    large.write_bytes(b"")
    same(found, LARGE)
    calls = []
    lend = _lending._lend
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lending, "_lend", lambda *given: calls.append(given) or lend(*given))
        pt.save_file(LARGE, large)
        large.read_bytes()
        list(pt.weights(large, threads=1, ring_bytes=1))
    assert len(calls) < 8


def test_a_loop_that_stops_keeps_what_it_has(large):
    taken = pt.weights(large)
    name, tensor = next(taken)
    taken.close()
    assert mapped(large) == 0
    large.write_bytes(b"")
    assert torch.equal(tensor, LARGE[name])


def test_a_file_that_changes_while_the_loop_copies_is_an_error(large):
    def change(name, tensor):
        if name == "3.weight":
            with open(large, "r+b") as file:
                file.seek(-4, 2)
                file.write(b"\0\0\0\0")

    with pytest.raises(penstock.ChangedError, match=r"model\.safetensors"):
        copied(large, change)


def test_a_file_that_is_cut_is_an_error_where_nothing_is_mapped(large):
    def cut(name, tensor):
        if name == "3.weight":
            large.write_bytes(b"")

    with pytest.raises(penstock.TruncatedError):
        copied(large, cut, mmap=False)


def test_small_tensors_and_those_of_other_formats_are_read(tmp_path):
    write_sharded(tmp_path)
    for _ in pt.weights(tmp_path):
        assert mapped(tmp_path) == 0
    with pytest.raises(penstock.DTypeMismatchError, match="mmap='no'"):
        pt.weights(tmp_path, mmap="no")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
@pytest.mark.parametrize("device", ["cuda:9", "cuda", 9, "xpu"])
def test_a_device_that_is_not_here_is_one_error_everywhere(tmp_path, device):
    path = tmp_path / "model.safetensors"
    pt.safetensors.save_file({"a": torch.ones(3)}, path)
    asks = {
        "weights": lambda: pt.weights(path, device=device),
        "load_file": lambda: pt.safetensors.load_file(path, device=device),
        "load_file, shared": lambda: pt.safetensors.load_file(path, device=device, shared=True),
        "get_tensor": lambda: pt.safetensors.safe_open(path, "pt", device=device).get_tensor("a"),
        "get_slice": lambda: pt.safetensors.safe_open(path, "pt", device=device).get_slice("a")[:1],
        "DataLoader": lambda: next(iter(pt.DataLoader(pt.Rows(torch.ones(4, 2).numpy()), 2, device=device))),
        "DataLoader of torch": lambda: next(iter(pt.DataLoader([torch.ones(2)] * 4, 2, device=device))),
    }
    said = r"found device=('cuda|'xpu|9).*give one that is here, or 'cpu'"
    for name, ask in asks.items():
        with pytest.raises(penstock.NoDeviceError, match=said):
            print(name, ask())


def test_what_is_no_device_is_said(tmp_path):
    for wrong in ("tpu9x", 2.5, None):
        with pytest.raises(penstock.InvalidArgumentError, match=f"found device={wrong!r}"):
            pt.weights("model.safetensors", device=wrong)
    path = tmp_path / "model.safetensors"
    pt.safetensors.save_file({"a": torch.ones(3)}, path)
    of_ours = penstock.zeros(1).device
    assert dict(pt.weights(path, device=of_ours))["a"].tolist() == [1, 1, 1]
    assert pt.safetensors.load_file(path, device=of_ours)["a"].tolist() == [1, 1, 1]
