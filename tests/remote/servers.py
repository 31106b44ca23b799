"""Servers on this machine: nginx, SeaweedFS and rclone, each with a folder of its own and ports that are free, and a
stand-in for Azure's service (azure_memory.py), because PyPI has no server of its kind.

`python tests/remote/servers.py seaweed rclone nginx azure` starts some by hand, says what a client needs, and stops
them with Ctrl-C.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from azure_memory import ACCOUNT, KEY, AzureMemory
from fault_proxy import FaultProxy, in_thread

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / "build" / "remote" / "bin"
HOW = "script/test remote sets it up"

ACCESS_KEY = "ACCESSKEY1"
SECRET_KEY = "sEcReT/of+tests=0123456789"
REGION = "us-east-1"
BUCKET = "bucket"
PATIENCE = 30.0
LEAST_FREE = 256 << 20  # bytes of the disk that SeaweedFS leaves free


class Missing(Exception):  # noqa: N818 a reason to skip, no fault
    """A server is not installed here."""


@dataclass
class Server:
    """What a client needs to know. `environment` is how the store's tools are told: endpoint, keys and region."""

    url: str
    environment: dict[str, str] = field(default_factory=dict)
    folder: Path | None = None  # whose files it serves
    certificate: Path | None = None  # of https_url
    https_url: str = ""
    base: str = f"s3://{BUCKET}"  # of a store

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


