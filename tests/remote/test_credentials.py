"""Where keys and tokens come from, to whom they go, and what is said where there are none."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from contents import contents, npy_of, numbers, same
from fault_proxy import Fault, FaultProxy, Memory, in_thread, plain
from refusals import refused, within
from servers import SECRET_KEY

import penstock

SMALL = contents()["small.npy"]
ROLE = "/latest/meta-data/iam/security-credentials/"


class SignedAlone(Memory):
    """A store that gives objects to those who say who they are."""

    async def __call__(self, request):
        self.seen = request.headers
        if "authorization" not in request.headers:
            return plain(403, b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
        return await super().__call__(request)


@pytest.fixture
def store(settings):
    with in_thread(FaultProxy(SignedAlone({"/bucket/x.npy": SMALL}))) as running:
        settings(AWS_ENDPOINT_URL=running.url, PENSTOCK_REMOTE_RETRY_SECONDS=10, PENSTOCK_REMOTE_TIMEOUT=5)
        yield running


def keys(seconds: float, name: str = "A") -> bytes:
    ends = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return json.dumps(
        {
            "Code": "Success",
            "AccessKeyId": f"ACCESSKEY{name}",
            "SecretAccessKey": SECRET_KEY,
            "Token": "token",
            "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    ).encode()


@pytest.fixture
def machine(settings, proxy):
    """The metadata service of an instance with a role."""
    proxy.origin.objects |= {"/latest/api/token": b"session", ROLE: b"role\n", f"{ROLE}role": keys(3600)}
    settings(AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=proxy.url)
    return proxy


def loads() -> None:
    same(penstock.load("s3://bucket/x.npy"), penstock.load(SMALL))


def test_a_machines_role_gives_keys(store, machine):
    loads()
    assert "ACCESSKEYA" in store.origin.seen["authorization"]


def test_keys_are_looked_for_in_order(store, machine, settings, tmp_path):
    """What is set later here stands before what was set earlier."""
    loads()
    assert "ACCESSKEYA" in store.origin.seen["authorization"]
    machine.origin.objects["/container"] = keys(3600, "C")
    settings(AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{machine.url}/container")
    loads()
    assert "ACCESSKEYC" in store.origin.seen["authorization"]
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = ACCESSKEYP\naws_secret_access_key = {SECRET_KEY}\n"
    )
    settings(AWS_SHARED_CREDENTIALS_FILE=tmp_path / "credentials")
    loads()
    assert "ACCESSKEYP" in store.origin.seen["authorization"]
    settings(AWS_ACCESS_KEY_ID="ACCESSKEYE", AWS_SECRET_ACCESS_KEY=SECRET_KEY)
    loads()
    assert "ACCESSKEYE" in store.origin.seen["authorization"]
    settings(PENSTOCK_S3_ANONYMOUS=1)
    with refused(penstock.PermissionDeniedError, "unsigned"):
        loads()


@pytest.mark.parametrize("target", ["/latest/api/token", ROLE, f"{ROLE}role"])
@pytest.mark.parametrize(
    "fault",
    [Fault(status=500), Fault(status=503), Fault(status=429), Fault(delay=1.5), Fault(reset=True), Fault(raw="")],
    ids=["500", "503", "429", "slow", "reset", "closed"],
)
def test_what_passes_at_first_use_is_tried_again(store, machine, target, fault):
    machine.faults = [Fault(**{**vars(fault), "target": target, "times": 1})]
    loads()


def test_what_lasts_at_first_use_is_no_missing_key(store, machine, settings):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    machine.faults = [Fault(status=503)]
    with refused(penstock.InputOutputError, "role", "503"):
        penstock.load("s3://bucket/x.npy")
    machine.faults = []
    loads()


@pytest.mark.parametrize(
    "fault",
    [Fault(status=503), Fault(status=404), Fault(hang=True), Fault(reset=True), Fault(status=200, body="nonsense")],
    ids=["503", "404", "hang", "reset", "nonsense"],
)
def test_keys_that_are_good_outlive_a_service_that_fails(store, machine, fault):
    machine.origin.objects[f"{ROLE}role"] = keys(40)  # so they are renewed every 4 seconds
    loads()
    machine.faults = [fault]
    machine.forget()
    end = time.monotonic() + 30
    with within(30):
        while not machine.requests:
            assert time.monotonic() < end
            loads()
    loads()
    # New ones are taken as soon as the service gives some.
    machine.origin.objects[f"{ROLE}role"] = keys(3600, "B")
    machine.faults = []
    with within(30):
        while "ACCESSKEYB" not in store.origin.seen["authorization"]:
            loads()


def test_keys_of_a_container_outlive_it_too(store, proxy, settings):
    proxy.origin.objects["/keys"] = keys(40)
    settings(AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{proxy.url}/keys")
    loads()
    proxy.faults = [Fault(status=503)]
    proxy.forget()
    with within(30):
        while not proxy.requests:
            loads()
    loads()


def test_keys_that_end_under_several_requests(store, machine):
    large = numbers(8 << 20)
    store.origin.objects["/bucket/large.npy"] = npy_of(large)
    archive = penstock.open("s3://bucket/large.npy")
    store.faults = [Fault(status=400, body="<Error><Code>ExpiredToken</Code></Error>", times=4, ranged=True)]
    store.delay = 0.2  # so that they are on their way together
    assert np.array_equal(np.asarray(archive.load()), large)
    assert store.most_at_once > 1


UNSIGNED = {
    "metadata off": ({}, ["AWS_ACCESS_KEY_ID is not set", "'default' has none", "AWS_EC2_METADATA_DISABLED"]),
    "asked for": ({"PENSTOCK_S3_ANONYMOUS": "1"}, ["PENSTOCK_S3_ANONYMOUS"]),
}


@pytest.mark.parametrize("case", UNSIGNED)
def test_a_refusal_says_that_the_request_was_unsigned(store, settings, case):
    given, words = UNSIGNED[case]
    settings(**given)
    with refused(penstock.PermissionDeniedError, "unsigned", *words):
        penstock.load("s3://bucket/x.npy")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({ROLE: None}, "404"),
        ({ROLE: b""}, "no role"),
        ({"/latest/api/token": None}, "404"),
    ],
    ids=["no roles", "empty", "no tokens"],
)
def test_a_refusal_says_what_the_machine_answered(store, machine, given, word):
    for name, content in given.items():
        machine.origin.objects.pop(name)
        if content is not None:
            machine.origin.objects[name] = content
    with refused(penstock.PermissionDeniedError, "unsigned", word):
        penstock.load("s3://bucket/x.npy")


@pytest.mark.parametrize("entry", ["credential_process = /bin/keys", "sso_session = corp", "role_arn = arn:x"])
def test_a_profile_with_another_way_to_keys_is_named(store, tmp_path, entry):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(f"[default]\n{entry}\n")
    with refused(penstock.PermissionDeniedError, "unsigned", entry.split()[0], "export-credentials"):
        penstock.load("s3://bucket/x.npy")


def write_config(tmp_path, text: str) -> None:
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws" / "config").write_text(text)


KEYS = f"aws_access_key_id = ACCESSKEY1\naws_secret_access_key = {SECRET_KEY}\n"


def test_the_profile_default_may_be_called_profile_default(store, tmp_path):
    write_config(tmp_path, f"[default]\naws_access_key_id = nobody\n[profile default]\n{KEYS}")
    loads()
    assert "ACCESSKEY1" in store.origin.seen["authorization"]


def test_services_of_a_profile_name_the_endpoint(store, tmp_path, monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    write_config(
        tmp_path,
        f"[default]\n{KEYS}services = local\nendpoint_url = http://127.0.0.1:1\n"
        f"[services local]\ns3 =\n  endpoint_url = {store.url}\ndynamodb =\n  endpoint_url = http://127.0.0.1:2\n",
    )
    loads()


def test_services_that_are_not_there_are_no_word_for_amazon(store, settings, tmp_path, monkeypatch):
    """Requests for another store, and the keys' signatures, would go to Amazon."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    settings(AWS_REGION="RegionOne")
    write_config(tmp_path, f"[default]\n{KEYS}services = nope\n[services local]\ns3 =\n  endpoint_url = {store.url}\n")
    with refused(penstock.PermissionDeniedError, "'default'", "'nope'", "/.aws/config'"):
        penstock.load("s3://bucket/x.npy")


