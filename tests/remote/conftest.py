"""Servers for a session, each started by the first test that wants it and skipped by name where it is not installed;
and settings that no variable of the user's changes."""

from __future__ import annotations

import base64
import os
import sys
import urllib.parse
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from azure_memory import ACCOUNT, KEY, AzureMemory
from contents import contents
from fault_proxy import Fault, FaultProxy, in_thread
from refusals import TOKEN
from servers import ACCESS_KEY, BUCKET, REGION, ROOT, SECRET_KEY, SERVERS, Missing, Server
from writable import WritableMemory

# Clients of stores are in build/remote, as their servers are, and behind the packages of .venv.
sys.path += [str(path) for path in (ROOT / "build" / "remote").glob("lib/python*/site-packages")]


# Fixtures and parameters of tests that have a server started.
SERVED = {"place", "store", *SERVERS, *(f"place_of_{name}" for name in ("http", "https", *SERVERS))}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several processes (--dist loadgroup), one has all tests that need a server, so that each starts once."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
        if SERVED.intersection([*item.fixturenames, *(text for text in parameters if isinstance(text, str))]):
            item.add_marker(pytest.mark.xdist_group("servers"))


@dataclass
class Place:
    """Where files lie, and how a test puts one there."""

    base: str
    put: Callable[[str, bytes], None]
    environment: dict[str, str] = field(default_factory=dict)
    quote: bool = False  # whether names are percent-encoded in its URLs

    @property
    def is_store(self) -> bool:
        return self.base.startswith(("s3:", "az:"))

    def url(self, name: str) -> str:
        return self.base + (urllib.parse.quote(name) if self.quote else name)


def session_server(name: str):
    @pytest.fixture(scope="session", name=name)
    def start(tmp_path_factory):
        try:
            with SERVERS[name](tmp_path_factory.mktemp(name)) as server:
                yield server
        except Missing as missing:
            pytest.skip(str(missing))

    return start


nginx_server = session_server("nginx")
seaweed_server = session_server("seaweed")
rclone_server = session_server("rclone")
azure_server = session_server("azure")


def client_of(server: Server, bucket: str = BUCKET):
    """obstore's client of a store, which is not ours and so proves what it says."""
    stores = pytest.importorskip(
        "obstore.store", reason="obstore is not installed here (script/test remote sets it up)"
    )
    if server.base.startswith("az:"):
        return stores.AzureStore(
            bucket,
            account_name=ACCOUNT,
            account_key=KEY,
            endpoint=server.url,
            client_options={"allow_http": True},
        )
    return stores.S3Store(
        bucket,
        endpoint=server.url,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        region=REGION,
        client_options={"allow_http": True},
    )


def place_in_store(server: Server) -> Place:
    store = client_of(server)
    return Place(f"{server.base}/", lambda name, content: store.put(name, content) and None, server.environment)


def place_in_folder(server: Server, url: str, environment: dict[str, str]) -> Place:
    def put(name: str, content: bytes) -> None:
        path = server.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    return Place(f"{url}/", put, environment, quote=True)


def _filled(place: Place) -> Place:
    for name, content in contents().items():
        place.put(name, content)
    return place


@pytest.fixture(scope="session")
def place_of_http(nginx):
    return _filled(place_in_folder(nginx, nginx.url, {}))


@pytest.fixture(scope="session")
def place_of_https(nginx, place_of_http):
    return place_in_folder(nginx, nginx.https_url, {"SSL_CERT_FILE": str(nginx.certificate)})


@pytest.fixture(scope="session")
def place_of_seaweed(seaweed):
    return _filled(place_in_store(seaweed))


@pytest.fixture(scope="session")
def place_of_rclone(rclone):
    return _filled(place_in_store(rclone))


@pytest.fixture(scope="session")
def place_of_azure(azure):
    return _filled(place_in_store(azure))


PLACES = ("http", "https", "seaweed", "rclone", "azure")


@pytest.fixture(params=PLACES)
def place(request, settings):
    """Each server in turn, with the files of `contents` in it; the environment says how to reach it."""
    found = request.getfixturevalue(f"place_of_{request.param}")
    settings(**found.environment)
    return found


@pytest.fixture
def store(place_of_seaweed, settings):
    settings(**place_of_seaweed.environment)
    return place_of_seaweed


OWN = ("S3", "GS", "AZ", "REMOTE", "CACHE", "HTTP")


