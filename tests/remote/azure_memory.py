"""A stand-in for Azure's blob service, written from its documentation: an origin of fault_proxy.py that holds
containers in memory, and refuses what is not signed as the documentation says.

It knows Get Blob, Get Blob Properties, Put Blob, Put Block, Put Block List, Get Block List, Delete Blob, List Blobs and
Create Container; Shared Key, shared access signatures of a container or an account, and bearer tokens. test_azure.py
lets Azure's own client talk to it, so that what is right here is what Azure's client takes for right.

The account may be the first part of paths, as the emulator has it, or no part of them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
import urllib.parse
from datetime import datetime, timezone
from email.utils import formatdate, parsedate_to_datetime
from xml.sax.saxutils import escape

from fault_proxy import Memory, Request, Response, plain

ACCOUNT = "testaccount1"
KEY = base64.b64encode(b"a key of sixty-four bytes, as the accounts of the service have i").decode()
PAGE = 5000
SIGNED = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"),
    *("if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)


def sign(text: str) -> str:
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def text_to_sign(method: str, target: str, headers: dict[str, str]) -> str:
    """As https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key has it for blobs."""
    path, _, query = target.partition("?")
    length = headers.get("content-length", "0")
    values = {**headers, "content-length": "" if length == "0" else length}
    if "x-ms-date" in headers:
        values["date"] = ""
    lines = [method, *(values.get(name, "") for name in SIGNED)]
    lines += [f"{name}:{headers[name].strip()}" for name in sorted(headers) if name.startswith("x-ms-")]
    given: dict[str, list[str]] = {}
    for name, value in urllib.parse.parse_qsl(query, keep_blank_values=True):
        given.setdefault(name.lower(), []).append(value)
    resource = [f"/{ACCOUNT}{path}", *(f"{name}:{','.join(sorted(given[name]))}" for name in sorted(given))]
    return "\n".join([*lines, *resource])


def sas_text(given: dict[str, str], container: str, blob: str) -> str:
    """The text of a shared access signature of an account (it has "ss") or of a container or blob."""

    def take(*names: str) -> list[str]:
        return [given.get(name, "") for name in names]

    if "ss" in given:
        return "\n".join([ACCOUNT, *take("sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses"), ""])
    place = f"/blob/{ACCOUNT}/{container}" + (f"/{blob}" if given.get("sr") == "b" else "")
    names = ("si", "sip", "spr", "sv", "sr", "snapshot", "ses", "rscc", "rscd", "rsce", "rscl", "rsct")
    return "\n".join([*take("sp", "st", "se"), place, *take(*names)])


def error(status: int, code: str, message: str = "says the store") -> Response:
    text = f'\ufeff<?xml version="1.0" encoding="utf-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return plain(status, text.encode(), {"x-ms-error-code": code, "content-type": "application/xml"})


class AzureMemory(Memory):
    """`objects` and `types` are by "/container/blob", `uncommitted` blocks too. `tokens` are those that it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.types: dict[str, str] = {}
        self.md5s: dict[str, str] = {}
        self.blocks: dict[str, list[tuple[str, bytes]]] = {}
        self.uncommitted: dict[str, dict[str, bytes]] = {}
        self.containers = {"bucket"}
        self.public: set[str] = set()
        self.folders: set[str] = set()  # that are listed as blobs, as of a hierarchical namespace
        self.tokens: set[str] = set()
        self.page = PAGE
        self.written = 0
        self.tags: dict[str, str] = {}

    # Blocks that nobody committed are no object, and the service deletes them by itself.
    @property
    def uploads(self) -> dict:
        return {}

    async def __call__(self, request: Request) -> Response:
        path, _, query = request.target.partition("?")
        given = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        path = path.removeprefix(f"/{ACCOUNT}") if path.startswith(f"/{ACCOUNT}/") else path
        container, _, blob = urllib.parse.unquote(path).removeprefix("/").partition("/")
        refused = self.refusal(request, given, container, blob)
        if refused is not None:
            return refused
        if given.get("restype") == "container":
            return self.of_container(request, given, container)
        if container not in self.containers:
            return error(404, "ContainerNotFound", "The specified container does not exist.")
        name = f"/{container}/{blob}"
        if request.method == "POST":
            return error(405, "UnsupportedHttpVerb", "The stand-in has no batches.")
        if request.method == "PUT":
            return self.put(request, given, name)
        if request.method == "DELETE":
            return self.delete(name)
        if given.get("comp") == "blocklist":
            return self.block_list(name)
        return self.get(request, name)

    # Who asks.

    def refusal(self, request: Request, given: dict[str, str], container: str, blob: str) -> Response | None:
        kind, _, proof = request.headers.get("authorization", "").partition(" ")
        if "sig" in given:
            return self.refusal_of_sas(request, given, container, blob)
        if not kind:
            if container in self.public and request.method in ("GET", "HEAD"):
                return None
            return error(404 if request.method == "GET" else 401, "ResourceNotFound", "The resource does not exist.")
        date = request.headers.get("x-ms-date", request.headers.get("date", ""))
        if "x-ms-version" not in request.headers or not self.is_now(date):
            return error(403, "AuthenticationFailed", "Make sure the value of the Authorization header is right.")
        if kind == "Bearer":
            return None if proof in self.tokens else error(401, "InvalidAuthenticationInfo", "The token is expired.")
        expected = f"{ACCOUNT}:{sign(text_to_sign(request.method, request.target, request.headers))}"
        if kind == "SharedKey" and hmac.compare_digest(proof, expected):
            return None
        return error(403, "AuthenticationFailed", f"The signature {proof} is not the one expected.")

    def refusal_of_sas(self, request: Request, given: dict[str, str], container: str, blob: str) -> Response | None:
        if not hmac.compare_digest(given["sig"], sign(sas_text(given, container, blob))):
            return error(403, "AuthenticationFailed", f"Signature did not match: {given['sig']}")
        if datetime.fromisoformat(given["se"].replace("Z", "+00:00")) < datetime.now(timezone.utc):
            return error(403, "AuthenticationFailed", "Signature not valid in the specified time frame")
        listing = given.get("restype") == "container"
        wanted = {"GET": "l" if listing else "r", "HEAD": "r", "PUT": "cw", "DELETE": "d"}[request.method]
        if not set(wanted) & set(given.get("sp", "")):
            return error(403, "AuthorizationPermissionMismatch", "This request is not authorized.")
        return None

    @staticmethod
    def is_now(date: str) -> bool:
        try:
            return abs(parsedate_to_datetime(date).timestamp() - time.time()) < 900
        except (TypeError, ValueError):
            return False

    # Containers.

    def of_container(self, request: Request, given: dict[str, str], container: str) -> Response:
        if request.method == "PUT":
            self.containers.add(container)
            return plain(201)
        if container not in self.containers:
            return error(404, "ContainerNotFound", "The specified container does not exist.")
        prefix, delimiter = given.get("prefix", ""), given.get("delimiter", "")
        found: dict[str, str] = {}
        names = [*self.objects, *self.folders]
        for name in (one.removeprefix(f"/{container}/") for one in names if one.startswith(f"/{container}/")):
            if not name.startswith(prefix):
                continue
            end = name.find(delimiter, len(prefix)) if delimiter else -1
            if end >= 0:
                folder = name[: end + len(delimiter)]
                found[folder] = f"<BlobPrefix>{self.name_of(folder)}</BlobPrefix>"
            else:
                found[name] = self.entry(container, name)
        order = sorted(found, key=str.encode)
        begin = int(base64.b64decode(given.get("marker", "")) or b"0")
        end = begin + min(self.page, int(given.get("maxresults", PAGE)))
        marker = base64.b64encode(str(end).encode()).decode() if end < len(order) else ""
        blobs = "".join(found[name] for name in order[begin:end])
        text = (
            '\ufeff<?xml version="1.0" encoding="utf-8"?>'
            f'<EnumerationResults ServiceEndpoint="http://x/" ContainerName="{container}"><Prefix>{escape(prefix)}'
            f"</Prefix><Blobs>{blobs}</Blobs>"
            + (f"<NextMarker>{marker}</NextMarker>" if marker else "<NextMarker />")
            + "</EnumerationResults>"
        )
        return plain(200, text.encode(), {"content-type": "application/xml"})

    def entry(self, container: str, name: str) -> str:
        full = f"/{container}/{name}"
        content = self.objects.get(full, b"")
        kind = "<ResourceType>directory</ResourceType>" if full in self.folders else ""
        return (
            f"<Blob>{self.name_of(name)}<Properties><Last-Modified>{formatdate(usegmt=True)}</Last-Modified>"
            f"<Etag>{self.etag(full, content).strip(chr(34))}</Etag>{kind}<Content-Length>{len(content)}"
            "</Content-Length><Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType>"
            "</Properties><OrMetadata /></Blob>"
        )

    @staticmethod
    def name_of(name: str) -> str:
        if re.search(r"[\x00-\x08\x0b-\x1f\ufffe\uffff]", name):
            return f'<Name Encoded="true">{urllib.parse.quote(name)}</Name>'
        return f"<Name>{escape(name)}</Name>"

    # Blobs.

    def etag(self, target: str, content: bytes) -> str:
        """Those of the service tell nothing of the content, and change with each write."""
        return self.tags.setdefault(f"{target} {hash(content)}", f'"0x8D{len(self.tags):013X}"')

    def get(self, request: Request, name: str) -> Response:
        content = self.objects.get(name)
        if content is None:
            return error(404, "BlobNotFound", "The specified blob does not exist.")
        tag = self.etag(name, content)
        headers = {"etag": tag, "accept-ranges": "bytes", "last-modified": formatdate(1_700_000_000, usegmt=True)}
        headers |= {"x-ms-blob-type": "BlockBlob", "content-type": self.types.get(name, "application/octet-stream")}
        if name in self.md5s and "range" not in request.headers:
            headers["content-md5"] = self.md5s[name]
        if request.headers.get("if-match", tag) != tag:
            return error(412, "ConditionNotMet", "The condition is not met.")
        if request.headers.get("if-none-match") == tag:
            return plain(304, b"", {"etag": tag})
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("x-ms-range", request.headers.get("range", "")))
        if request.method == "HEAD" or not asked:
            return plain(200, content, headers)
        begin, end = int(asked[1]), min(int(asked[2] or len(content) - 1) + 1, len(content))
        if begin >= len(content):
            return error(416, "InvalidRange", "The range specified is invalid.")
        return plain(206, content[begin:end], {**headers, "content-range": f"bytes {begin}-{end - 1}/{len(content)}"})

    def put(self, request: Request, given: dict[str, str], name: str) -> Response:
        md5 = base64.b64encode(hashlib.md5(request.body).digest()).decode()
        if request.headers.get("content-md5", md5) != md5:
            return error(400, "Md5Mismatch", "The MD5 value did not match the one the server computed.")
        if given.get("comp") == "block":
            return self.put_block(given["blockid"], request.body, name)
        if request.headers.get("if-none-match") == "*" and name in self.objects:
            return error(409, "BlobAlreadyExists", "The specified blob already exists.")
        if given.get("comp") == "blocklist":
            return self.put_block_list(request, name)
        if request.headers.get("x-ms-blob-type") != "BlockBlob":
            return error(400, "MissingRequiredHeader", "x-ms-blob-type")
        self.blocks.pop(name, None)
        self.md5s[name] = md5
        kind = request.headers.get("x-ms-blob-content-type", request.headers.get("content-type", ""))
        return self.keep(name, bytes(request.body), kind)

    def put_block(self, block: str, content: bytes, name: str) -> Response:
        held = self.uncommitted.setdefault(name, {})
        others = [*held, *(each for each, _ in self.blocks.get(name, []))]
        if any(len(other) != len(block) for other in others):
            return error(400, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
        held[block] = bytes(content)
        return plain(201)

    def put_block_list(self, request: Request, name: str) -> Response:
        sent = self.uncommitted.get(name, {})
        committed = dict(self.blocks.get(name, []))
        made: list[tuple[str, bytes]] = []
        for kind, block in re.findall(r"<(Latest|Committed|Uncommitted)>([^<]*)</", request.body.decode()):
            places = {"Latest": (sent, committed), "Committed": (committed,), "Uncommitted": (sent,)}[kind]
            content = next((place[block] for place in places if block in place), None)
            if content is None:
                return error(400, "InvalidBlockList", "The specified block list is invalid.")
            made.append((block, content))
        self.uncommitted.pop(name, None)
        self.md5s.pop(name, None)
        self.blocks[name] = made
        return self.keep(
            name, b"".join(content for _, content in made), request.headers.get("x-ms-blob-content-type", "")
        )

    def block_list(self, name: str) -> Response:
        if name not in self.objects:
            return error(404, "BlobNotFound", "The specified blob does not exist.")
        rows = "".join(
            f"<Block><Name>{block}</Name><Size>{len(content)}</Size></Block>"
            for block, content in self.blocks.get(name, [])
        )
        text = f"<BlockList><CommittedBlocks>{rows}</CommittedBlocks></BlockList>"
        return plain(200, text.encode(), {"content-type": "application/xml"})

    def keep(self, name: str, content: bytes, kind: str) -> Response:
        self.objects[name] = content
        self.types[name] = kind
        return plain(201, b"", {"etag": self.etag(name, content), "last-modified": formatdate(usegmt=True)})

    def delete(self, name: str) -> Response:
        if self.objects.pop(name, None) is None:
            return error(404, "BlobNotFound", "The specified blob does not exist.")
        for kept in (self.types, self.md5s, self.blocks):
            kept.pop(name, None)
        return plain(202)
