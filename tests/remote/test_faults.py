"""What goes wrong between a store and a load: the right values after all, or a clear error with its code, soon, and
without a secret."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from azure_memory import ACCOUNT, KEY
from contents import contents, npy_of, numbers, same
from fault_proxy import Fault
from refusals import TOKEN, has_no_secret, refused, within
from servers import SECRET_KEY, free_port, make_certificate

import penstock

sys.path.append(str(Path(__file__).parents[1] / "python"))
from ctrl_c import answers_ctrl_c, interrupted

ARRAY = numbers(12000, 64)  # 3 MB: a head and ranges


LARGE = npy_of(ARRAY)
SMALL = contents()["small.npy"]


@pytest.fixture(params=["http", "s3", "az"])
def url(request, proxy, settings):
    """The large array behind a server with faults, by HTTP and as a store of each kind; waits for a second."""
    proxy.origin.objects |= {"/bucket/x.npy": LARGE, "/bucket/small.npy": SMALL, "/bucket/empty.npy": b""}
    settings(PENSTOCK_REMOTE_TIMEOUT=1, PENSTOCK_REMOTE_RETRY_SECONDS=30)
    if request.param == "http":
        return f"{proxy.url}/bucket/x.npy"
    if request.param == "az":
        settings(AZURE_STORAGE_ACCOUNT=ACCOUNT, AZURE_STORAGE_KEY=KEY, AZURE_STORAGE_BLOB_ENDPOINT=proxy.url)
        return "az://bucket/x.npy"
    settings(
        AWS_ENDPOINT_URL=proxy.url,
        AWS_ACCESS_KEY_ID="ACCESSKEY1",
        AWS_SECRET_ACCESS_KEY=SECRET_KEY,
        AWS_SESSION_TOKEN=TOKEN,
        AWS_REGION="us-east-1",
    )
    return "s3://bucket/x.npy"


def in_store(url: str) -> bool:
    return url.startswith(("s3:", "az:"))


ONCE = {
    "503 twice": Fault(status=503, times=2),
    "520": Fault(status=520, times=1),
    "524": Fault(status=524, times=1),
    "SlowDown for a range": Fault(status=503, after=1, times=1),
    "429 with Retry-After": Fault(status=429, headers={"retry-after": "0"}, times=1),
    "500": Fault(status=500, times=1),
    "502": Fault(status=502, times=1),
    "504": Fault(status=504, times=1),
    "InternalError": Fault(status=500, body="<Error><Code>InternalError</Code></Error>", times=1),
    "reset": Fault(reset=True, times=1),
    "reset of a range": Fault(reset=True, after=1, times=1),
    "closed without an answer": Fault(raw="", times=1),
    "cut head": Fault(cut=1000, times=1),
    "cut range": Fault(cut=100000, after=1, times=1),
    "nothing of the body": Fault(cut=0, after=1, times=1),
    "hang": Fault(hang=True, times=1),
    "hang of a range": Fault(hang=True, after=1, times=1),
    "stops in the body": Fault(stop=100000, after=1, times=1),
    "slow": Fault(delay=0.2),
    "drops that take long": Fault(pause=0.01, after=1),
}


@pytest.mark.parametrize("fault", ONCE)
def test_what_passes_is_not_noticed(url, proxy, fault):
    proxy.faults = [Fault(**vars(ONCE[fault]))]
    with within(20):
        assert np.array_equal(np.asarray(penstock.load(url)), ARRAY)


# A server that compresses what a range asks for, and says so.
CODED = {"headers": {"content-encoding": "gzip", "content-length": "1000"}, "cut": 1000}

LASTING = {
    "401": (Fault(status=401), penstock.PermissionDeniedError, ["401"]),
    "403": (
        Fault(status=403, body="<Error><Code>AccessDenied</Code><Message>no, not you</Message></Error>"),
        penstock.PermissionDeniedError,
        ["403", "AccessDenied"],
    ),
    "ended credentials": (
        Fault(status=400, body="<Error><Code>ExpiredToken</Code><Message>The token has ended</Message></Error>"),
        penstock.PermissionDeniedError,
        ["ExpiredToken"],
    ),
    "404": (
        Fault(status=404, body="<Error><Code>NoSuchBucket</Code></Error>"),
        penstock.NotFoundError,
        ["404", "NoSuchBucket"],
    ),
    "404 later": (Fault(status=404, after=1), penstock.NotFoundError, ["404"]),
    "412": (Fault(status=412, after=1), penstock.ChangedError, ["412"]),
    "another ETag": (Fault(headers={"etag": '"e2e2e2"'}, after=1), penstock.ChangedError, ["e2e2e2"]),
    "another size": (
        Fault(headers={"content-range": f"bytes 65536-{len(LARGE) - 1}/{len(LARGE) + 5}"}, after=1),
        None,
        [],
    ),
    "416 inside the size": (Fault(status=416, after=1), penstock.ChangedError, ["size"]),
    "coded": (Fault(**CODED), penstock.UnsupportedError, ["gzip", "Content-Encoding"]),
    "coded later": (Fault(**CODED, after=1), penstock.UnsupportedError, ["gzip", "Content-Encoding"]),
    "429": (Fault(status=429), penstock.InputOutputError, ["429"]),
    "503": (Fault(status=503), penstock.InputOutputError, ["503", "SlowDown"]),
    "500": (Fault(status=500), penstock.InputOutputError, ["500"]),
    "Retry-After of a year": (
        Fault(status=503, headers={"retry-after": "31536000"}),
        penstock.InputOutputError,
        ["503"],
    ),
    "200 for a range": (Fault(drop=["range"], after=1), penstock.UnsupportedError, ["range"]),
    "200 for the head, without a length": (
        Fault(drop=["range"], headers={"content-length": None, "connection": "close"}),
        penstock.UnsupportedError,
        ["range"],
    ),
    "more than the range": (Fault(extra=10, after=1), penstock.InputOutputError, []),
    "much more than the range": (Fault(extra=20_000_000), None, []),
    "another range": (
        Fault(headers={"content-range": f"bytes 0-99/{len(LARGE)}"}, after=1),
        None,
        [],
    ),
    "no range named": (Fault(headers={"content-range": None}), None, []),
    "range that is none": (Fault(headers={"content-range": "bytes x-y/z"}), None, []),
    "size beyond 64 bits": (Fault(headers={"content-range": "bytes 0-65535/99999999999999999999"}), None, []),
    "lying size": (Fault(headers={"content-range": "bytes 0-65535/9000000000000000000"}), None, []),
    "length that is none": (Fault(headers={"content-length": "-5"}), None, []),
    "always cut": (Fault(cut=1000, after=1), penstock.InputOutputError, []),
    "reset": (Fault(reset=True), penstock.InputOutputError, []),
    "hang": (Fault(hang=True), penstock.TimedOutError, []),
    "hang of a range": (Fault(hang=True, after=1), penstock.TimedOutError, []),
    "stops in the body": (Fault(stop=100000, after=1), penstock.TimedOutError, []),
    "endless headers": (Fault(endless_headers=True), penstock.InputOutputError, []),
    "endless headers of a range": (Fault(endless_headers=True, after=1), penstock.InputOutputError, []),
    "a header of 50 MB": (Fault(headers={"x-long": "x" * 50_000_000}), penstock.InputOutputError, []),
    "no HTTP": (Fault(raw="SSH-2.0-OpenSSH_9.2\r\n" * 10), penstock.InputOutputError, []),
    "redirect to a file": (
        Fault(status=302, headers={"location": "file:///etc/passwd"}),
        penstock.InputOutputError,
        [],
    ),
    "redirect to ftp": (Fault(status=302, headers={"location": "ftp://127.0.0.1/x"}), penstock.InputOutputError, []),
    "redirect to itself": (Fault(status=302, headers={"location": "/bucket/x.npy"}), penstock.InputOutputError, []),
    "redirect to nowhere": (Fault(status=302), penstock.InputOutputError, []),
    "page of a proxy": (Fault(status=407), None, ["407"]),
    "Retry-After of a date": (
        Fault(status=503, headers={"retry-after": "Tue, 31 Dec 2199 23:59:59 GMT"}),
        penstock.InputOutputError,
        ["503", "after 1 try"],
    ),
    "not yet": (Fault(status=202), penstock.InputOutputError, ["202", "no bytes"]),
    "nothing later": (Fault(status=204, after=1), penstock.InputOutputError, ["204", "no bytes"]),
    "archived": (
        Fault(status=403, body="<Error><Code>InvalidObjectState</Code></Error>"),
        penstock.UnsupportedError,
        ["InvalidObjectState", "restore"],
    ),
    "teapot": (Fault(status=418), None, ["418"]),
}


@pytest.mark.parametrize("fault", LASTING)
def test_what_lasts_is_an_error(url, proxy, fault, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    given, kind, words = LASTING[fault]
    proxy.faults = [Fault(**vars(given))]
    with within(10), pytest.raises(penstock.Error) as failed:
        penstock.load(url)
    error = failed.value
    assert kind is None or type(error) is kind, (type(error), str(error))
    for word in words:
        assert word in str(error)
    assert error.path == url
    assert str(error).startswith(url)
    assert len(str(error)) < 1000
    has_no_secret(error)


def test_an_error_of_a_range_names_its_byte(url, proxy):
    archive = penstock.open(url)
    proxy.faults = [Fault(status=403)]
    with refused(penstock.PermissionDeniedError) as failed:
        archive[""][6000:].load()
    assert failed.value.offset >= 6000 * 256


def test_what_is_refused_is_not_tried_again(url, proxy):
    proxy.faults = [Fault(status=403)]
    with refused(penstock.PermissionDeniedError) as failed:
        penstock.load(url)
    assert failed.value.http_status == 403
    assert len(proxy.requests) == 1


def test_retries_are_few(url, proxy, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    proxy.faults = [Fault(status=503)]
    with refused(penstock.InputOutputError, "503"):
        penstock.load(url)
    assert 2 <= len(proxy.requests) <= 30


def test_without_retries_the_first_answer_counts(url, proxy, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=0)
    proxy.faults = [Fault(status=503)]
    with refused(penstock.InputOutputError, "503"):
        penstock.load(url)
    assert len(proxy.requests) == 1


def test_an_object_that_is_replaced_while_it_is_open(url, proxy):
    archive = penstock.open(url)
    proxy.origin.objects["/bucket/x.npy"] = LARGE[:-256] + bytes(256)
    with refused(penstock.ChangedError):
        archive.load()


def test_an_object_that_is_replaced_where_the_store_knows_no_if_match(url, proxy):
    proxy.faults = [Fault(drop=["if-match"])]
    archive = penstock.open(url)
    proxy.origin.objects["/bucket/x.npy"] = LARGE[:-256] + bytes(256)
    with refused(penstock.ChangedError):
        archive.load()


def test_an_object_that_shrinks(url, proxy):
    archive = penstock.open(url)
    proxy.origin.objects["/bucket/x.npy"] = LARGE[:100000]
    with refused(penstock.ChangedError):
        archive.load()


def test_one_of_many_ranges_fails_and_the_others_end(url, proxy):
    proxy.faults = [Fault(status=403, after=3)]
    names = []
    for number in range(20):
        name = f"/bucket/{number}.npy"
        proxy.origin.objects[name] = SMALL
        names.append(url.replace("x.npy", f"{number}.npy"))
    loader = penstock.DataLoader(penstock.files(names), batch_size=4, num_workers=2)
    with within(5), pytest.raises(penstock.PermissionDeniedError) as failed:
        list(loader)
    has_no_secret(failed.value)


def test_an_empty_object_is_what_an_empty_file_is(url, tmp_path):
    (tmp_path / "empty.npy").write_bytes(b"")
    with pytest.raises(penstock.Error) as here:
        penstock.load(tmp_path / "empty.npy")
    with refused(type(here.value)):
        penstock.load(url.replace("x.npy", "empty.npy"))


def test_a_small_object_costs_one_request(url, proxy):
    same(penstock.load(url.replace("x.npy", "small.npy")), penstock.load(SMALL))
    assert len(proxy.requests) == 1


def test_bodies_that_end_where_the_connection_does(url, proxy):
    """One that was cut cannot be told from a whole one."""
    proxy.faults = [Fault(drop=["range"], headers={"content-length": None, "connection": "close"}, cut=len(SMALL) // 2)]
    small = url.replace("x.npy", "small.npy")
    for load in (penstock.load, lambda one: penstock.files([one], raw=True)[0]):
        with refused(penstock.UnsupportedError, "how many bytes"):
            load(small)


def test_chunked_bodies_without_a_length(url, proxy, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    chunked = f"{len(SMALL):x}\r\n{SMALL.decode('latin-1')}\r\n"
    head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    proxy.faults = [Fault(raw=head + chunked + "0\r\n\r\n")]
    small = url.replace("x.npy", "small.npy")
    same(penstock.load(small), penstock.load(SMALL))
    proxy.faults = [Fault(raw=head + chunked[:100])]  # cut
    with refused(penstock.InputOutputError):
        penstock.load(small)


def test_bytes_behind_the_body_never_become_values(url, proxy):
    proxy.faults = [Fault(trailing=1000)]
    with within(6):
        try:
            found = penstock.load(url)
        except penstock.Error as error:
            has_no_secret(error)
        else:
            assert np.array_equal(np.asarray(found), ARRAY)


def test_nobody_listens(settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    with refused(penstock.InputOutputError, "127.0.0.1") as failed:
        penstock.load(f"http://127.0.0.1:{free_port()}/x.npy")
    assert failed.value.http_status == 0


def test_a_name_that_resolves_to_nothing(settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    with refused(penstock.InputOutputError, "nothing.invalid", seconds=15):
        penstock.load("http://nothing.invalid/x.npy")


def test_a_server_that_takes_connections_and_says_nothing(settings):
    settings(PENSTOCK_REMOTE_TIMEOUT=1, PENSTOCK_REMOTE_RETRY_SECONDS=1)
    with socket.create_server(("127.0.0.1", 0)) as silent, refused(penstock.TimedOutError):
        penstock.load(f"http://127.0.0.1:{silent.getsockname()[1]}/x.npy")


@pytest.mark.parametrize("times", [None, 1], ids=["for ever", "once"])
def test_a_redirect_to_another_host_gets_no_credentials(proxy, other_proxy, settings, times):
    settings(HF_ENDPOINT=proxy.url, HF_TOKEN="hf_sEcReT")
    other_proxy.origin.objects["/cdn/x.npy"] = LARGE
    proxy.origin.objects["/owner/repo/resolve/main/x.npy"] = LARGE
    proxy.faults = [Fault(status=302, headers={"location": f"{other_proxy.url}/cdn/x.npy"}, times=times)]
    assert np.array_equal(np.asarray(penstock.load("hf://owner/repo/x.npy")), ARRAY)
    assert other_proxy.requests
    for request in other_proxy.requests:
        assert "authorization" not in request.headers
        assert "hf_sEcReT" not in str(request.headers)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("?a=1", "/bucket/sub/here.npy?a=1"),
        ("../x y.npy", "/bucket/x%20y.npy"),
        ("./x.npy?next=http://h/", "/bucket/sub/x.npy?next=http://h/"),
        ("HTTP://LocalHost:{port}/x.npy", "/x.npy"),
    ],
)
def test_a_redirect_leads_where_it_would_lead_a_browser(proxy, location, target):
    proxy.origin.objects[target] = SMALL
    port = proxy.url.rsplit(":", 1)[1]
    proxy.faults = [Fault(target="/here.npy", times=1, status=302, headers={"location": location.format(port=port)})]
    same(penstock.load(f"{proxy.url}/bucket/sub/here.npy"), penstock.load(SMALL))


@pytest.mark.parametrize("drop", [[], ["range"]], ids=["ranges", "no ranges"])
@pytest.mark.parametrize("bytes_", [100, 300_000])
def test_what_a_server_codes_unasked_is_no_object(proxy, bytes_, drop):
    proxy.origin.objects |= {"/x.bin": bytes(bytes_), "/x.bin.gz": bytes(bytes_)}
    proxy.faults = [Fault(headers={"content-encoding": "gzip"}, drop=drop)]
    with refused(penstock.UnsupportedError, "gzip", "Content-Encoding"):
        penstock.raw(f"{proxy.url}/x.bin", "u1").load()
    assert len(np.asarray(penstock.raw(f"{proxy.url}/x.bin.gz", "u1").load())) == bytes_


def test_a_store_that_redirects_to_another_host_is_not_followed(url, proxy, other_proxy):
    if not in_store(url):
        pytest.skip("http(s) follows redirects")
    other_proxy.origin.objects["/bucket/x.npy"] = LARGE
    proxy.faults = [Fault(status=307, headers={"location": f"{other_proxy.url}/bucket/x.npy"})]
    with refused(penstock.InputOutputError, "307"):
        penstock.load(url)
    assert not other_proxy.requests


def test_a_redirect_from_https_to_http_is_refused(nginx, place_of_https, settings):
    settings(**place_of_https.environment)
    with refused(penstock.InputOutputError):
        penstock.load(f"{nginx.https_url}/down/small.npy")


@pytest.mark.parametrize("ended", [2, 3])
def test_a_connection_that_ends_before_it_is_secure(tmp_path, settings, ended):
    """As those of a busy server. That says nothing of whom to trust, and the next one may be a good one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = make_certificate(tmp_path)
    context.load_cert_chain(certificate, tmp_path / "key.pem")
    settings(SSL_CERT_FILE=certificate, PENSTOCK_REMOTE_RETRY_SECONDS=30)

    def serve():
        for _ in range(ended):
            listening.accept()[0].close()
        if ended < 3:
            with context.wrap_socket(listening.accept()[0], server_side=True) as connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(SMALL) + SMALL)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve)
        serving.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/small.npy"
        if ended < 3:
            same(penstock.load(url), penstock.load(SMALL))
        else:
            with refused(penstock.InputOutputError, "no TLS connection"):
                penstock.load(url)
        serving.join()


