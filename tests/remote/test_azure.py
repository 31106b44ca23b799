"""What az:// alone has: who asks, the words of Azure's protocol, and that Azure's own client agrees with the stand-in
that other tests of az:// talk to (azure_memory.py)."""

from __future__ import annotations

import json
import time
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from azure_memory import ACCOUNT, KEY, AzureMemory
from contents import contents, npy_of, numbers, same
from fault_proxy import Fault, FaultProxy, in_thread
from refusals import has_no_secret, refused, within
from written import MEGA, run

import penstock
from penstock.remote import RemoteOptions

SMALL = contents()["small.npy"]
TOKEN = "t0kEn-of-Entra"
IMDS = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F"


@pytest.fixture
def azure(settings):
    """The stand-in with an object in it. Nothing says yet who asks."""
    with in_thread(FaultProxy(AzureMemory())) as running:
        running.origin.objects["/bucket/x.npy"] = SMALL
        settings(
            AZURE_STORAGE_ACCOUNT=ACCOUNT,
            AZURE_STORAGE_BLOB_ENDPOINT=f"{running.url}/{ACCOUNT}",
            PENSTOCK_REMOTE_RETRY_SECONDS=10,
            PENSTOCK_REMOTE_TIMEOUT=5,
        )
        yield running


@pytest.fixture
def keyed(azure, settings):
    settings(AZURE_STORAGE_KEY=KEY)
    return azure


def loads(name: str = "x.npy") -> None:
    same(penstock.load(f"az://bucket/{name}"), penstock.load(SMALL))


# Azure's own client.


@pytest.fixture
def official(keyed):
    blob = pytest.importorskip(
        "azure.storage.blob", reason="azure-storage-blob is not installed here (script/test remote sets it up)"
    )
    account = blob.BlobServiceClient(f"{keyed.url}/{ACCOUNT}", credential=KEY, retry_total=0)
    return account.get_container_client("bucket")


NAMES = ("plain.npy", "dir/x=1,y+2:(3)%41&é ä.npy", "a#b?c.npy", "~'!*;@$.npy")


@pytest.mark.parametrize("name", NAMES)
def test_azures_client_reads_what_is_written(official, name):
    penstock.save(numbers(100), f"az://bucket/{name}")
    blob = official.get_blob_client(name)
    assert blob.download_blob().readall() == npy_of(numbers(100))
    assert blob.get_blob_properties().content_settings.content_type == "application/octet-stream"
    large = numbers(5 * MEGA)
    penstock.save(large, f"az://bucket/{name}")
    assert official.get_blob_client(name).download_blob().readall() == npy_of(large)
    committed, uncommitted = blob.get_block_list("all")
    assert len(committed) == 3
    assert not uncommitted


@pytest.mark.parametrize("name", NAMES)
def test_what_azures_client_writes_is_read(official, name):
    array = numbers(3 * MEGA)
    official.upload_blob(name, npy_of(array))  # one request
    assert np.array_equal(np.asarray(penstock.load(f"az://bucket/{name}")), array)
    blob = official.get_blob_client(f"in blocks/{name}")
    blob.stage_block("b1", npy_of(array)[:1000])
    blob.stage_block("b2", npy_of(array)[1000:])
    from azure.storage.blob import BlobBlock

    blob.commit_block_list([BlobBlock("b1"), BlobBlock("b2")])
    assert np.array_equal(np.asarray(penstock.load(f"az://bucket/in blocks/{name}")), array)


def test_both_list_the_same(official, keyed):
    for name in (*NAMES, "dir/2.npy", "dir/deep/er.npy"):
        penstock.save(numbers(3), f"az://bucket/tree/{name}")
    keyed.origin.page = 2
    listed = sorted(blob.name for blob in official.list_blobs("tree/"))
    keyed.forget()
    ours = penstock.files("az://bucket/tree/**/*.npy")
    assert len(keyed.requests) == 3
    assert [path.removeprefix("az://bucket/") for path in ours.paths] == sorted(listed, key=str.encode)
    one_level = {path.removeprefix("az://bucket/tree/") for path in penstock.files("az://bucket/tree/*.npy").paths}
    assert one_level == {
        blob.name.removeprefix("tree/") for blob in official.walk_blobs("tree/") if blob.name[-1] != "/"
    }


