"""Services that give keys, and files that have them: what passes is tried again, half an answer is none, what cannot be
used is said with the setting's name, and no secret becomes a header or goes to a proxy."""

from __future__ import annotations

import json
import os
import textwrap
import time
from pathlib import Path

import pytest
from contents import contents, same
from fault_proxy import Fault, FaultProxy, Memory, in_thread, plain
from refusals import refused
from servers import SECRET_KEY

import penstock

SMALL = contents()["small.npy"]
ROLE = "/latest/meta-data/iam/security-credentials/"
STS = (
    "<AssumeRoleWithWebIdentityResponse><Credentials><AccessKeyId>ACCESSKEYS</AccessKeyId>"
    f"<SecretAccessKey>{SECRET_KEY}</SecretAccessKey><SessionToken>token</SessionToken>"
    "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResponse>"
)


class WhoAsks(Memory):
    """A store, of S3 or Azure, that gives objects to those who say who they are."""

    seen: dict[str, str]

    async def __call__(self, request):
        self.seen = request.headers
        if "authorization" not in request.headers:
            return plain(403, b"<Error><Code>AccessDenied</Code></Error>")
        return await super().__call__(request)


@pytest.fixture
def store(settings):
    with in_thread(FaultProxy(WhoAsks({"/bucket/x.npy": SMALL}))) as running:
        settings(
            AWS_ENDPOINT_URL=running.url,
            AZURE_STORAGE_ACCOUNT="account",
            AZURE_STORAGE_BLOB_ENDPOINT=running.url,
            PENSTOCK_REMOTE_RETRY_SECONDS=10,
            PENSTOCK_REMOTE_TIMEOUT=5,
        )
        yield running


def keys(seconds: float = 3600, **changes: object) -> bytes:
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    given = {"Code": "Success", "AccessKeyId": "ACCESSKEYA", "SecretAccessKey": SECRET_KEY, "Token": "token"}
    return json.dumps(given | {"Expiration": ends} | changes).encode()