def test_a_certificate_that_nobody_vouches_for(nginx, place_of_http, settings):
    with refused(penstock.InputOutputError, "certificate"):
        penstock.load(f"{nginx.https_url}/small.npy")
    settings(AWS_CA_BUNDLE=nginx.certificate)  # for S3 alone
    with refused(penstock.InputOutputError, "certificate", "SSL_CERT_FILE"):
        penstock.load(f"{nginx.https_url}/small.npy")
    settings(SSL_CERT_FILE=nginx.certificate, AWS_CA_BUNDLE="/no/such/file.pem")
    same(penstock.load(f"{nginx.https_url}/small.npy"), penstock.load(SMALL))


def test_a_proxy_variable_is_heard(proxy, settings):
    proxy.origin.objects["http://store.invalid/x.npy"] = LARGE
    settings(http_proxy=proxy.url)
    assert np.array_equal(np.asarray(penstock.load("http://store.invalid/x.npy")), ARRAY)
    settings(http_proxy=f"http://user:pAsSwOrD@127.0.0.1:{free_port()}", PENSTOCK_REMOTE_RETRY_SECONDS=1)
    with refused(penstock.InputOutputError):
        penstock.load("http://store.invalid/x.npy")


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with refused(penstock.InvalidArgumentError):
        penstock.load("http://user:pAsSwOrD@127.0.0.1:1/x.npy")