@pytest.mark.parametrize("place", ["variable", "profile"])
def test_endpoints_that_are_to_be_ignored(settings, store, tmp_path, place):
    entry = "ignore_configured_endpoint_urls = true\n" if place == "profile" else ""
    write_config(tmp_path, f"[default]\n{KEYS}endpoint_url = {store.url}\n{entry}")
    settings(AWS_REGION="Region_One", **({} if entry else {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "TRUE"}))
    with refused(penstock.InvalidArgumentError, "Amazon has no region"):
        penstock.load("s3://bucket/x.npy")
    settings(AWS_IGNORE_CONFIGURED_ENDPOINT_URLS="false")
    loads()


def test_a_profile_that_changes_is_read_again(store, tmp_path):
    write_config(tmp_path, f"[default]\n{KEYS}")
    loads()
    write_config(tmp_path, f"[default]\n{KEYS.replace('ACCESSKEY1', 'ACCESSKEY22')}")
    loads()
    assert "ACCESSKEY22" in store.origin.seen["authorization"]


def test_paths_in_variables_may_begin_at_home(store, tmp_path, settings):
    (tmp_path / "mine").write_text(f"[default]\n{KEYS}")
    settings(AWS_CONFIG_FILE="~/mine")
    loads()


def test_without_a_home_the_current_folder_is_not_taken_for_it(store, settings, tmp_path, monkeypatch):
    """A folder called '~' there may be of whoever owns that place."""
    (tmp_path / "~").mkdir()
    write_config(tmp_path / "~", f"[default]\n{KEYS}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME")
    with refused(penstock.PermissionDeniedError, "unsigned"):
        penstock.load("s3://bucket/x.npy")
    settings(AWS_CONFIG_FILE="~/.aws/config")
    with refused(penstock.InvalidArgumentError, "AWS_CONFIG_FILE", "HOME"):
        penstock.load("s3://bucket/x.npy")