class Service:
    """One of the services, served by `proxy`, and what is loaded with its keys."""

    def __init__(self, proxy, settings, tmp_path, kind: str) -> None:
        self.proxy = proxy
        self.secret = "pAsSwOrD" if kind == "azure entra" else "hf_sEcReT" if kind in ("web", "azure container") else ""
        self.url = "az://bucket/x.npy" if kind.startswith("azure") else "s3://bucket/x.npy"
        token = json.dumps({"access_token": "token", "expires_in": "3600"}).encode()
        objects = proxy.origin.objects
        if kind == "machine":
            self.target = f"{ROLE}role"
            objects |= {"/latest/api/token": b"session", ROLE: b"role\n", self.target: keys()}
            settings(AWS_EC2_METADATA_DISABLED="false", AWS_EC2_METADATA_SERVICE_ENDPOINT=proxy.url)
        elif kind == "container":
            self.target = "/keys"
            objects[self.target] = keys()
            settings(AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{proxy.url}/keys")
        elif kind == "web":
            self.target = "/"
            objects[self.target] = STS.encode()
            (tmp_path / "token").write_text("hf_sEcReT")
            settings(AWS_ENDPOINT_URL_STS=proxy.url, AWS_ROLE_ARN="arn", AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "token")
        elif kind == "azure machine":
            self.target = "/metadata/identity/oauth2/token"
            settings(AZURE_POD_IDENTITY_AUTHORITY_HOST=proxy.url)
            self._answers(token)
        elif kind == "azure container":
            self.target = "/t"
            settings(IDENTITY_ENDPOINT=f"{proxy.url}/t?x=1", IDENTITY_HEADER="hf_sEcReT")
            self._answers(token)
        else:
            self.target = "/tenant/oauth2/v2.0/token"
            secret = {"AZURE_CLIENT_SECRET": "pAsSwOrD"}
            settings(AZURE_AUTHORITY_HOST=proxy.url, AZURE_TENANT_ID="tenant", AZURE_CLIENT_ID="c", **secret)
            self._answers(token)

    def _answers(self, body: bytes) -> None:
        async def answer(request):
            return plain(200, body)

        self.proxy.origin = answer

    def load(self) -> None:
        same(penstock.load(self.url), penstock.load(SMALL))


KINDS = ("machine", "container", "web", "azure machine", "azure container", "azure entra")


@pytest.fixture(params=KINDS)
def service(request, store, proxy, settings, tmp_path):
    return Service(proxy, settings, tmp_path, request.param)


HALF = STS[: STS.index("<SessionToken>")]
PASSING = {
    "408": Fault(status=408),
    "cut": Fault(cut=5),
    "stopped": Fault(stop=5),
    "half": Fault(status=200, body='{"AccessKeyId": "A", "SecretAccessKey": "S", "access_token": "t", "To'),
    "half xml": Fault(status=200, body=HALF),
    "page": Fault(status=200, body="<html>log in</html>"),
    "empty": Fault(status=200, body=" "),
}


@pytest.mark.parametrize("fault", PASSING)
def test_half_an_answer_is_asked_for_again(service, fault, settings):
    settings(PENSTOCK_REMOTE_TIMEOUT=1)
    service.proxy.faults = [Fault(**vars(PASSING[fault]) | {"target": service.target, "times": 1})]
    service.load()


def test_a_refusal_names_the_settings_and_the_services_words(service):
    body = json.dumps({"error": "invalid_client", "error_description": f"no such client, {service.secret}"})
    service.proxy.faults = [Fault(target=service.target, status=400, body=body)]
    with pytest.raises(penstock.Error) as failed:
        service.load()
    told = str(failed.value)
    assert "invalid_client" in told
    assert "no such client" in told
    assert not service.secret or service.secret not in told
    assert any(name in told for name in ("AZURE_CLIENT_ID", "AWS_"))


def test_an_answer_that_says_why_there_are_no_keys(store, proxy, settings, tmp_path):
    service = Service(proxy, settings, tmp_path, "machine")
    proxy.origin.objects[service.target] = keys(Code="AssumeRoleUnauthorizedAccess", Message="EC2 cannot assume it")
    with refused(penstock.PermissionDeniedError, "AssumeRoleUnauthorizedAccess", "EC2 cannot assume it"):
        service.load()


def test_keys_that_ended_by_this_machines_clock_are_not_fetched_for_each_request(store, proxy, settings, tmp_path):
    """The clock may be wrong. The store says it where they have ended."""
    service = Service(proxy, settings, tmp_path, "container")
    proxy.origin.objects[service.target] = keys(-60)
    begun = time.monotonic()
    for _ in range(40):
        service.load()
    assert len(proxy.requests) <= 2 + (time.monotonic() - begun)


@pytest.mark.parametrize("value", ["True", "TRUE", "1", "yes", "on"])
def test_metadata_is_off_by_any_word_for_it(store, proxy, settings, tmp_path, value):
    service = Service(proxy, settings, tmp_path, "machine")
    settings(AWS_EC2_METADATA_DISABLED=value)
    with refused(penstock.PermissionDeniedError, "AWS_EC2_METADATA_DISABLED is true"):
        service.load()
    assert not proxy.requests


# Secrets become headers, and go to nobody else.

INJECTED = {
    "id": {"AWS_ACCESS_KEY_ID": "ACCESSKEY1\r\nX-Evil: 1", "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
    "end of id": {"AWS_ACCESS_KEY_ID": "ACCESSKEY1\n", "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
    "secret": {"AWS_ACCESS_KEY_ID": "ACCESSKEY1", "AWS_SECRET_ACCESS_KEY": SECRET_KEY + "\n"},
    "token": {
        "AWS_ACCESS_KEY_ID": "ACCESSKEY1",
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_SESSION_TOKEN": "t\r\nX-Evil: 1",
    },
}


@pytest.mark.parametrize("case", INJECTED)
def test_keys_with_line_breaks_are_refused(store, settings, case):
    settings(**INJECTED[case])
    with refused(penstock.InvalidArgumentError, "line break", "AWS_ACCESS_KEY_ID"):
        penstock.load("s3://bucket/x.npy")
    assert not store.requests


@pytest.mark.parametrize("field", ["AccessKeyId", "SecretAccessKey", "Token"])
def test_keys_of_a_service_with_line_breaks_are_refused(store, proxy, settings, tmp_path, field):
    service = Service(proxy, settings, tmp_path, "container")
    proxy.origin.objects[service.target] = keys(**{field: "A\r\nX-Evil: 1"})
    with refused(penstock.InvalidArgumentError, "line break"):
        service.load()
    assert not store.requests


LOCAL = "http://127.0.0.1:1"  # nobody is there
THROUGH = {
    "http": ("http://127.0.0.1:1/x", {"PENSTOCK_HTTP_TOKEN": "hf_sEcReT", "PENSTOCK_HTTP_TOKEN_HOST": "127.0.0.1:1"}),
    "localhost": (
        "http://localhost:1/x",
        {"PENSTOCK_HTTP_TOKEN": "hf_sEcReT", "PENSTOCK_HTTP_TOKEN_HOST": "localhost:1"},
    ),
    "hf": ("hf://owner/repo/x", {"HF_TOKEN": "hf_sEcReT", "HF_ENDPOINT": LOCAL}),
    "gs": ("gs://bucket/x", {"GOOGLE_OAUTH_ACCESS_TOKEN": "hf_sEcReT", "PENSTOCK_GS_ENDPOINT": LOCAL}),
    "signature": ("az://c/x", {"AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=sIgNaTuRe", "AZURE_STORAGE_BLOB_ENDPOINT": LOCAL}),
    "token": ("az://c/x", {"AZURE_STORAGE_TOKEN": "hf_sEcReT", "AZURE_STORAGE_BLOB_ENDPOINT": LOCAL}),
    "entra": (
        "az://c/x",
        {
            "AZURE_AUTHORITY_HOST": LOCAL,
            "AZURE_TENANT_ID": "t",
            "AZURE_CLIENT_ID": "c",
            "AZURE_CLIENT_SECRET": "pAsSwOrD",
        },
    ),
    "web": ("s3://bucket/x", {"AWS_ENDPOINT_URL_STS": LOCAL, "AWS_ROLE_ARN": "arn"}),
}


@pytest.mark.parametrize("case", THROUGH)
@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_no_proxy_sees_what_is_for_this_machine(settings, tmp_path, case, variable):
    """What goes to this machine by http may be secret; a proxy is another machine, and would read it."""
    url, given = THROUGH[case]
    (tmp_path / "token").write_text("hf_sEcReT")
    settings(AZURE_STORAGE_ACCOUNT="account", AWS_WEB_IDENTITY_TOKEN_FILE=tmp_path / "token", **given)
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=0, PENSTOCK_REMOTE_TIMEOUT=5)
    with in_thread(FaultProxy()) as spy:
        settings(**{variable: spy.url, "no_proxy": ""})
        with pytest.raises(penstock.InputOutputError, match="no connection"):
            penstock.load(url)
        assert not spy.requests


def test_a_redirect_from_this_machine_goes_by_the_proxy_again(proxy, settings):
    with in_thread(FaultProxy()) as world:
        world.origin.objects["http://data.test/x.npy"] = SMALL
        proxy.faults = [Fault(status=302, headers={"location": "http://data.test/x.npy"})]
        settings(http_proxy=world.url, no_proxy="", PENSTOCK_HTTP_TOKEN="hf_sEcReT")
        settings(PENSTOCK_HTTP_TOKEN_HOST=proxy.url[7:])
        same(penstock.load(f"{proxy.url}/x.npy"), penstock.load(SMALL))
        assert "authorization" in proxy.requests[0].headers
        assert not any("authorization" in request.headers for request in world.requests)


@pytest.mark.parametrize("host", ["", "127.0.0.1", "elsewhere.test"])
def test_a_token_that_is_for_another_host_is_named(proxy, settings, host):
    proxy.faults = [Fault(status=401)]
    settings(PENSTOCK_HTTP_TOKEN="hf_sEcReT", PENSTOCK_HTTP_TOKEN_HOST=host)
    with refused(penstock.PermissionDeniedError, "no token was sent", "PENSTOCK_HTTP_TOKEN_HOST"):
        penstock.load(f"{proxy.url}/x.npy")
    assert not any("authorization" in request.headers for request in proxy.requests)


@pytest.mark.parametrize(
    "host", ["http://127.0.0.1", "127.0.0.1:1/", "*", "a.test,b.test", " a.test", "u:pAsSwOrD@a.test"]
)
def test_a_host_of_a_token_is_one_host(proxy, settings, host):
    settings(PENSTOCK_HTTP_TOKEN="hf_sEcReT", PENSTOCK_HTTP_TOKEN_HOST=host)
    with refused(penstock.InvalidArgumentError, "PENSTOCK_HTTP_TOKEN_HOST"):
        penstock.load(f"{proxy.url}/x.npy")


# Files of keys and tokens.


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def an_empty_file(path: Path) -> None:
    path.touch()


def a_large_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(5 << 20)


def nothing(path: Path) -> None:
    pass


UNREADABLE = (a_fifo, a_folder, a_large_file, nothing)


@pytest.mark.parametrize("what", [*UNREADABLE, an_empty_file])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "web"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "container"),
        ("AZURE_FEDERATED_TOKEN_FILE", "azure entra"),
    ],
)
def test_a_file_of_a_token_that_is_none_is_named(store, proxy, settings, tmp_path, name, kind, what):
    service = Service(proxy, settings, tmp_path, kind)
    what(tmp_path / "mine")
    settings(**{name: tmp_path / "mine"}, AZURE_CLIENT_SECRET="")
    with refused(penstock.PermissionDeniedError, name):
        service.load()
    assert not proxy.requests


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("name", ["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"])
def test_a_file_of_profiles_that_cannot_be_read_is_named(store, settings, tmp_path, name, what):
    what(tmp_path / "mine")
    settings(**{name: tmp_path / "mine"})
    with refused(penstock.PermissionDeniedError, "unsigned", name, str(tmp_path / "mine")):
        penstock.load("s3://bucket/x.npy")
    settings(AWS_PROFILE="team")
    with refused(penstock.PermissionDeniedError, "'team'", name):
        penstock.load("s3://bucket/x.npy")