@pytest.mark.parametrize("kind", ["container", "account"])
def test_shared_access_signatures_of_azures_client(official, azure, settings, monkeypatch, kind):
    from azure.storage import blob

    ends = datetime.now(timezone.utc) + timedelta(hours=1)
    if kind == "container":
        sas = blob.generate_container_sas(ACCOUNT, "bucket", KEY, permission="rwl", expiry=ends)
    else:
        types = blob.ResourceTypes(container=True, object=True)
        sas = blob.generate_account_sas(ACCOUNT, KEY, types, "rwl", ends)
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    settings(AZURE_STORAGE_SAS_TOKEN=f"?{sas}")
    loads()
    assert len(penstock.files("az://bucket/*.npy")) == 1
    penstock.save(numbers(5 * MEGA), "az://bucket/y.npy")
    assert all("authorization" not in request.headers for request in azure.requests)
    # It may not delete, and another's is refused.
    from penstock._core import _remove

    with refused(penstock.PermissionDeniedError, "AuthorizationPermissionMismatch"):
        _remove("az://bucket/y.npy")
    settings(AZURE_STORAGE_SAS_TOKEN=sas.replace("sig=", "sig=x"))
    with refused(penstock.PermissionDeniedError, "AuthenticationFailed", "AZURE_STORAGE_SAS_TOKEN") as failed:
        loads()
    assert sas.partition("sig=")[2][:20] not in str(failed.value)


# The account in the URL.


@pytest.mark.parametrize("scheme", ["abfs", "abfss"])
def test_a_url_may_name_the_account(keyed, settings, monkeypatch, scheme):
    """Its requests go to the endpoint that variables name for that account, which is the stand-in's here."""
    place = f"{scheme}://bucket@{ACCOUNT}.dfs.core.windows.net"
    same(penstock.load(f"{place}/x.npy"), penstock.load(SMALL))
    penstock.save(numbers(5 * MEGA), f"{place}/dir/y.npy")
    same(penstock.load("az://bucket/dir/y.npy"), penstock.load(npy_of(numbers(5 * MEGA))))
    assert penstock.files(f"{place}/dir/*.npy").paths == [f"{place}/dir/y.npy"]
    assert {request.headers["authorization"].split(":")[0] for request in keyed.requests} == {f"SharedKey {ACCOUNT}"}
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT")  # the endpoint is the account's too
    same(penstock.load(f"{place}/x.npy"), penstock.load(SMALL))
    with refused(penstock.NotFoundError, f"{place}/none.npy"):
        penstock.load(f"{place}/none.npy")


def test_a_url_of_another_account_gets_no_key(keyed, settings):
    settings(HTTPS_PROXY="http://127.0.0.1:9", PENSTOCK_REMOTE_RETRY_SECONDS=0, AZURE_STORAGE_TOKEN=TOKEN)
    with pytest.raises(penstock.Error, match="abfs://bucket@other"):
        penstock.load("abfs://bucket@other.dfs.core.windows.net/x.npy")
    assert keyed.requests == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("az:///x.npy", "az://CONTAINER/BLOB"),
        ("abfs:///x.npy", "abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/BLOB"),
        ("abfs://bucket@evil.example.org/x.npy", "no host of an account of Azure"),
        ("az://bucket@acct.dfs.core.windows.net/x.npy", "write abfs://CONTAINER@ACCOUNT"),
    ],
)
def test_a_url_that_cannot_be_right_says_what_to_write(keyed, url, words):
    for call in (penstock.load, lambda path: penstock.save(numbers(3), path)):
        with refused(penstock.InvalidArgumentError, words):
            call(url)
    assert keyed.requests == []


# Who asks.