def test_the_query_of_a_url_is_not_repeated(proxy, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=0)
    with refused(penstock.NotFoundError):
        penstock.load(f"{proxy.url}/x.npy?X-Amz-Signature=sIgNaTuRe&token=pAsSwOrD")
    assert "sIgNaTuRe" in proxy.requests[0].target


def test_signed_urls_work(proxy):
    proxy.origin.objects["/x.npy?X-Amz-Signature=sIgNaTuRe"] = LARGE
    archive = penstock.open(f"{proxy.url}/x.npy?X-Amz-Signature=sIgNaTuRe")
    assert np.array_equal(np.asarray(archive.load()), ARRAY)
    assert "sIgNaTuRe" not in repr(archive)


@pytest.mark.parametrize("name", ["seaweed", "rclone"])
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong/sEcReT"}, penstock.PermissionDeniedError),
        ({"AWS_ACCESS_KEY_ID": "NOBODY12345"}, penstock.PermissionDeniedError),
    ],
    ids=["secret", "key"],
)
def test_wrong_credentials(name, change, kind, request, settings):
    place = request.getfixturevalue(f"place_of_{name}")
    settings(**{**place.environment, **change})
    with refused(kind):
        penstock.load(place.url("large.npy"))
    settings(**place.environment)
    same(penstock.load(place.url("small.npy")), penstock.load(SMALL))


