"""An object that is replaced while it is read, and lists of objects that are not whole: never half of one and half of
the other."""

from __future__ import annotations

import json
import shlex
import subprocess
import urllib.parse

import numpy as np
import pytest
from contents import npy_of, numbers
from fault_proxy import Fault, FaultProxy, Memory, in_thread, plain
from refusals import refused
from servers import SECRET_KEY

import penstock

FIRST = numbers(12000, 64)
BEFORE, AFTER = "Mon, 02 Nov 2026 10:00:00 GMT", "Mon, 02 Nov 2026 10:00:07 GMT"


class WithoutEtags(Memory):
    modified: str | None = BEFORE
    etag_of_all = False

    async def __call__(self, request):
        answer = await super().__call__(request)
        answer.headers.pop("etag", None)
        if self.modified:
            answer.headers["last-modified"] = self.modified
        return answer


@pytest.fixture
def server(settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=5)
    with in_thread(FaultProxy(WithoutEtags({"/x.npy": npy_of(FIRST)}))) as running:
        yield running


@pytest.mark.parametrize("read", ["load", "slice", "rows"])
def test_last_modified_tells_versions_apart_where_there_are_no_etags(server, read):
    archive = penstock.open(f"{server.url}/x.npy")
    rows = penstock.rows(f"{server.url}/x.npy")
    server.origin.objects["/x.npy"] = npy_of(FIRST + 1)
    server.origin.modified = AFTER
    with refused(penstock.ChangedError, "Last-Modified", AFTER):
        if read == "load":
            archive.load()
        elif read == "slice":
            archive[""][5000:5100].load()
        else:
            list(penstock.DataLoader(rows, batch_size=64))


class Replaced(Memory):
    """Half of an object is of another version, and `told` is what the server says of each."""

    def __init__(self, *told: dict[str, str]) -> None:
        super().__init__({"/x.npy": npy_of(FIRST)})
        self.told = told
        self.asked = 0

    async def __call__(self, request):
        if self.asked:
            self.objects["/x.npy"] = npy_of(FIRST + 1)
        answer = await super().__call__(request)
        answer.headers.pop("etag", None)
        answer.headers |= self.told[min(self.asked, 1)]
        self.asked += 1
        return answer


@pytest.mark.parametrize(
    ("told", "error"),
    [
        (({"etag": 'W/"a"', "last-modified": BEFORE}, {"etag": 'W/"a"', "last-modified": AFTER}), "Last-Modified"),
        (({"etag": '"a"'}, {}), "which version"),
        (({"etag": '"a"'}, {"last-modified": AFTER}), "which version"),
        (({"last-modified": BEFORE}, {}), "which version"),
        (({"last-modified": BEFORE}, {"etag": '"b"'}), "which version"),
        (({"etag": '"a"', "last-modified": BEFORE}, {"last-modified": AFTER}), "Last-Modified"),
    ],
)
def test_half_of_another_version_is_an_error(proxy, settings, told, error):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    proxy.origin = Replaced(*told)
    proxy.faults = [Fault(drop=["if-match"])]
    with refused(penstock.InputOutputError if error == "which version" else penstock.ChangedError, error):
        penstock.load(f"{proxy.url}/x.npy")


def test_an_object_that_stays_is_read(server):
    report: dict = {}
    assert np.array_equal(np.asarray(penstock.load(f"{server.url}/x.npy", report=report)), FIRST)
    assert "noticed" not in report["why"]


def test_a_report_says_that_a_change_would_not_be_noticed(server):
    server.origin.modified = None
    report: dict = {}
    assert np.array_equal(np.asarray(penstock.load(f"{server.url}/x.npy", report=report)), FIRST)
    assert "not noticed" in report["why"]


def test_416_without_a_size_is_no_empty_object(proxy, settings):
    """Whether there is nothing is asked for then."""
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=5)
    proxy.origin.objects |= {"/x.npy": npy_of(FIRST[:10]), "/empty": b""}
    proxy.faults = [Fault(status=416, ranged=True)]
    assert np.asarray(penstock.files([f"{proxy.url}/x.npy"], raw=True)[0]).tobytes() == npy_of(FIRST[:10])
    assert np.asarray(penstock.files([f"{proxy.url}/empty"], raw=True)[0]).size == 0
    proxy.faults = [Fault(status=416)]
    with refused(penstock.InputOutputError, "416"):
        penstock.files([f"{proxy.url}/x.npy"], raw=True)[0]