def test_the_account_in_a_connection_string(azure, settings, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT")
    monkeypatch.delenv("AZURE_STORAGE_BLOB_ENDPOINT")
    url = f"{azure.url}/{ACCOUNT}"
    settings(AZURE_STORAGE_CONNECTION_STRING=f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url};")
    loads()
    settings(AZURE_STORAGE_CONNECTION_STRING="AccountKey=abc")
    with refused(penstock.InvalidArgumentError, "AZURE_STORAGE_CONNECTION_STRING"):
        loads()
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING")
    with refused(penstock.InvalidArgumentError, "AZURE_STORAGE_ACCOUNT"):
        loads()


def test_keys_are_looked_for_in_order(azure, settings):
    """What is set later here stands before what was set earlier."""
    with refused(penstock.NotFoundError, "unsigned", "AZURE_STORAGE_KEY", "metadata"):
        loads()  # Azure tells a stranger that there is nothing
    azure.origin.tokens.add(TOKEN)
    settings(AZURE_STORAGE_TOKEN=TOKEN)
    loads()
    assert azure.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"
    settings(AZURE_STORAGE_SAS_TOKEN="sv=2021-12-02&sr=c&sp=r&se=2999-01-01&sig=wrong")
    with refused(penstock.PermissionDeniedError, "AuthenticationFailed"):
        loads()
    settings(AZURE_STORAGE_KEY=KEY)
    loads()
    assert azure.requests[-1].headers["authorization"].startswith(f"SharedKey {ACCOUNT}:")
    settings(PENSTOCK_AZ_ANONYMOUS=1)
    with refused(penstock.NotFoundError, "PENSTOCK_AZ_ANONYMOUS"):
        loads()
    azure.origin.public.add("bucket")
    loads()
    assert len(penstock.files("az://bucket/*.npy")) == 1


@pytest.mark.parametrize("key", ["d3Jvbmc=", "no Base64!"])
def test_wrong_keys(azure, settings, key):
    settings(AZURE_STORAGE_KEY=key)
    with refused(penstock.PermissionDeniedError, "AZURE_STORAGE_KEY"):
        loads()


def test_options_say_who_asks(azure, settings):
    settings(AZURE_STORAGE_KEY="d3Jvbmc=", AZURE_STORAGE_ACCOUNT="another")
    azure.origin.tokens.add(TOKEN)
    at = {"endpoint": f"{azure.url}/{ACCOUNT}", "account": ACCOUNT}
    for options in (RemoteOptions(account_key=KEY, **at), RemoteOptions(token=TOKEN, **at)):
        same(penstock.load(penstock.remote.open("az://bucket/x.npy", options)), penstock.load(SMALL))
        assert KEY not in repr(options)
        assert TOKEN not in repr(options)
    with refused(penstock.NotFoundError, "PENSTOCK_AZ_ANONYMOUS"):
        penstock.remote.open("az://bucket/x.npy", RemoteOptions(anonymous=True, **at))
    with refused(penstock.PermissionDeniedError):
        penstock.remote.open("az://bucket/x.npy", RemoteOptions(sas_token="sv=1&sig=x&se=2999-01-01", **at))


@pytest.mark.parametrize("url", ["az://c@acct.blob.core.windows.net/x.npy", "az://acct.blob.core.windows.net/c/x.npy"])
def test_urls_with_the_account_in_them(url):
    with refused(penstock.InvalidArgumentError, "az://"):
        penstock.load(url)


def test_a_signature_in_a_url_is_refused_and_not_repeated():
    with refused(penstock.InvalidArgumentError, "AZURE_STORAGE_SAS_TOKEN") as failed:
        penstock.load("az://bucket/x.npy?sv=1&sig=pAsSwOrD")
    assert failed.value.path == "az://bucket/x.npy?..."


@pytest.mark.parametrize("proof", ["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_TOKEN"])
def test_no_proof_goes_where_others_listen(azure, settings, proof):
    azure.origin.public.add("bucket")
    settings(AZURE_STORAGE_BLOB_ENDPOINT="http://store.invalid", http_proxy=azure.url, **{proof: "sig=pAsSwOrD"})
    with refused(penstock.NotFoundError, "https"):
        penstock.load("az://bucket/other.npy")
    assert azure.requests
    assert "pAsSwOrD" not in str([(request.target, request.headers) for request in azure.requests])


# Tokens of services.


def token(seconds: float, name: str = TOKEN, *, as_text: bool = True) -> bytes:
    ends = int(time.time() + seconds)
    value = {"access_token": name, "expires_on": str(ends), "token_type": "Bearer"}
    return json.dumps(value if as_text else {**value, "expires_on": ends}).encode()


@pytest.fixture
def machine(azure, settings, proxy):
    """The metadata service of a machine with an identity."""
    azure.origin.tokens.add(TOKEN)
    proxy.origin.objects[IMDS] = token(3600)
    settings(AZURE_POD_IDENTITY_AUTHORITY_HOST=proxy.url)
    return proxy


def test_a_machines_identity_gives_a_token(azure, machine, settings):
    for _ in range(3):
        loads()
    assert [request.headers["metadata"] for request in machine.requests] == ["true"]
    machine.origin.objects[f"{IMDS.replace('&res', '&client_id=me&res')}"] = token(3600, as_text=False)
    settings(AZURE_CLIENT_ID="me")
    loads()
    assert "client_id=me" in machine.requests[-1].target


@pytest.mark.parametrize(
    "fault", [Fault(status=500), Fault(status=429), Fault(reset=True)], ids=["500", "429", "reset"]
)
def test_what_passes_at_first_use_is_tried_again(azure, machine, fault):
    machine.faults = [Fault(**{**vars(fault), "times": 1})]
    loads()


def test_an_identity_that_is_none(azure, machine):
    machine.faults = [Fault(status=400, body='{"error":"invalid_request","error_description":"Identity not found"}')]
    with refused(penstock.NotFoundError, "unsigned", "400"):
        loads()


def test_a_token_is_fetched_anew_before_it_ends(azure, machine):
    """One that is good for 40 seconds is renewed every 4."""
    machine.origin.objects[IMDS] = token(40)
    loads()
    azure.origin.tokens.add("second")
    machine.origin.objects[IMDS] = token(3600, "second")
    with within(30):
        while azure.requests[-1].headers["authorization"] != "Bearer second":
            loads()


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(hang=True), Fault(status=200, body="nonsense")])
def test_a_token_that_is_good_outlives_a_service_that_fails(azure, machine, fault):
    machine.origin.objects[IMDS] = token(40)
    loads()
    machine.faults = [fault]
    machine.forget()
    with within(30):
        while not machine.requests:
            loads()
    loads()