KEYS = f"aws_access_key_id = ACCESSKEYP\naws_secret_access_key = {SECRET_KEY}\n"
WRITTEN = {
    "byte order mark": ("\ufeff[default]\n" + KEYS, "default"),
    "capitals": ("[default]\n" + KEYS.replace("aws_", "AWS_"), "default"),
    "quotes": ('[profile "my team"]\n' + KEYS, "my team"),
    "tab": ("[profile\tteam]\n" + KEYS, "team"),
    "spaces": ("[ profile   team ]\n" + KEYS, "team"),
    "indented": ("[profile team]\n" + textwrap.indent(KEYS, "  "), "team"),
    "indented by less": ("[profile team]\n    region = us-east-1\n" + textwrap.indent(KEYS, "\t"), "team"),
    "colons": ("[profile team]\n" + KEYS.replace(" =", ":") + "role_session_name: a=b\n", "team"),
}


@pytest.mark.parametrize("case", WRITTEN)
@pytest.mark.parametrize("setting", ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"])
def test_profiles_as_amazons_tools_read_them(store, settings, tmp_path, case, setting):
    text, profile = WRITTEN[case]
    (tmp_path / "config").write_text(text, encoding="utf-8")
    settings(AWS_CONFIG_FILE=tmp_path / "config", **{setting: profile})
    same(penstock.load("s3://bucket/x.npy"), penstock.load(SMALL))
    assert "ACCESSKEYP" in store.origin.seen["authorization"]


@pytest.mark.parametrize("line", KEYS.splitlines())
def test_half_keys_are_refused(store, settings, tmp_path, line):
    (tmp_path / "config").write_text(f"[default]\n{line}\n")
    settings(AWS_CONFIG_FILE=tmp_path / "config")
    with refused(penstock.PermissionDeniedError, "'default'", "aws_access_key_id", "aws_secret_access_key"):
        penstock.load("s3://bucket/x.npy")
    settings(PENSTOCK_GS_ENDPOINT=store.url, PENSTOCK_GS_ACCESS_KEY_ID="ACCESSKEY1")
    with refused(penstock.PermissionDeniedError, "PENSTOCK_GS_SECRET_ACCESS_KEY"):
        penstock.load("gs://bucket/x.npy")


@pytest.mark.parametrize("place", ["profile", "container"])
def test_a_refusal_says_whose_keys_signed_where_the_profile_has_another_way(store, proxy, settings, tmp_path, place):
    (tmp_path / "config").write_text(f"[default]\nrole_arn = arn:x\n{KEYS if place == 'profile' else ''}")
    settings(AWS_CONFIG_FILE=tmp_path / "config")
    if place == "container":
        Service(proxy, settings, tmp_path, place)
    store.faults = [Fault(status=403, body="<Error><Code>AccessDenied</Code></Error>")]
    with refused(penstock.PermissionDeniedError, "role_arn", "does not follow"):
        penstock.load("s3://bucket/x.npy")