@pytest.mark.parametrize("what", ["body", "text"])
def test_a_byte_now_and_then_is_no_answer(proxy, settings, what):
    settings(PENSTOCK_REMOTE_TIMEOUT=0.5, PENSTOCK_REMOTE_RETRY_SECONDS=1)
    if what == "text":
        settings(AWS_ENDPOINT_URL=proxy.url, PENSTOCK_S3_ANONYMOUS=1)

    class Trickling(Memory):
        async def __call__(self, request):
            async def drops():
                for _ in range(65536):
                    yield b" "

            answer = plain(206 if what == "body" else 200)
            answer.body = drops()
            answer.headers["content-length"] = "65536"
            if what == "body":
                answer.headers["content-range"] = "bytes 0-65535/3000000"
            return answer

    proxy.origin = Trickling()
    proxy.faults = [Fault(pause=0.1)]
    with refused(penstock.TimedOutError, seconds=20):
        if what == "body":
            penstock.load(f"{proxy.url}/x.npy")
        else:
            penstock.files("s3://bucket/train/*.npy")


# Lists of objects.

CONTENT = "<Contents><Key>{key}</Key><Size>100</Size></Contents>"
LIST = "<ListBucketResult><IsTruncated>{more}</IsTruncated>{contents}</ListBucketResult>"


@pytest.fixture
def bucket(proxy, settings):
    settings(AWS_ENDPOINT_URL=proxy.url, PENSTOCK_S3_ANONYMOUS=1, PENSTOCK_REMOTE_RETRY_SECONDS=1)
    return proxy


@pytest.mark.parametrize("more", ["true", "true</IsTruncated><NextMarker>train/9.npy</NextMarker><IsTruncated>"])
def test_a_list_that_goes_on_without_saying_how_is_not_whole(bucket, command, more):
    bucket.faults = [Fault(status=200, body=LIST.format(more=more, contents=CONTENT.format(key="train/1.npy")))]
    for pattern in ("s3://bucket/train/*.npy", "s3://bucket/train/", "s3://bucket/**/*.npy"):
        with refused(penstock.InputOutputError, "more objects"):
            penstock.files(pattern)
    done = subprocess.run([command, "ls", "s3://bucket/train/"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "more objects" in done.stderr


@pytest.mark.parametrize("said", ["", "<KeyCount>1000</KeyCount>", "<IsTruncated>1</IsTruncated>"])
def test_a_full_page_that_does_not_say_whether_more_follow_is_not_whole(bucket, said):
    contents = "".join(CONTENT.format(key=f"train/{i:04d}.npy") for i in range(1000))
    bucket.faults = [Fault(status=200, body=f"<ListBucketResult>{said}{contents}</ListBucketResult>")]
    with refused(penstock.InputOutputError, "IsTruncated"):
        penstock.files("s3://bucket/train/*.npy")


class Pages(Memory):
    """Lists page by page. `more` is what a page says of the next one, by its number."""

    def __init__(self, more, keys=lambda page: [f"train/{page}.npy"]) -> None:
        super().__init__({})
        self.more, self.keys, self.asked = more, keys, 0

    async def __call__(self, request):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.target).query))
        page = int(query.get("continuation-token", "0").partition("-")[0])
        self.asked += 1
        contents = "".join(CONTENT.format(key=key) for key in self.keys(page))
        return plain(200, f"<ListBucketResult>{self.more(page)}{contents}</ListBucketResult>".encode())


@pytest.mark.parametrize("said", ["", "<IsTruncated>True</IsTruncated>", "<IsTruncated>true</IsTruncated>"])
def test_a_token_is_followed(bucket, said):
    bucket.origin = Pages(
        lambda page: f"{said}<NextContinuationToken>{page + 1}</NextContinuationToken>" if page < 3 else ""
    )
    assert len(penstock.files("s3://bucket/train/*.npy")) == 4


ENDLESS = {
    "two tokens in turn": Pages(
        lambda page: f"<IsTruncated>true</IsTruncated><NextContinuationToken>{(page + 1) % 2}</NextContinuationToken>"
    ),
    "the same page": Pages(
        lambda page: f"<IsTruncated>true</IsTruncated><NextContinuationToken>{page + 1}</NextContinuationToken>",
        lambda page: ["train/1.npy", "train/2.npy"],
    ),
}


@pytest.mark.parametrize(
    "keys",
    [lambda page: [f"train/{page}.npy"] * 2, lambda page: [f"train/{page}.npy", f"train/{page + 1}.npy"]],
    ids=["on a page", "on two pages"],
)
def test_a_list_that_names_an_object_twice_is_none(bucket, keys):
    """Its samples would come twice."""
    token = "<IsTruncated>true</IsTruncated><NextContinuationToken>{}</NextContinuationToken>"
    bucket.origin = Pages(lambda page: token.format(page + 1) if page < 3 else "", keys)
    for pattern in ("s3://bucket/train/*.npy", "s3://bucket/train/", "s3://bucket/**/*.npy"):
        with refused(penstock.InputOutputError, "twice"):
            penstock.files(pattern)