def test_a_token_that_the_store_refuses_is_fetched_anew(azure, machine):
    loads()
    azure.origin.tokens = {"second"}
    machine.origin.objects[IMDS] = token(3600, "second")
    loads()
    azure.origin.tokens = set()
    machine.forget()
    with refused(penstock.PermissionDeniedError, "InvalidAuthenticationInfo"):
        loads()
    assert len(machine.requests) < 4


def test_a_token_that_ends_under_several_requests(azure, machine):
    large = numbers(8 * MEGA)
    azure.origin.objects["/bucket/large.npy"] = npy_of(large)
    archive = penstock.open("az://bucket/large.npy")
    azure.origin.tokens = {"second"}
    machine.origin.objects[IMDS] = token(3600, "second")
    azure.delay = 0.2  # so that they are on their way together
    assert np.array_equal(np.asarray(archive.load()), large)
    assert azure.most_at_once > 1


def test_a_containers_identity(azure, proxy, settings):
    azure.origin.tokens.add(TOKEN)
    settings(IDENTITY_ENDPOINT=f"{proxy.url}/msi/token", IDENTITY_HEADER="pAsSwOrD")
    query = IMDS.partition("?")[2].replace("2018-02-01", "2019-08-01")
    proxy.origin.objects[f"/msi/token?{query}"] = token(3600)
    loads()
    assert proxy.requests[0].headers["x-identity-header"] == "pAsSwOrD"
    settings(IDENTITY_ENDPOINT="http://token.invalid/x")
    with refused(penstock.PermissionDeniedError, "IDENTITY_ENDPOINT"):
        loads()


class Entra(AzureMemory):
    """Gives a token to whoever has the right proof."""

    async def __call__(self, request):
        from urllib.parse import parse_qsl

        from fault_proxy import plain

        form = dict(parse_qsl(request.body.decode()))
        self.seen = form
        right = form.get("client_assertion") == "fEdErAtEd" or form.get("client_secret") == "pAsSwOrD"
        if request.target != "/tenant/oauth2/v2.0/token" or not right:
            return plain(401, b'{"error":"invalid_client"}')
        return plain(200, json.dumps({"access_token": TOKEN, "expires_in": 3599}).encode())


