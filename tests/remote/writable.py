"""A store in memory that can be written: objects by one PUT or in parts, with checksums and conditions as in S3."""

from __future__ import annotations

import base64
import hashlib
import re
import urllib.parse
import zlib

from fault_proxy import Memory, Request, Response, plain


def error(status: int, code: str) -> Response:
    return plain(status, f"<Error><Code>{code}</Code><Message>says the store</Message></Error>".encode())


class WritableMemory(Memory):
    """`uploads` are those that were begun and neither completed nor aborted: by id, the target and the parts."""

    def __init__(self) -> None:
        super().__init__()
        self.etags: dict[str, str] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.begun = 0
        self.types: dict[str, str] = {}

    async def __call__(self, request: Request) -> Response:
        target, _, query = request.target.partition("?")
        given = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if request.method == "GET":
            return await super().__call__(request)
        if request.method == "HEAD":
            content = self.objects.get(target)
            return plain(404) if content is None else plain(200, content, {"etag": self.etags.get(target, "")})
        if request.method == "DELETE":
            return self.remove(target, given)
        if request.method == "POST" and "uploads" in given:
            return self.begin(target, request)
        if request.method == "POST":
            return self.complete(target, given["uploadId"], request)
        return self.put(target, given, request)

    def put(self, target: str, given: dict[str, str], request: Request) -> Response:
        sum_given = request.headers.get("x-amz-checksum-crc32")
        md5_given = request.headers.get("content-md5")
        if (
            sum_given is not None
            and sum_given != base64.b64encode(zlib.crc32(request.body).to_bytes(4, "big")).decode()
        ):
            return error(400, "BadDigest")
        if md5_given is not None and md5_given != base64.b64encode(hashlib.md5(request.body).digest()).decode():
            return error(400, "BadDigest")
        if sum_given is None and md5_given is None:
            return error(400, "InvalidRequest")
        etag = f'"{hashlib.md5(request.body).hexdigest()}"'
        if "partNumber" in given:
            if given["uploadId"] not in self.uploads:
                return error(404, "NoSuchUpload")
            self.uploads[given["uploadId"]][1][int(given["partNumber"])] = request.body
        else:
            if self.is_taken(target, request):
                return error(412, "PreconditionFailed")
            self.keep(target, request.body, etag, request.headers["content-type"])
        return plain(200, b"", {"etag": etag})

    def begin(self, target: str, request: Request) -> Response:
        self.begun += 1
        name = f"upload/{self.begun}+="
        self.uploads[name] = (target, {})
        self.types[name] = request.headers["content-type"]
        return plain(200, f"<R><UploadId>{name}</UploadId></R>".encode())

    def complete(self, target: str, name: str, request: Request) -> Response:
        if name not in self.uploads:
            return error(404, "NoSuchUpload")
        if self.is_taken(target, request):
            return error(412, "PreconditionFailed")
        parts = self.uploads[name][1]
        told = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>([^<]*)</ETag>", request.body.decode())
        if [(int(number), etag) for number, etag in told] != [
            (number, f'"{hashlib.md5(parts[number]).hexdigest()}"') for number in sorted(parts)
        ]:
            return error(400, "InvalidPart")
        sums = b"".join(hashlib.md5(parts[number]).digest() for number in sorted(parts))
        etag = f'"{hashlib.md5(sums).hexdigest()}-{len(parts)}"'
        self.keep(target, b"".join(parts[number] for number in sorted(parts)), etag, self.types[name])
        del self.uploads[name]
        return plain(200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")

    def remove(self, target: str, given: dict[str, str]) -> Response:
        if "uploadId" in given:
            return plain(204) if self.uploads.pop(given["uploadId"], None) else error(404, "NoSuchUpload")
        self.objects.pop(target, None)
        return plain(204)

    def is_taken(self, target: str, request: Request) -> bool:
        return request.headers.get("if-none-match") == "*" and target in self.objects

    def keep(self, target: str, content: bytes, etag: str, kind: str) -> None:
        self.objects[target] = content
        self.etags[target] = etag
        self.types[target] = kind
