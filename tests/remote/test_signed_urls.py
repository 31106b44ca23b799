"""The query of a signed URL, which is as good as a password, is in no output: not in errors, names, reports or pages,
of Python or of the command. Neither is a shared access signature of Azure."""

from __future__ import annotations

import html
import io
import pickle
import subprocess
import urllib.parse
from pathlib import Path

import numpy as np
import pytest
from contents import contents, npy_of, numbers
from fault_proxy import Fault

import penstock
import penstock.numpy

SECRET = "sIgNaTuRe0123456789abcdef"
QUERY = f"?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature={SECRET}"
TARGETS = {
    "good.npy": npy_of(numbers(4, 4)),
    "other.npy": npy_of(numbers(6, 4, seed=1)),
    "bad.npy": npy_of(numbers(4, 4))[:-8],
    "text.npy": b"AccessKeyId: AKIASECRETKEY",
    "good.pt": contents()["small.pt"],
    "good.safetensors": contents()["small.safetensors"],
}


@pytest.fixture
def signed(proxy, settings):
    settings(PENSTOCK_REMOTE_TIMEOUT=5, PENSTOCK_REMOTE_RETRY_SECONDS=0)
    proxy.origin.objects |= {f"/b/{name}{QUERY}": content for name, content in TARGETS.items()}
    return lambda name: f"{proxy.url}/b/{name}{QUERY}"


SAS = f"sv=2021-12-02&sr=c&sp=rwdl&sig={SECRET}%2B%3D"


@pytest.fixture(params=["http", "az"])
def either(request, proxy, settings):
    """The same, or objects of Azure's store, whose signature is a setting and goes into each request's query."""
    if request.param == "http":
        return request.getfixturevalue("signed")
    settings(PENSTOCK_REMOTE_TIMEOUT=5, PENSTOCK_REMOTE_RETRY_SECONDS=0)
    settings(AZURE_STORAGE_BLOB_ENDPOINT=proxy.url, AZURE_STORAGE_ACCOUNT="acct", AZURE_STORAGE_SAS_TOKEN=f"?{SAS}")
    proxy.origin.objects |= {f"/b/{name}?{SAS}": content for name, content in TARGETS.items()}
    return "az://b/{}".format


def texts_of(error: BaseException) -> str:
    out = ""
    each: BaseException | None = error
    while each is not None:
        out += repr(each) + str(each) + repr(vars(each)) + repr(getattr(each, "filename", None))
        each = each.__cause__ or each.__context__
    return out


BAD = ("bad.npy", "text.npy", "missing.npy")


def fails(call, url) -> str:
    with pytest.raises(Exception) as failed:  # noqa: PT011 - whatever it is, its texts are asked
        call(url)
    return texts_of(failed.value)


def loaded(dataset, **options):
    return list(penstock.DataLoader(dataset, batch_size=2, **options))


def explode(value):
    raise ValueError("no")