def test_a_workloads_identity_and_an_application(azure, settings, tmp_path):
    azure.origin.tokens.add(TOKEN)
    (tmp_path / "token").write_text("fEdErAtEd\n")
    with in_thread(FaultProxy(Entra())) as entra:
        settings(AZURE_AUTHORITY_HOST=f"{entra.url}/", AZURE_TENANT_ID="tenant", AZURE_CLIENT_ID="me")
        settings(AZURE_FEDERATED_TOKEN_FILE=tmp_path / "token")
        loads()
        assert entra.origin.seen["scope"] == "https://storage.azure.com/.default"
        assert entra.origin.seen["client_assertion_type"].endswith("jwt-bearer")
        settings(AZURE_CLIENT_SECRET="pAsSwOrD")
        loads()
        assert entra.origin.seen["client_id"] == "me"
        assert "client_assertion" not in entra.origin.seen
        settings(AZURE_CLIENT_SECRET="wrong/sEcReT")
        with refused(penstock.PermissionDeniedError, "401") as failed:
            loads()
        assert "sEcReT" not in str(failed.value)
    settings(AZURE_AUTHORITY_HOST="http://login.invalid")
    with refused(penstock.PermissionDeniedError, "https"):
        loads()


# Lists.


def test_pages_folders_and_names(keyed):
    keyed.origin.page = 3
    keyed.origin.objects |= {f"/bucket/t/{number:02}.npy": SMALL for number in range(10)}
    keyed.origin.objects["/bucket/t/in/a\x01+b.npy"] = SMALL
    keyed.origin.folders |= {"/bucket/t/in", "/bucket/t/folder.npy"}
    keyed.forget()
    assert len(penstock.files("az://bucket/t/*.npy")) == 10
    assert len(keyed.requests) == 5  # of the folders there are two entries more, and one of what is in it
    assert penstock.files("az://bucket/t/in/*.npy").paths == ["az://bucket/t/in/a\x01+b.npy"]
    assert len(penstock.files("az://bucket/t/**")) == 11


def test_a_page_that_does_not_come_is_no_end(keyed):
    keyed.origin.page = 3
    keyed.origin.objects |= {f"/bucket/t/{number:02}.npy": SMALL for number in range(10)}
    keyed.faults = [Fault(status=403, target="marker=")]
    with refused(penstock.PermissionDeniedError, "403"):
        penstock.files("az://bucket/t/*.npy")
    keyed.faults = [Fault(status=503, target="marker=", times=1)]
    assert len(penstock.files("az://bucket/t/*.npy")) == 10


# What lies in a container.


def test_datasets_shards_and_checkpoints(keyed, tmp_path):
    """The loader's batches are those of the same files here."""
    from test_shards import COUNTS, shard

    (tmp_path / "here").mkdir()
    for number, count in enumerate(COUNTS):
        content = shard(sum(COUNTS[:number]), count)
        keyed.origin.objects[f"/bucket/t-{number:03}.tar"] = content
        (tmp_path / "here" / f"t-{number:03}.tar").write_bytes(content)
    ours, here = penstock.shards("az://bucket/t-{000..002}.tar"), penstock.shards(f"{tmp_path}/here/t-{{000..002}}.tar")
    assert len(ours) == len(here) == sum(COUNTS)
    for number in (0, 41, sum(COUNTS) - 1):
        same(ours[number], here[number])
    samples = [numbers(50, seed=number) for number in range(30)]
    for number, sample in enumerate(samples):
        penstock.save(sample, f"az://bucket/train/{number:02}.npy")
    options = {"batch_size": 10, "shuffle": True, "seed": 1}
    loader = penstock.DataLoader(penstock.files("az://bucket/train/"), num_workers=2, **options)
    expected = penstock.DataLoader(penstock.rows(np.stack(samples)), **options)
    for batch, other in zip(loader, expected, strict=True):
        assert batch.equal(other)
    penstock.save({"a": {"w": numbers(300)}, "step": 3}, "az://bucket/ckpt/")
    assert np.array_equal(np.asarray(penstock.load("az://bucket/ckpt", key="a.w")), numbers(300))


def test_saves_in_the_background(keyed):
    penstock.save_async({"w": numbers(5 * MEGA)}, "az://bucket/later.safetensors").result()
    assert np.array_equal(np.asarray(penstock.load("az://bucket/later.safetensors")["w"]), numbers(5 * MEGA))


# Writes.


@pytest.mark.parametrize("size", [1000, 7 * MEGA], ids=["small", "in blocks"])
def test_others_objects_are_not_taken_for_ours(keyed, command, tmp_path, size):
    penstock.save(numbers(size), tmp_path / "x.npy")
    last = "comp=blocklist" if size > 1000 else "y.npz"
    keyed.origin.objects["/bucket/y.npz"] = b"others"
    keyed.faults = [
        Fault(status=404, methods=["HEAD"], times=1),
        Fault(reset=True, methods=["PUT"], target=last, times=1),
    ]
    assert "object of this name" in run(command, "convert", tmp_path / "x.npy", "az://bucket/y.npz", code=1)
    assert keyed.origin.objects["/bucket/y.npz"] == b"others"