@pytest.fixture(autouse=True)
def settings(monkeypatch, tmp_path):
    """A function that sets variables. None of the user's is left, no profile, and no machine of a cloud is asked."""
    for name in list(os.environ):
        if (
            name.startswith(("AWS_", "AZURE_", "IDENTITY_", "HF_", *(f"PENSTOCK_{part}" for part in OWN)))
            or "proxy" in name.lower()
        ):
            monkeypatch.delenv(name)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE", "GOOGLE_OAUTH_ACCESS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:1")  # nobody is there
    # Tests count requests, and a busy machine answers late. test_hedges.py switches them on.
    monkeypatch.setenv("PENSTOCK_REMOTE_HEDGES", "0")

    def set_all(**variables: object) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))

    return set_all


@pytest.fixture
def proxy():
    """A server with faults that serves what is in `proxy.origin.objects`."""
    with in_thread(FaultProxy()) as running:
        yield running


@pytest.fixture(params=["seaweed", "rclone", "azure"])
def server(request, settings):
    """Each store that checks signatures, with its bucket."""
    settings(**request.getfixturevalue(f"place_of_{request.param}").environment)
    return request.getfixturevalue(request.param)


def numbered_block(number: int) -> str:
    """How a target ends that sends this block. Names are Base64 of 24 digits, '-' and a number of five: the last three
    digits are four letters of their own."""
    return base64.b64encode(f"{number:03}".encode()).decode() + "&comp=block"


@dataclass(frozen=True)
class Dialect:
    """How a kind of store is written to, as far as tests with faults have to know."""

    base: str
    memory: type  # a store in memory that is written to so
    part: str  # in the targets of requests that send the parts of an object, followed by...
    numbered: Callable[[int], str]  # ... which one it is
    complete: str  # in the target of the request that makes one of them
    listed: str  # in the target of a listing

    @property
    def empty(self) -> str:
        return self.listing([])

    def at(self, target: str) -> str:
        """What the target of a request has here that has `target` in S3."""
        if target.startswith("partNumber="):
            return self.numbered(int(target.removeprefix("partNumber=")))
        named = {"partNumber": self.part, "?uploadId": self.complete, "list-type": self.listed}
        return named.get(target.rstrip("="), target)

    def listing(self, names: Iterable[str]) -> str:
        """One of these targets of objects in the bucket."""
        keys = [name.removeprefix("/bucket/") for name in names]
        if self is S3:
            rows = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in keys)
            return f"<ListBucketResult>{rows}</ListBucketResult>"
        size = "<Properties><Content-Length>1</Content-Length></Properties>"
        rows = "".join(f"<Blob><Name>{key}</Name>{size}</Blob>" for key in keys)
        return f"<EnumerationResults><Blobs>{rows}</Blobs><NextMarker/></EnumerationResults>"

    def fault(self, fault: Fault, **changes: object) -> Fault:
        """A new fault that happens to the same requests as that one in S3."""
        given = vars(fault) | changes
        return Fault(**given | {"target": self.at(given["target"])})


S3 = Dialect(
    "s3://bucket",
    WritableMemory,
    "partNumber",
    "partNumber={}".format,
    "?uploadId=",
    "list-type",
)
AZURE = Dialect(
    "az://bucket",
    AzureMemory,
    "blockid",
    numbered_block,
    "comp=blocklist",
    "comp=list&",
)
DIALECTS = {"s3": S3, "az": AZURE}
# For tests of every kind of store; without it they are of the first.
every_dialect = pytest.mark.parametrize("dialect", DIALECTS, indirect=True)


@pytest.fixture
def dialect(request) -> Dialect:
    return DIALECTS[getattr(request, "param", "s3")]


@pytest.fixture
def memory(dialect):
    return dialect.memory()


@pytest.fixture
def faulty(memory, settings):
    with in_thread(FaultProxy(memory)) as running:
        settings(
            PENSTOCK_REMOTE_TIMEOUT=15,
            PENSTOCK_REMOTE_RETRY_SECONDS=20,
            AWS_ENDPOINT_URL=running.url,
            AWS_ACCESS_KEY_ID="ACCESSKEY1",
            AWS_SECRET_ACCESS_KEY=SECRET_KEY,
            AWS_SESSION_TOKEN=TOKEN,
            AWS_REGION="us-east-1",
            AZURE_STORAGE_ACCOUNT=ACCOUNT,
            AZURE_STORAGE_KEY=KEY,
            AZURE_STORAGE_BLOB_ENDPOINT=running.url,
        )
        yield running


@pytest.fixture
def other_proxy():
    with in_thread(FaultProxy()) as running:
        yield running


@pytest.fixture(scope="session")
def command() -> str:
    build = Path(os.environ.get("PENSTOCK_BUILD", ROOT / "build" / "release"))
    return str(build / "bin" / "penstock")