def test_no_credentials_at_all(place_of_seaweed, settings, monkeypatch):
    settings(AWS_ENDPOINT_URL=place_of_seaweed.environment["AWS_ENDPOINT_URL"])
    with refused(penstock.PermissionDeniedError, "AWS_ACCESS_KEY_ID"):
        penstock.load("s3://bucket/small.npy")


@pytest.mark.parametrize("key", ["no-such-bucket/x.npy", "bucket/no/such/key.npy"])
def test_what_the_store_has_not(place, key):
    if not place.is_store:
        pytest.skip("a store of its own")
    with refused(penstock.NotFoundError):
        penstock.load(f"{place.base.removesuffix('bucket/')}{key}")


@pytest.mark.parametrize("url", ["s3://", "s3:///x.npy", "http://", "https:///x", "hf://owner", "hf://a/b"])
def test_urls_that_are_none(url):
    with within(3), pytest.raises(penstock.Error) as failed:
        penstock.load(url)
    assert failed.value.code in {"invalid_argument", "is_directory", "unsupported", "not_found"}
    assert failed.value.path


def test_a_profile_has_the_keys(place_of_seaweed, settings, tmp_path):
    keys = place_of_seaweed.environment
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[default]\naws_access_key_id = nobody\naws_secret_access_key = x\n\n[lab]\n"
        f"aws_access_key_id = {keys['AWS_ACCESS_KEY_ID']}\naws_secret_access_key={keys['AWS_SECRET_ACCESS_KEY']}\n"
    )
    (tmp_path / ".aws" / "config").write_text(
        f"[profile lab]\nregion = us-east-1\nendpoint_url = {keys['AWS_ENDPOINT_URL']}\n"
    )
    settings(AWS_PROFILE="lab")
    same(penstock.load("s3://bucket/small.npy"), penstock.load(SMALL))
    settings(AWS_PROFILE="nowhere")
    with refused(penstock.PermissionDeniedError, "nowhere"):
        penstock.load("s3://bucket/small.npy")