@pytest.mark.parametrize("pages", ENDLESS)
def test_a_list_without_end_is_an_error(bucket, pages):
    bucket.origin = ENDLESS[pages]
    with refused(penstock.InputOutputError, "again and again", seconds=10):
        penstock.files("s3://bucket/train/*.npy")
    assert bucket.origin.asked < 6


@pytest.mark.parametrize("key", ["t", "", "other/1.npy"])
@pytest.mark.parametrize("what", ["key", "folder"])
def test_a_key_that_was_not_asked_for(bucket, command, key, what):
    contents = CONTENT.format(key=key)
    if what == "folder":
        contents = f"<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"
    bucket.faults = [Fault(status=200, body=LIST.format(more="false", contents=contents))]
    done = subprocess.run([command, "ls", "s3://bucket/train/"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "does not begin with" in done.stderr
    assert "substr" not in done.stderr
    with refused(penstock.InputOutputError, "does not begin with"):
        penstock.files("s3://bucket/train/*.npy" if what == "key" else "s3://bucket/train/*/x.npy")


# Uploads that were left.


class Uploads:
    """A store with uploads that were begun, three to a page."""

    def __init__(self, begun: dict[str, str]) -> None:
        self.begun = dict(begun)
        self.ended: list[str] = []

    async def __call__(self, request):
        target = urllib.parse.urlsplit(request.target)
        query = dict(urllib.parse.parse_qsl(target.query, keep_blank_values=True))
        if request.method == "DELETE":
            self.ended.append(urllib.parse.unquote(target.path).removeprefix("/bucket/"))
            return plain(204)
        names = [name for name in sorted(self.begun) if name.startswith(query["prefix"])]
        page = [name for name in names if name > query.get("key-marker", "")]
        listed = "".join(
            f"<Upload><Key>{name}</Key><UploadId>id-{name}</UploadId><Initiated>{self.begun[name]}</Initiated></Upload>"
            for name in page[:3]
        )
        more = f"<IsTruncated>{'true' if len(page) > 3 else 'false'}</IsTruncated>"
        after = f"<NextKeyMarker>{page[2]}</NextKeyMarker>" if len(page) > 3 else ""
        text = f"<ListMultipartUploadsResult>{more}{after}{listed}</ListMultipartUploadsResult>"
        return plain(200, text.encode())


@pytest.fixture
def uploads(settings):
    begun = {f"run/{n}.pt": "2026-01-02T03:04:05.000Z" for n in range(7)}
    begun["run/now.pt"] = "2999-01-01T00:00:00.000Z"
    with in_thread(FaultProxy(Uploads(begun))) as running:
        settings(AWS_ENDPOINT_URL=running.url, AWS_ACCESS_KEY_ID="ACCESSKEY1", AWS_SECRET_ACCESS_KEY=SECRET_KEY)
        yield running.origin


def test_uploads_that_were_left_are_listed_and_ended(uploads, command):
    def run(*words: str):
        return subprocess.run([command, "uploads", *words], capture_output=True, text=True, check=False)

    listed = json.loads(run("s3://bucket", "--json").stdout)["uploads"]
    assert [one["key"] for one in listed] == sorted(uploads.begun)
    assert not uploads.ended
    assert "run/3.pt" in run("s3://bucket/run/").stdout
    assert json.loads(run("s3://bucket/other/", "--json").stdout)["uploads"] == []
    assert run("s3://bucket/run/", "--end").returncode == 0
    assert uploads.ended == [f"run/{n}.pt" for n in range(7)]  # not the one that somebody may be writing
    uploads.ended.clear()
    assert run("s3://bucket/run/", "--end", "--older-than", "0").returncode == 0
    assert len(uploads.ended) == 8
    for wrong in ("/tmp", "https://h/x"):
        assert run(wrong).returncode == 1
    assert "--end" in run("s3://bucket/run/", "--older-than", "48").stderr
    for wrong in ("-1", "nan", "1.5", "x"):
        uploads.ended.clear()
        assert "a whole number from 0" in run("s3://bucket/run/", "--end", "--older-than", wrong).stderr
        assert not uploads.ended


def test_examples_of_uploads_run(uploads, command):
    told = json.loads(subprocess.run([command, "help", "uploads", "--json"], capture_output=True, check=True).stdout)
    for example in told["examples"]:
        done = subprocess.run([command, *shlex.split(example)[1:]], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), example
