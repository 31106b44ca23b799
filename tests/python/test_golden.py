"""What releases wrote is read by the code of today: states of loaders of each kind, packed samples of each form, shards
and indexes. tests/golden/make.py wrote tests/golden/VERSION by the module of that release."""

import json
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
sys.path.insert(0, str(GOLDEN))
import kinds  # noqa: E402

import penstock as ps  # noqa: E402

VERSIONS = sorted(path.name for path in GOLDEN.iterdir() if (path / "states.json").exists())
STATES = {version: json.loads((GOLDEN / version / "states.json").read_text()) for version in VERSIONS}
PACKED = {version: json.loads((GOLDEN / version / "packed.json").read_text()) for version in VERSIONS}


@pytest.fixture
def files(request, tmp_path, monkeypatch):
    """A copy of a release's files, because indexes may be written anew, and states name files by short paths."""
    shutil.copytree(GOLDEN / request.param / "files", tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")
    return request.param


def each(table):
    return [pytest.param(version, name, id=f"{version} {name}") for version in VERSIONS for name in table[version]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("files", "kind"), each(STATES), indirect=["files"])
def test_a_loader_goes_on_from_a_state_of_that_release(files, kind):
    golden = STATES[files][kind]
    loader = kinds.KINDS[kind]()
    loader.load_state_dict(golden["state"])
    assert kinds.rest_of(loader) == golden["rest"]


@pytest.mark.parametrize(("files", "form"), each(PACKED), indirect=["files"])
def test_packed_samples_of_that_release_are_read(files, form):
    assert [kinds.plain(sample) for sample in ps.packed(f"packed/{form}")] == PACKED[files][form]


@pytest.mark.parametrize("files", VERSIONS, indirect=True)
def test_tar_shards_and_indexes_of_that_release_are_read(files):
    """Indexes are of files at another place and time here, so what they say is looked at and made anew."""
    samples = [kinds.plain(sample) for sample in ps.shards("shards/*.tar", index="shards.index")]
    assert [sample["cls"] for sample in samples] == [sample["cls"] for sample in kinds.TAR_SAMPLES]
    assert [sample["txt"] for sample in samples] == [sample["txt"] for sample in kinds.TAR_SAMPLES]
    assert len(ps.files("clips/*.npy", index="clips.index")) == 12


def test_the_first_release_has_each_kind_of_today():
    """A kind that comes later has its first state in the folder of the release that brings it."""
    assert VERSIONS[0] == "0.1"
    newest = max(VERSIONS, key=lambda version: [int(number) for number in version.split(".")])
    assert set(STATES[newest]) == set(kinds.KINDS)
    assert set(PACKED[newest]) == set(kinds.FORMS)


def test_a_state_of_another_order_is_refused():
    """So that going on is not what any state gives."""
    state = STATES["0.1"]["rows shuffled"]["state"]
    loader = ps.DataLoader(ps.rows(ps.arange(kinds.ROWS)), batch_size=4, shuffle=True, seed=4)
    with pytest.raises(ValueError, match="order"):
        loader.load_state_dict({**state, "order": "sequential"})