def test_ctrl_c_while_a_store_says_nothing(proxy, tmp_path):
    proxy.origin.objects["/x.npy"] = LARGE
    proxy.faults = [Fault(hang=True, after=1)]
    answers_ctrl_c(tmp_path, f"archive = penstock.open('{proxy.url}/x.npy')", "archive.load()")
    proxy.faults = [Fault(hang=True)]
    answers_ctrl_c(tmp_path, "pass", f"penstock.load('{proxy.url}/x.npy')")


def test_ctrl_c_while_a_stream_waits_for_a_store(proxy, tmp_path):
    """The walk is in the loop's own thread. The sample that it waited for comes next."""
    proxy.origin.objects |= {"/0.npy": SMALL, "/1.npy": npy_of(ARRAY[:8])}
    proxy.faults = [Fault(target="/1.npy", hang=True, times=1)]
    setup = f"walk = iter(penstock.stream(penstock.files(['{proxy.url}/0.npy', '{proxy.url}/1.npy']))); next(walk)"
    rest = "print(sum(len(sample) for sample in walk))"
    proxy.faults = [Fault(target="/1.npy", hang=True, times=1)]
    assert interrupted(tmp_path, setup, "next(walk)", rest)[1:] == ["8"]


def test_requests_are_signed_when_they_are_sent(proxy, tmp_path):
    """A signature holds for minutes, and the last of many requests may wait longer for its turn."""
    names = [f"s3://bucket/{number}.npy" for number in range(5)]
    proxy.origin.objects |= {f"/bucket/{number}.npy": SMALL for number in range(5)}
    proxy.delay = 1.2
    keys = {"AWS_ACCESS_KEY_ID": "ACCESSKEY1", "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_ENDPOINT_URL": proxy.url}
    program = f"import penstock; next(iter(penstock.DataLoader(penstock.files({names}), batch_size=5)))"
    subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **keys, "PENSTOCK_REMOTE_REQUESTS": "1"}, check=True
    )
    times = [datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ") for request in proxy.requests]
    assert len(times) == 5
    assert (times[-1] - times[0]).total_seconds() >= 2


def test_a_forked_child_reads_too(url):
    archive = penstock.open(url)
    assert np.array_equal(np.asarray(archive.load()), ARRAY)
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            same_bytes = np.array_equal(np.asarray(archive.load()), ARRAY)
            status = 0 if same_bytes and np.array_equal(np.asarray(penstock.load(url)), ARRAY) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("status", [403, 503])
def test_listing_fails_with_the_stores_words(url, proxy, status, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    if not in_store(url):
        pytest.skip("http(s) cannot be listed")
    body = "<Error><Code>SlowDown</Code></Error>" if status == 503 else "<Error><Code>AccessDenied</Code></Error>"
    proxy.faults = [Fault(status=status, body=body)]
    kind = penstock.PermissionDeniedError if status == 403 else penstock.InputOutputError
    with refused(kind, "AccessDenied" if status == 403 else "SlowDown"):
        penstock.files(url.replace("x.npy", "train/*.npy"))


LISTINGS = {
    "no XML": "train/1.npy\n",
    "cut": "<ListBucketResult><Contents><Key>train/1.npy</Key><Si",
    "endless": "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>"
    "</ListBucketResult>",
    "size that is none": "<ListBucketResult><Contents><Key>train/1.npy</Key><Size>-1</Size></Contents>"
    "</ListBucketResult>",
    "entity bomb": '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    "<ListBucketResult><Contents><Key>train/&b;.npy</Key><Size>1</Size></Contents></ListBucketResult>",
    "deep": "<a>" * 100000,
    "Azure's, cut": "<EnumerationResults><Blobs><Blob><Name>train/1.npy</Name><Prop",
    "Azure's, endless": "<EnumerationResults><Blobs></Blobs><NextMarker>a</NextMarker></EnumerationResults>",
    "Azure's, without a marker": "<EnumerationResults><Blobs><Blob><Name>train/1.npy</Name><Properties><Content-Length>"
    "1</Content-Length></Properties></Blob></Blobs></EnumerationResults>",
}


@pytest.mark.parametrize("listing", LISTINGS)
def test_listings_that_are_none(url, proxy, listing, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    if not in_store(url):
        pytest.skip("http(s) cannot be listed")
    proxy.faults = [Fault(status=200, body=LISTINGS[listing])]
    with within(8), pytest.raises(penstock.Error) as failed:
        penstock.files(url.replace("x.npy", "train/*.npy"))
    assert len(str(failed.value)) < 1000


@pytest.mark.parametrize("said", ["<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated>", ""])
@pytest.mark.parametrize("url", ["s3"], indirect=True)
def test_a_token_leads_on_whatever_a_list_says(url, proxy, said):
    page = "<ListBucketResult>{}<Contents><Key>train/{}.npy</Key><Size>1</Size></Contents></ListBucketResult>"
    more = f"{said}<NextContinuationToken>more</NextContinuationToken>"
    proxy.faults = [Fault(status=200, body=page.format(more, 1), times=1), Fault(status=200, body=page.format("", 2))]
    assert len(penstock.files(url.replace("x.npy", "train/"))) == 2


def test_listing_by_http_is_refused(proxy):
    with refused(penstock.UnsupportedError):
        penstock.files(f"{proxy.url}/train/*.npy")


def test_an_errors_text_from_a_store_has_no_control_characters(url, proxy):
    body = "<Error><Code>Evil\x1b[31m</Code><Message>red \x1b[31m\r\n\x07 text" + "x" * 100000 + "</Message></Error>"
    proxy.faults = [Fault(status=403, body=body)]
    with refused(penstock.PermissionDeniedError) as failed:
        penstock.load(url)
    assert "\x1b" not in str(failed.value)
    assert "\x07" not in str(failed.value)
    assert len(str(failed.value)) < 1000


def test_a_store_that_repeats_the_secret_is_not_quoted(url, proxy):
    if not in_store(url):
        pytest.skip("nothing is signed")
    secrets = KEY if url.startswith("az:") else f"{SECRET_KEY} {TOKEN}"
    body = f"<Error><Code>X</Code><Message>{secrets}</Message></Error>"
    proxy.faults = [Fault(status=403, body=body)]
    with refused(penstock.PermissionDeniedError):
        penstock.load(url)


def test_a_loaders_trace_and_figures_have_no_secret(url, proxy):
    names = [url.replace("x.npy", "small.npy")] * 8
    loader = penstock.DataLoader(penstock.files(names), batch_size=4, num_workers=2)
    assert len(list(loader)) == 2
    told = str(loader.stats()) + repr(loader) + repr(penstock.files(names))
    for secret in (SECRET_KEY, TOKEN, KEY):
        assert secret not in told