SIGNED = {"AWS_ACCESS_KEY_ID": "ACCESSKEY1", "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


@pytest.mark.parametrize("region", ["RegionOne", "default", "us_east.1", "dc:1", "EU"])
@pytest.mark.parametrize("place", ["AWS_REGION", "AWS_DEFAULT_REGION", "profile"])
def test_a_region_of_a_private_store_is_signed_for_as_it_is(store, settings, tmp_path, region, place):
    settings(**SIGNED)
    if place == "profile":
        write_config(tmp_path, f"[default]\nregion = {region}\n")
    else:
        settings(**{place: region})
    loads()
    assert f"/{region}/s3/aws4_request" in store.origin.seen["authorization"]


@pytest.mark.parametrize("region", ["a/b", "a b", "a,b", "ä"])
def test_a_region_that_is_none_is_refused(store, settings, region):
    settings(**SIGNED, AWS_REGION=region)
    with refused(penstock.InvalidArgumentError, "AWS_REGION"):
        penstock.load("s3://bucket/x.npy")


def test_amazon_has_no_region_of_a_private_store(settings):
    settings(**SIGNED, AWS_REGION="Region_One")
    with refused(penstock.InvalidArgumentError, "Region_One", "AWS_ENDPOINT_URL"):
        penstock.load("s3://bucket/x.npy")


@pytest.mark.parametrize("key", ["a\tb.npy", "line\nbreak.npy", "bell\x07.npy", "cr\r.npy"])
def test_a_key_may_have_control_characters(store, settings, key):
    settings(**SIGNED)
    quoted = "".join(f"%{ord(c):02X}" if ord(c) < 32 else c for c in key)
    store.origin.objects[f"/bucket/{quoted}"] = SMALL
    same(penstock.load(f"s3://bucket/{key}"), penstock.load(SMALL))
    same(penstock.files([f"s3://bucket/{key}"])[0], penstock.load(SMALL))
    with refused(penstock.NotFoundError) as failed:
        penstock.load(f"s3://bucket/{key}x")
    assert not set(str(failed.value)) & set("\t\n\r\x07")


@pytest.mark.parametrize("place", ["PENSTOCK_S3_ADDRESSING", "profile"])
def test_buckets_may_be_part_of_the_host(settings, tmp_path, place):
    with in_thread(FaultProxy(SignedAlone({"/x.npy": SMALL}))) as running:
        port = running.url.rpartition(":")[2]
        settings(**SIGNED, AWS_ENDPOINT_URL=f"http://localhost:{port}")  # *.localhost is this machine
        if place == "profile":
            write_config(tmp_path, "[default]\ns3 =\n  addressing_style = virtual\n")
        else:
            settings(PENSTOCK_S3_ADDRESSING="virtual")
        same(penstock.load("s3://bucket/x.npy"), penstock.load(SMALL))
        assert running.origin.seen["host"] == f"bucket.localhost:{port}"


def test_a_clock_that_is_wrong_is_named(store, settings):
    settings(**SIGNED)
    store.faults = [Fault(status=403, body="<Error><Code>RequestTimeTooSkewed</Code></Error>")]
    with refused(penstock.PermissionDeniedError, "clock"):
        penstock.load("s3://bucket/x.npy")


# To whom tokens go. A name of a host that is not this machine is reached through a proxy here.


@pytest.fixture
def world(settings):
    """All hosts by http, as a proxy gives them."""
    with in_thread(FaultProxy()) as running:
        settings(http_proxy=running.url, no_proxy="")
        yield running


def sent_token(requests) -> bool:
    return any("authorization" in request.headers for request in requests)


@pytest.mark.parametrize("url", ["http://data.test/x.npy", "http://127.data.test/x.npy", "http://10.0.0.1/x.npy"])
def test_a_token_is_not_sent_where_others_listen(world, settings, url):
    world.origin.objects[url] = SMALL
    settings(PENSTOCK_HTTP_TOKEN="hf_sEcReT", PENSTOCK_HTTP_TOKEN_HOST=url.split("/")[2])
    same(penstock.load(url), penstock.load(SMALL))
    assert world.requests
    assert not sent_token(world.requests)
    world.faults = [Fault(status=401)]
    with refused(penstock.PermissionDeniedError, "https", "PENSTOCK_HTTP_TOKEN"):
        penstock.load(url)


def test_a_token_is_sent_to_this_machine(proxy, settings):
    proxy.origin.objects["/x.npy"] = SMALL
    settings(PENSTOCK_HTTP_TOKEN="hf_sEcReT", PENSTOCK_HTTP_TOKEN_HOST=proxy.url[7:])
    same(penstock.load(f"{proxy.url}/x.npy"), penstock.load(SMALL))
    assert sent_token(proxy.requests)
    port = proxy.url.rsplit(":", 1)[1]
    proxy.forget()
    settings(PENSTOCK_HTTP_TOKEN_HOST=f"localhost:{port}")
    same(penstock.load(f"http://LocalHost:{port}/x.npy"), penstock.load(SMALL))
    assert sent_token(proxy.requests)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"HF_ENDPOINT": "http://mirror.test", "HF_TOKEN": "hf_sEcReT"}, "hf://owner/repo/x.npy"),
        ({"PENSTOCK_GS_ENDPOINT": "http://gs.test", "GOOGLE_OAUTH_ACCESS_TOKEN": "hf_sEcReT"}, "gs://bucket/x.npy"),
    ],
    ids=["hf", "gs"],
)
def test_other_tokens_are_not_sent_there_either(world, settings, given, url):
    world.faults = [Fault(status=401)]
    settings(**given)
    with refused(penstock.PermissionDeniedError, "https"):
        penstock.load(url)
    assert world.requests
    assert not sent_token(world.requests)


