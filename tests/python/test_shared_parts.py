"""Content whose parts are shared: a few dicts that hold each other twice are more ways than any walk can take."""

import io

import numpy as np
import pytest
from nestings import LEVELS, in_dicts, in_lists, in_tuples

import penstock


def _in_lists(part, levels):
    return {"x": in_lists(part, levels)}


def _in_tuples(part, levels):
    return {"x": in_tuples(part, levels)}


NESTINGS = [in_dicts, _in_lists, _in_tuples]


def _depth(content):
    """How often the first part of a part can be taken, each being the second one too."""
    count = 0
    while isinstance(content, (dict, list, tuple)) and len(content) == 2:
        first, second = content.values() if isinstance(content, dict) else content
        assert first is second
        content, count = first, count + 1
    return count


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("nest", NESTINGS)
def test_pt_keeps_what_is_shared(tmp_path, nest, levels):
    content = nest({"t": np.arange(3)}, levels)
    penstock.save(content, tmp_path / "shared.pt")
    assert (tmp_path / "shared.pt").stat().st_size < 20_000
    back = penstock.load(tmp_path / "shared.pt")
    assert _depth(back if nest is in_dicts else back["x"]) == levels
    written = (tmp_path / "shared.pt").read_bytes()
    penstock.save(back, tmp_path / "shared.pt")
    assert (tmp_path / "shared.pt").read_bytes() == written


def test_pt_keeps_cycles(tmp_path):
    content = {"t": np.arange(3)}
    content["own"] = [content, content]
    penstock.save(content, tmp_path / "cycle.pt")
    back = penstock.load(tmp_path / "cycle.pt")
    assert back["own"][0] is back
    assert back["own"][1] is back


@pytest.mark.parametrize("levels", LEVELS)
def test_safetensors_refuses_names_that_multiply(tmp_path, levels):
    with pytest.raises(penstock.LimitError, match=r"so often.*save as \.pt, which keeps what is shared"):
        penstock.save(in_dicts({"t": np.arange(3)}, levels), tmp_path / "shared.safetensors")
    with pytest.raises(penstock.UnsupportedError, match="is an empty dict"):
        penstock.save(in_dicts({}, levels), tmp_path / "shared.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
@pytest.mark.parametrize("nest", NESTINGS)
def test_flat_formats_refuse_what_they_cannot_hold_at_once(tmp_path, suffix, nest):
    with pytest.raises(penstock.Error):
        penstock.save(nest({"t": np.arange(3)}, 60), tmp_path / f"shared.{suffix}")


def test_safetensors_refuses_a_dict_that_holds_itself(tmp_path):
    content = {"t": np.arange(3)}
    content["a"] = content["b"] = content
    with pytest.raises(penstock.LimitError, match="or one holds itself"):
        penstock.save(content, tmp_path / "cycle.safetensors")


def _content_of_file(folder, levels):
    penstock.save(in_dicts({"t": np.arange(3)}, levels), folder / "shared.pt")
    return folder / "shared.pt"


@pytest.mark.parametrize("levels", LEVELS)
def test_load_into_refuses_places_that_multiply(tmp_path, levels):
    path = _content_of_file(tmp_path, levels)
    place = np.zeros(3, "int64")
    with pytest.raises(penstock.LimitError, match="give a target that holds each part once"):
        penstock.load_into(in_dicts({"t": place}, levels), path)
    with pytest.raises(penstock.LimitError, match="choose a part of the file with key="):
        penstock.load_into({"t": place}, path, strict=False)
    penstock.load_into({"t": place}, path, key=["a"] * levels)
    assert place.tolist() == [0, 1, 2]


def test_load_into_fills_parts_that_a_few_ways_lead_to(tmp_path):
    path = _content_of_file(tmp_path, 4)
    place = np.zeros(3, "int64")
    penstock.load_into(in_dicts({"t": place}, 4), path)
    assert place.tolist() == [0, 1, 2]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("nest", NESTINGS)
def test_samples_have_a_bound(tmp_path, nest, levels):
    penstock.save(nest({"t": np.arange(3)}, levels), tmp_path / "shared.pt")
    files = penstock.files([tmp_path / "shared.pt"] * 2)
    for read in (lambda: files[0], lambda: list(penstock.DataLoader(files, batch_size=2))):
        with pytest.raises(penstock.LimitError, match="select what you need with keys"):
            read()
    with pytest.raises(penstock.LimitError, match="select what you need with keys"):
        penstock.pack(files, tmp_path / "packed")


@pytest.mark.parametrize("levels", LEVELS)
def test_samples_without_parts_have_a_bound(tmp_path, levels):
    penstock.save({"t": np.arange(3), "empty": in_dicts({}, levels)}, tmp_path / "shared.pt")
    files = penstock.files([tmp_path / "shared.pt"])
    with pytest.raises(penstock.LimitError, match="select what you need with keys"):
        files[0]
    assert penstock.files([tmp_path / "shared.pt"], keys=["t"])[0]["t"].tolist() == [0, 1, 2]


def test_samples_with_long_keys_have_a_bound(tmp_path):
    penstock.save({"k" * 1_000_000: list(range(5000))}, tmp_path / "long.pt")
    with pytest.raises(penstock.LimitError, match="of keys; select what you need"):
        penstock.files([tmp_path / "long.pt"])[0]


def test_samples_with_a_few_long_keys_are_read(tmp_path):
    key = "k" * 10_000
    penstock.save({key: {key: [np.arange(3), 1.5]}}, tmp_path / "long.pt")
    sample = penstock.files([tmp_path / "long.pt"])[0]
    assert sample[key][key][0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("levels", LEVELS)
def test_moving_keeps_what_is_shared(levels):
    moved = penstock.to(in_dicts({"t": penstock.ones((2,))}, levels), "cpu", copy=True)
    assert _depth(moved) == levels


def test_nested_lists_beyond_memory_are_refused_at_once():
    with pytest.raises(penstock.OutOfMemoryError):
        penstock.tensor(_in_lists(1.0, 59)["x"])


def test_keys_with_dots_that_lead_many_ways_end(tmp_path):
    part = {"t": np.arange(3)}
    for _ in range(60):
        part = {"a": part, "a.a": part}
    penstock.save(part, tmp_path / "dots.pt")
    with pytest.raises(penstock.KeyNotFoundError):
        penstock.load(tmp_path / "dots.pt", key="a." * 60 + "nothing")


def test_content_in_memory_is_bounded_too(tmp_path):
    content = io.BytesIO(_content_of_file(tmp_path, 60).read_bytes())
    assert _depth(penstock.load(content)) == 60