def program(name: str) -> str:
    """Where a program is: in build/remote, else in PATH or where Debian puts servers."""
    path = os.pathsep.join([str(INSTALLED), os.environ.get("PATH", ""), "/usr/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        raise Missing(f"{name} is not installed here ({HOW})")
    return found


def free_port(beside: int = 0) -> int:
    """A port that nobody has, nor the one `beside` it. Below the range that the system gives to clients' sockets, so
    that none of them takes it meanwhile."""
    for _ in range(1000):
        port = 10240 + int.from_bytes(os.urandom(2), "big") % 10000
        try:
            for number in {port, port + beside}:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port
    raise RuntimeError("there is no free port")


def need_space(folder: Path, size: int) -> None:
    """Raises where the folder's disk has less than that many bytes free, because a server would fail without a word."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise RuntimeError(f"{folder}: {free >> 20} MiB are free and the server's tests need {size >> 20}; free some")


@contextlib.contextmanager
def running(command: list[object], log: Path, is_up: Callable[[], bool]) -> Iterator[None]:
    """A server's process, from when it answers. It ends with the block, and with this process, however that ends."""
    words = ["setpriv", "--pdeathsig", "TERM", *(str(word) for word in command)]
    with log.open("wb") as out:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE
        while not is_up():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command[0]} does not answer:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(url: str) -> bool:
    """Whether somebody speaks HTTP there; refusing counts."""
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def store(url: str) -> Server:
    """What a client of an S3 store needs. The bucket is made by whoever needs one."""
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    return Server(url, {"AWS_ENDPOINT_URL": url, "AWS_REGION": REGION, **keys})


@contextlib.contextmanager
def seaweed(folder: Path) -> Iterator[Server]:
    """SeaweedFS: master, volume server, filer and S3 gateway in one process. Ready in about 3 seconds."""
    weed = program("weed")
    ports = {part: free_port(beside=10000) for part in ("master", "volume", "filer", "s3")}
    keys = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
    identity = {"name": "tests", "credentials": keys, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
    (folder / "data" / "buckets").mkdir(parents=True)
    (folder / "identities.json").write_text(json.dumps({"identities": [identity]}))
    command = [weed, "server", "-s3", "-dir", folder / "data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += [f"-{part}.port={port}" for part, port in ports.items()]
    # With few volumes a bucket soon has none left and answers 500.
    command += ["-volume.max=100", "-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    # Its own limit is a hundredth of the disk. With less it takes nothing, and lets clients wait until they give up.
    need_space(folder, LEAST_FREE + (1 << 30))
    command += [f"-volume.minFreeSpace={LEAST_FREE >> 20}MiB"]
    command += ["-s3.config", folder / "identities.json"]
    url = f"http://127.0.0.1:{ports['s3']}"
    with running(command, folder / "log", lambda: answers(f"{url}/healthz")):
        yield store(url)


@contextlib.contextmanager
def rclone(folder: Path) -> Iterator[Server]:
    """`rclone serve s3` over a folder whose sub-folders are the buckets. It answers ranges with 200, but says which."""
    binary = program("rclone")
    (folder / "data" / BUCKET).mkdir(parents=True)
    url = f"http://127.0.0.1:{free_port()}"
    command = [binary, "serve", "s3", "--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", "--addr", url.removeprefix("http://")]
    # Tests put files into its folder, so lists must not be old. With 0s, rclone reads folders again and again while it
    # renames a finished upload, and gives up on some.
    command += ["--config", "/dev/null", "--dir-cache-time", "1ms", folder / "data"]
    with running(command, folder / "log", lambda: answers(url)):
        server = store(url)
        server.folder = folder / "data"
        yield server


NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  log_format connections "$connection $server_protocol $uri";
  access_log {folder}/access.log connections;
  client_body_temp_path {folder}/temp;
  proxy_temp_path {folder}/temp;
  fastcgi_temp_path {folder}/temp;
  uwsgi_temp_path {folder}/temp;
  scgi_temp_path {folder}/temp;
  server {{
    listen 127.0.0.1:{http};
    listen 127.0.0.1:{https} ssl http2;
    ssl_certificate {folder}/certificate.pem;
    ssl_certificate_key {folder}/key.pem;
    root {folder}/data;
    location /here/ {{ rewrite ^/here/(.*)$ /$1 redirect; }}
    location /loop/ {{ return 302 /loop/; }}
    location /down/ {{ return 302 http://127.0.0.1:{http}/small.npy; }}
    location /no_ranges/ {{ rewrite ^/no_ranges/(.*)$ /$1 break; max_ranges 0; }}
    location /private/ {{ auth_basic "tests"; auth_basic_user_file {folder}/users; }}
  }}
}}
"""


def make_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that no authority of the system has signed."""
    command = [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += [
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:localhost",
    ]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "certificate.pem"


@contextlib.contextmanager
def nginx(folder: Path) -> Iterator[Server]:
    """nginx over a folder: with ranges, with TLS (an own certificate), below /here/ by a redirect, below /no_ranges/
    without ranges."""
    binary = program("nginx")
    data = folder / "data"
    data.mkdir()
    certificate = make_certificate(folder)
    http, https = free_port(), free_port()
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, http=http, https=https))
    (folder / "users").write_text("")
    (data / "up").write_text("up")
    url = f"http://127.0.0.1:{http}"
    with running([binary, "-c", folder / "nginx.conf", "-p", folder], folder / "log", lambda: answers(f"{url}/up")):
        yield Server(url, folder=data, certificate=certificate, https_url=f"https://127.0.0.1:{https}")


@contextlib.contextmanager
def behind_proxy(url: str, *options: str) -> Iterator[str]:
    """The URL of fault_proxy.py before that server, with options of its command.

    It is a process of its own: on a thread it would share Python's lock with whoever is measured.
    """
    words = [sys.executable, Path(__file__).with_name("fault_proxy.py"), "--upstream", url, *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Server]:
    """The stand-in for Azure, with the account in its paths, as the emulator has it."""
    with in_thread(FaultProxy(AzureMemory())) as running:
        url = f"{running.url}/{ACCOUNT}"
        keys = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_BLOB_ENDPOINT": url}
        yield Server(url, keys, base=f"az://{BUCKET}")


SERVERS = {"seaweed": seaweed, "rclone": rclone, "nginx": nginx, "azure": azure}


def main(names: list[str]) -> None:
    with contextlib.ExitStack() as stack:
        for name in names or SERVERS:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{name}.")))
            server = stack.enter_context(SERVERS[name](folder))
            print(f"# {name}: {server.url} {server.https_url} {server.folder or ''} {server.certificate or ''}")
            for variable, value in server.environment.items():
                print(f"export {variable}={value}")
        print("# running; Ctrl-C stops", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