@pytest.mark.parametrize(
    "url",
    ["http://localhost:x@evil.test/k", "http://127.evil.test/k", "http://localhost.evil/k", "evil.test/?hf_sEcReT"],
)
def test_keys_are_not_asked_for_of_hosts_that_look_like_this_machine(store, world, settings, url):
    token = {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "hf_sEcReT"}
    settings(AWS_CONTAINER_CREDENTIALS_FULL_URI=url, no_proxy="127.0.0.1", **token)
    with refused(penstock.PermissionDeniedError, "https"):
        penstock.load("s3://bucket/x.npy")
    assert not world.requests


def test_a_web_identity_is_not_sent_by_http(store, world, settings, tmp_path):
    (tmp_path / "token").write_text("hf_sEcReT")
    settings(
        AWS_ROLE_ARN="arn:x",
        AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "token",
        AWS_ENDPOINT_URL_STS="http://sts.test",
        no_proxy="127.0.0.1",
    )
    with refused(penstock.PermissionDeniedError, "AWS_ENDPOINT_URL_STS"):
        penstock.load("s3://bucket/x.npy")
    assert not world.requests


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("AWS_ENDPOINT_URL", "s3://bucket/x.npy"),
        ("PENSTOCK_GS_ENDPOINT", "gs://bucket/x.npy"),
        ("HF_ENDPOINT", "hf://owner/repo/x.npy"),
        ("AZURE_STORAGE_BLOB_ENDPOINT", "az://c/x.npy"),
        ("AZURE_AUTHORITY_HOST", "az://c/x.npy"),
        ("AWS_ENDPOINT_URL_STS", "s3://bucket/x.npy"),
    ],
)
@pytest.mark.parametrize(
    "endpoint", ["store.test", "ftp://store.test", "http://", "https://u:pAsSwOrD@s.test", "http://s?x"]
)
def test_an_endpoint_that_is_none_is_refused(settings, tmp_path, name, url, endpoint):
    (tmp_path / "token").write_text("hf_sEcReT")
    settings(AZURE_STORAGE_ACCOUNT="account", AZURE_TENANT_ID="t", AZURE_CLIENT_ID="c", AZURE_CLIENT_SECRET="pAsSwOrD")
    settings(AWS_ROLE_ARN="arn", AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "token", **{name: endpoint})
    with refused(penstock.InvalidArgumentError, name):
        penstock.load(url)