def test_bytes_that_arrive_otherwise_are_sent_again(keyed):
    body = "<Error><Code>Md5Mismatch</Code></Error>"
    for size in (1000, 5 * MEGA):
        keyed.faults = [Fault(status=400, body=body, methods=["PUT"], times=2)]
        penstock.save(numbers(size), "az://bucket/y.npy")
        assert keyed.origin.objects["/bucket/y.npy"] == npy_of(numbers(size))


@pytest.mark.parametrize("target", ["y.npy", "comp=block", "comp=blocklist"])
def test_an_answer_that_is_none_of_a_store(keyed, settings, target):
    settings(PENSTOCK_REMOTE_RETRY_SECONDS=1)
    keyed.faults = [Fault(status=200, body="<html>a proxy</html>", methods=["PUT"], target=target)]
    with refused(penstock.InputOutputError, "does not say", seconds=60):
        penstock.save(numbers(1000 if target == "y.npy" else 5 * MEGA), "az://bucket/y.npy")
    assert "/bucket/y.npy" not in keyed.origin.objects


def test_requests_of_writes(keyed):
    penstock.save(numbers(1000), "az://bucket/y.npy")
    penstock.save(numbers(7 * MEGA), "az://bucket/y.npy")
    assert [request.method for request in keyed.requests] == ["PUT"] * 6
    assert sum("comp=block&" in f"{request.target}&" for request in keyed.requests) == 4
    assert all("content-md5" in request.headers for request in keyed.requests[:-1])


def test_somebody_else_writes_the_object_meanwhile(keyed):
    writer = penstock.Writer("az://bucket/y.npy")
    writer.append(numbers(5 * MEGA))
    with within(30):
        while not keyed.origin.uncommitted.get("/bucket/y.npy"):
            time.sleep(0.01)
    keyed.origin.uncommitted.clear()
    with refused(penstock.InputOutputError, "InvalidBlockList", "meanwhile"):
        writer.finish()
    assert "/bucket/y.npy" not in keyed.origin.objects


def test_blocks_of_another_program_are_named(keyed):
    keyed.origin.uncommitted["/bucket/y.npy"] = {"c2hvcnQ=": b"x"}
    with refused(penstock.InputOutputError, "InvalidBlobOrBlock", "another program"):
        penstock.save(numbers(5 * MEGA), "az://bucket/y.npy")
    penstock.save(numbers(100), "az://bucket/y.npy")  # by one request


def test_a_container_that_is_not_there(keyed):
    with refused(penstock.NotFoundError, "ContainerNotFound", "AZURE_STORAGE_ACCOUNT"):
        penstock.load("az://nobody/x.npy")
    with refused(penstock.NotFoundError, "ContainerNotFound"):
        penstock.save(numbers(3), "az://nobody/x.npy")


def test_the_command_has_no_uploads_to_list(keyed, command):
    assert "within a week" in run(command, "uploads", "az://bucket", code=1)


def test_an_object_that_is_replaced_while_it_is_open(keyed):
    keyed.origin.objects["/bucket/large.npy"] = npy_of(numbers(12000, 64))
    archive = penstock.open("az://bucket/large.npy")
    keyed.origin.objects["/bucket/large.npy"] = npy_of(numbers(12000, 64, seed=1))
    with refused(penstock.ChangedError):
        archive.load()


def test_the_cache_knows_an_object_by_any_proof(keyed, settings, tmp_path):
    settings(PENSTOCK_CACHE=tmp_path / "cache", PENSTOCK_CACHE_TRUST_SECONDS=600)
    loads()
    keyed.forget()
    settings(AZURE_STORAGE_KEY="", AZURE_STORAGE_SAS_TOKEN="sv=1&sig=pAsSwOrD")
    loads()
    assert not keyed.requests
    kept = b"".join(path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert b"pAsSwOrD" not in kept
    assert KEY.encode() not in kept


def test_no_error_repeats_the_key(keyed):
    keyed.faults = [Fault(status=403, body=f"<Error><Code>AccessDenied</Code><Message>{KEY}</Message></Error>")]
    with pytest.raises(penstock.PermissionDeniedError) as failed:
        loads()
    has_no_secret(failed.value)