CALLS = {
    "load": penstock.load,
    "open": penstock.open,
    "rows": penstock.rows,
    "sample": lambda url: penstock.files([url])[0],
    "raw sample": lambda url: penstock.files([url], raw=True)[0] and penstock.load(url),
    "loader": lambda url: loaded(penstock.files([url])),
    "threads": lambda url: loaded(penstock.files([url] * 4), num_workers=2),
    "map": lambda url: penstock.files([url]).map(explode)[0],
    "map in a loader": lambda url: loaded(penstock.files([url]).map(explode)),
    "lengths": lambda url: penstock.lengths(penstock.files([url])),
    "load_into": lambda url: penstock.load_into({"x": np.zeros(3)}, url),
    "mmap": lambda url: penstock.load(url, mmap=True) and penstock.load(url),
    "r+": lambda url: penstock.open(url, "r+"),
    "save": lambda url: penstock.save({"x": np.zeros(3)}, url),
    "torch": lambda url: pytest.importorskip("penstock.torch").load(url),
    "pattern": lambda url: penstock.files(url.partition("/b/")[0] + "/b/*.npy") and penstock.load(url),
    "numpy": lambda url: pytest.importorskip("penstock.numpy").load(url),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("call", CALLS)
def test_no_error_has_it(either, call, name):
    told = fails(CALLS[call], either(name))
    assert SECRET not in told
    assert "AKIASECRETKEY" not in told


def test_a_sample_of_another_shape_is_named_without_it(either):
    told = fails(loaded, penstock.files([either("good.npy"), either("other.npy")]))
    assert "good.npy" in told
    assert SECRET not in told


def test_packing_names_no_secret(signed, tmp_path):
    told = fails(lambda d: penstock.pack(d, tmp_path / "p"), penstock.files([signed("good.npy"), signed("good.pt")]))
    assert SECRET not in told


def test_names_of_samples_have_no_secret_and_paths_lead_there(signed):
    for raw in (False, True):
        files = penstock.files([signed("good.npy"), signed("other.npy")], raw=raw)
        assert files.describe(0).endswith("/good.npy?...")
        assert files.map(lambda x: x).describe(1).endswith("/other.npy?...")
        assert files.paths == [signed("good.npy"), signed("other.npy")]
    assert np.asarray(penstock.load(penstock.files([signed("good.npy")]).paths[0])).shape == (4, 4)


def test_what_is_set_aside_names_no_secret(either):
    loader = penstock.DataLoader(
        penstock.files([either("good.npy"), either("bad.npy")] * 2), batch_size=2, on_error="skip", num_workers=0
    )
    assert len(list(loader)) >= 1
    told = repr(loader.set_aside) + str(loader.stats()) + repr(loader) + repr(loader.state_dict())
    assert "bad.npy" in told
    assert SECRET not in told


def test_reprs_and_reports_have_no_secret(either):
    report: dict = {}
    penstock.load(either("good.npy"), report=report)
    archive = penstock.open(either("good.safetensors"))
    assert SECRET not in str(archive) + penstock.files([either("good.npy")]).describe(0)
    assert SECRET not in repr(report) + repr(archive) + archive.path + repr(archive["w"])


def test_a_numpy_file_shows_no_secret(proxy, settings):
    content = io.BytesIO()
    np.savez(content, x=np.arange(3), y=np.arange(3))
    proxy.origin.objects[f"/b/two.npz{QUERY}"] = content.getvalue()
    loaded = penstock.numpy.load(f"{proxy.url}/b/two.npz{QUERY}")
    assert "two.npz?..." in repr(loaded)
    assert SECRET not in repr(loaded)


def test_a_source_that_is_called_by_a_url_shows_no_secret():
    from penstock import remote

    content = TARGETS["good.npy"]

    class Bytes:
        def size(self, name):
            return len(content)

        def cat_ranges(self, paths, starts, ends, **_):
            return [content[a:b] for a, b in zip(starts, ends, strict=True)]

        def info(self, name, **_):
            return {"size": len(content), "type": "file", "name": name}

    archive = penstock.open(remote.from_fsspec(Bytes(), f"https://h/good.npy{QUERY}"))
    assert SECRET not in repr(archive) + archive.path


def test_errors_of_python_show_no_secret():
    error = penstock.NotFoundError(f"https://h/x{QUERY}: none", "none", f"https://h/x{QUERY}")
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert SECRET not in texts_of(each)
        assert each.path == "https://h/x?..."
        assert str(each) == "https://h/x?...: none"


COMMANDS = (
    "ls {}",
    "ls {} {}",
    "ls --json {}",
    "ls --json {} {}",
    "ls --names {}",
    "ls --sort size {} {}",
    "info {}",
    "info --json {}",
    "info --json {} {}",
    "hash {}",
    "hash --json {} {}",
    "hash --duplicates {} {}",
    "stats {}",
    "stats {} {}",
    "stats --json {} {}",
    "show {}",
    "show --json {}",
    "show --json {} {}",
    "show {} {}",
    "cat {}",
    "cat --json {}",
    "verify {}",
    "verify --json {} {}",
    "diff {} {}",
    "diff --json {} {}",
    "report -o - {}",
    "report -o - {} {} {}",
    "report -o - {} {}",
    "report -o page.html {}",
    "doctor --json {}",
    "doctor {}",
    "bench {}",
    "bench --json {}",
    "convert {} out.npz",
    "pack {} packed",
    "cache {}",
    "{}",
    "cat {} {} {} {}",
    "ls --sort {}",
    "convert x.npy {}",
)


@pytest.mark.parametrize("name", ["good.npy", "bad.npy", "missing.npy", "text.npy"])
@pytest.mark.parametrize("words", COMMANDS)
def test_the_command_prints_it_nowhere(either, proxy, command, tmp_path, words, name):
    if either("").startswith("az:") and name not in ("bad.npy", "missing.npy"):
        pytest.skip("the other half says no more")
    if words.startswith(("doctor", "bench")) and name != "missing.npy":
        pytest.skip("measures for seconds, and prints the same")
    np.save(tmp_path / "x.npy", numbers(3))
    arguments = [word.format(either(name)) for word in words.split()]
    done = subprocess.run([command, *arguments], capture_output=True, cwd=tmp_path, check=False)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert SECRET.encode() not in done.stdout + done.stderr + written
    assert b"AKIASECRETKEY" not in done.stderr
    if "{}" in words and done.returncode != 0:
        assert done.stderr or done.stdout


@pytest.mark.parametrize("word", ["ls", "info", "doctor"])
def test_the_command_shows_no_password(command, tmp_path, word):
    for url in ("https://user:pAsSwOrD@127.0.0.1:1/x.npy", "https:/h/x?sig=pAsSwOrD", "s3://ID:pAs/SwOrD@b/x.npy"):
        done = subprocess.run([command, word, url], capture_output=True, cwd=tmp_path, check=False)
        for part in (b"pAsSwOrD", b"SwOrD"):
            assert part not in done.stdout + done.stderr


def test_what_a_redirect_gave_is_not_quoted(proxy, other_proxy):
    other_proxy.origin.objects["/latest/keys"] = b"AccessKeyId: AKIASECRETKEY"
    proxy.faults = [Fault(status=302, headers={"location": f"{other_proxy.url}/latest/keys"})]
    told = fails(penstock.load, f"{proxy.url}/x.npy")
    assert "AKIA" not in told
    assert "41 63 63" not in told  # the same in hexadecimal


@pytest.mark.parametrize("coded", [str, urllib.parse.unquote, html.escape])
@pytest.mark.parametrize("answer", ["<Error><Code>Denied</Code><Message>no: {}</Message></Error>", None])
@pytest.mark.parametrize("status", [403, 500])
def test_what_a_server_repeats_of_the_query_is_not_shown(signed, proxy, other_proxy, coded, answer, status):
    """Also one that another server sent the request on to, with a query of its own."""
    query = QUERY.replace(SECRET, f"a%2B{SECRET}%3D") + f"&token=1{SECRET}"
    told = coded("/b/good.npy" + query)
    headers = {} if answer else {"x-error-code": "Denied", "x-error-message": told}
    refused = Fault(status=status, body=(answer or "").format(told), headers=headers)
    proxy.faults = [refused]
    shown = fails(penstock.load, f"{proxy.url}/b/good.npy{query}")
    assert "Denied" in shown
    assert SECRET not in shown
    proxy.faults = [Fault(status=302, headers={"location": f"{other_proxy.url}/b/good.npy{query}"})]
    other_proxy.faults = [refused]
    shown = fails(penstock.load, f"{proxy.url}/b/good.npy")
    assert "Denied" in shown
    assert SECRET not in shown


def test_the_cache_holds_no_secret(either, settings, tmp_path):
    settings(PENSTOCK_CACHE=tmp_path / "cache")
    penstock.load(either("good.npy"))
    kept = b"".join(path.read_bytes() for path in Path(tmp_path / "cache").rglob("*") if path.is_file())
    assert SECRET.encode() not in kept