@pytest.mark.parametrize(
    ("name", "url", "given"),
    [
        ("PENSTOCK_S3_ANONYMOUS", "s3://bucket/x.npy", SIGNED),
        ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "hf://owner/repo/x.npy", {"HF_TOKEN_PATH": "~/token"}),
    ],
)
def test_a_switch_is_on_off_or_refused(store, settings, tmp_path, name, url, given):
    (tmp_path / "token").write_text("hf_sEcReT")
    store.origin.objects["/owner/repo/resolve/main/x.npy"] = SMALL
    settings(HF_ENDPOINT=store.url, **given)
    for value in ("0", "false", "False", "no", "off", ""):
        settings(**{name: value})
        same(penstock.load(url), penstock.load(SMALL))
        assert "authorization" in store.origin.seen
    for value in ("1", "true", "TRUE", "yes", "on"):
        settings(**{name: value})
        with refused(penstock.PermissionDeniedError):
            penstock.load(url)
    settings(**{name: "maybe"})
    with refused(penstock.InvalidArgumentError, name, "maybe"):
        penstock.load(url)


@pytest.mark.parametrize("off", [False, True])
@pytest.mark.parametrize("place", ["home", "HF_HOME", "HF_TOKEN_PATH"])
def test_the_token_that_hugging_faces_tools_keep(proxy, settings, tmp_path, place, off):
    proxy.origin.objects["/owner/repo/resolve/main/x.npy"] = SMALL
    settings(HF_ENDPOINT=proxy.url)
    folder = tmp_path / (".cache/huggingface" if place == "home" else "mine")
    folder.mkdir(parents=True)
    (folder / "token").write_text("hf_sEcReT\n")
    if place != "home":
        settings(**{place: folder / "token" if place == "HF_TOKEN_PATH" else folder})
    if off:
        settings(HF_HUB_DISABLE_IMPLICIT_TOKEN="1")
    same(penstock.load("hf://owner/repo/x.npy"), penstock.load(SMALL))
    assert sent_token(proxy.requests) is not off
