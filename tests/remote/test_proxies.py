"""Proxies, certificates and the environment of others: what is wrong is named, and no password is."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from contents import contents, same
from fault_proxy import Fault, FaultProxy, in_thread
from refusals import refused
from servers import free_port

import penstock

SMALL = contents()["small.npy"]
MALFORMED = (
    "http://user:pAsSwOrD@127.0.0.1:notaport",
    "http://user:pAs/SwOrD@127.0.0.1:{port}",
    "http://user:pAs#SwOrD@127.0.0.1:{port}",
    "http://user:pAs?SwOrD@127.0.0.1:{port}",
    "http://us er:pAs SwOrD@127.0.0.1:{port}",
    "user:pAsSwOrD@127.0.0.1:{port}",
    "http//user:pAsSwOrD@127.0.0.1:{port}",
    "nonsense://user:pAsSwOrD@127.0.0.1:{port}",
    "http://user:pAsSwOrD@[::1:{port}",
    "http://user:pAsSwOrD@",
    "http://user:pAs@SwOrD@127.0.0.1:{port}",
    "socks5://user:pAsSwOrD@127.0.0.1:{port}",
    "user:pAsSwOrD",
    "user:7pAsSwOrD:{port}pAs",
    "socks5://user:pAsSwOrD",
)


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("proxy", MALFORMED)
def test_no_password_of_a_proxy_is_shown(settings, variable, proxy):
    settings(**{variable: proxy.format(port=free_port())}, PENSTOCK_REMOTE_RETRY_SECONDS=0, PENSTOCK_REMOTE_TIMEOUT=5)
    with pytest.raises(penstock.Error) as failed:
        penstock.load("http://store.invalid/x.npy")
    told = repr(failed.value) + str(vars(failed.value))
    for part in ("pAsSwOrD", "SwOrD", "pAs"):
        assert part not in told


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy", "ALL_PROXY"])
def test_a_dead_proxy_is_named(settings, variable):
    port = free_port()
    settings(**{variable: f"http://user:pAsSwOrD@127.0.0.1:{port}", "PENSTOCK_REMOTE_RETRY_SECONDS": 1})
    with refused(penstock.InputOutputError, "proxy", variable, f"127.0.0.1:{port}"):
        penstock.load("http://store.invalid/x.npy")


def test_a_proxy_that_is_not_known_is_named(settings):
    settings(http_proxy="http://proxy.invalid:3128")
    with refused(penstock.InputOutputError, "http_proxy", "proxy.invalid", seconds=20):
        penstock.load("http://store.invalid/x.npy")


@pytest.mark.parametrize("url", ["http://store.invalid/x.npy", "https://store.invalid/x.npy"])
@pytest.mark.parametrize("status", [407, 403])
def test_a_proxy_that_refuses_is_named(proxy, settings, url, status):
    if status == 403 and url.startswith("http:"):
        pytest.skip("may be the server's own")
    proxy.faults = [Fault(status=status)]
    settings(http_proxy=proxy.url, https_proxy=proxy.url)
    with refused(penstock.PermissionDeniedError, "proxy", str(status)):
        penstock.load(url)


@pytest.mark.parametrize("headers", ["", 'ETag: "x"\r\nContent-Length: 0\r\n'])
def test_a_proxys_answer_is_not_taken_for_the_servers(proxy, settings, headers):
    """The tunnel is there, and the connection behind it ends: that passes, and nobody has stored anything."""
    proxy.faults = [Fault(methods=["CONNECT"], raw=f"HTTP/1.1 200 OK\r\n{headers}\r\n")]
    settings(https_proxy=proxy.url, PENSTOCK_REMOTE_RETRY_SECONDS=2)
    settings(AWS_ENDPOINT_URL="https://store.invalid", AWS_ACCESS_KEY_ID="KEY", AWS_SECRET_ACCESS_KEY="pAsSwOrD")
    for act in (lambda: penstock.load("https://store.invalid/x.npy"), lambda: penstock.save([1], "s3://bucket/x.pt")):
        proxy.forget()
        with refused(penstock.InputOutputError, "proxy", "https_proxy"):
            act()
        assert len(proxy.requests) > 1


def test_a_proxy_is_not_named_where_none_is_asked(settings):
    port = free_port()
    settings(http_proxy="http://proxy.invalid:3128", no_proxy="127.0.0.1", PENSTOCK_REMOTE_RETRY_SECONDS=1)
    with refused(penstock.InputOutputError) as failed:
        penstock.load(f"http://127.0.0.1:{port}/x.npy")
    assert "proxy" not in str(failed.value)


def test_a_file_of_certificates_that_is_not_there_is_named(nginx, settings):
    settings(SSL_CERT_FILE="/no/such/file.pem", PENSTOCK_S3_ANONYMOUS=1)
    with refused(penstock.InputOutputError, "/no/such/file.pem", "SSL_CERT_FILE"):
        penstock.load(f"{nginx.https_url}/x.npy")
    settings(AWS_CA_BUNDLE="/no/such/bundle.pem", AWS_ENDPOINT_URL=nginx.https_url)
    with refused(penstock.InputOutputError, "/no/such/bundle.pem", "AWS_CA_BUNDLE"):
        penstock.load("s3://bucket/x.npy")


def test_of_s3_the_bundle_of_amazons_tools_counts(nginx, place_of_http, settings, tmp_path):
    settings(SSL_CERT_FILE="/no/such/file.pem", AWS_ENDPOINT_URL=nginx.https_url, PENSTOCK_S3_ANONYMOUS=1)
    with refused(penstock.InputOutputError, "SSL_CERT_FILE"):
        penstock.load("s3://here/small.npy")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(f"[default]\nca_bundle = {nginx.certificate}\n")
    with refused(penstock.NotFoundError):
        penstock.load("s3://bucket/none.npy")
    (tmp_path / ".aws" / "config").unlink()
    settings(AWS_CA_BUNDLE=nginx.certificate)
    with refused(penstock.NotFoundError):
        penstock.load("s3://bucket/none.npy")


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "AWS_CA_BUNDLE"])
def test_a_fifo_in_place_of_certificates_is_not_waited_for(nginx, tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    environment = {name: str(tmp_path / "fifo"), "AWS_ENDPOINT_URL": nginx.https_url, "PENSTOCK_S3_ANONYMOUS": "1"}
    program = "import penstock; penstock.load('s3://bucket/x.npy')"  # of its own, because it would hang
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, timeout=60, capture_output=True, text=True
    )
    assert "InputOutputError" in done.stderr
    assert name in done.stderr
    assert "fifo" in done.stderr


def test_a_folder_of_certificates(nginx, place_of_http, settings, tmp_path):
    folder = tmp_path / "certificates"
    folder.mkdir()
    shutil.copy(nginx.certificate, folder / "own.pem")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", "rehash", str(folder)], check=True, capture_output=True)
    settings(SSL_CERT_DIR=folder)
    same(penstock.load(f"{nginx.https_url}/small.npy"), penstock.load(SMALL))


@pytest.fixture
def programs(command):
    """The command as it is, and one that runs as root whoever calls it; both where everybody may go."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a program that runs as root")
    with tempfile.TemporaryDirectory(prefix="penstock-setuid-") as name:
        folder = Path(name)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip("programs there run as their caller")
        folder.chmod(0o777)
        for which, mode in (("plain", 0o755), ("setuid", 0o4755)):
            shutil.copy(command, folder / which)
            (folder / which).chmod(mode)
        assert (folder / "setuid").stat().st_mode & stat.S_ISUID
        yield folder


@pytest.mark.parametrize("which", ["plain", "setuid"])
def test_a_setuid_program_takes_no_orders_from_its_callers_environment(programs, which, proxy):
    proxy.origin.objects["/x.npy"] = SMALL
    keys = programs / "keys.log"
    with in_thread(FaultProxy()) as spy:
        environment = {
            "PATH": "/usr/bin:/bin",
            "http_proxy": spy.url,
            "all_proxy": spy.url,
            "SSLKEYLOGFILE": str(keys),
            "PENSTOCK_CACHE": str(programs / "cache"),
        }
        done = subprocess.run(
            [programs / which, "ls", f"{proxy.url}/x.npy"],
            env=environment,
            cwd="/",
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
    heard = which == "plain"
    assert bool(spy.requests) is heard, done.stderr
    assert keys.exists() is heard
    assert (done.returncode == 0) is not heard
    assert not (programs / "cache").exists()
