"""An HTTP server with faults on request, and counts of what it was asked for.

It stands in front of a real store (`Upstream`), which answers through it, or serves bytes that it holds itself
(`Memory`). The header Host passes through unchanged, so signed requests stay valid. In a test it runs on a thread of
its own; by hand:

    python tests/remote/fault_proxy.py --upstream http://127.0.0.1:8333 --delay 0.005
    curl -X POST http://127.0.0.1:PORT/__faults__ -d '[{"status": 503, "times": 2}]'
    curl http://127.0.0.1:PORT/__counts__
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

STEP = 1 << 16
BURST = 0.02  # seconds that a limited rate makes up for, because a sleep is never as short as a piece takes
REASONS = {
    200: "OK",
    206: "Partial Content",
    304: "Not Modified",
    404: "Not Found",
    412: "Precondition Failed",
    416: "Range Not Satisfiable",
}
SLOW_DOWN = "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass
class Fault:
    """What goes wrong with the requests that it fits. Faults of several fields happen together."""

    # Which requests: what their target contains, of which methods (none: any), with a Range or without one, all but the
    # first few, so many of them.
    target: str = ""
    methods: Sequence[str] = ()
    ranged: bool | None = None
    after: int = 0
    times: int | None = None
    behind: Fault | None = None  # not before that one, which has `times`, has happened

    delay: float = 0  # seconds before the request is looked at
    drop: Sequence[str] = ()  # headers of the request that do not reach the store
    hang: bool = False  # no answer, ever
    reset: bool = False  # the connection is reset instead of an answer
    lost: bool = False  # the same, but the store has done what it was asked
    raw: str | None = None  # these bytes instead of an answer, then the connection is closed
    status: int = 0  # this answer instead of the store's
    body: str = ""
    headers: dict[str, str | None] = field(default_factory=dict)  # of the answer, replaced or (None) left out
    endless_headers: bool = False  # lines of headers, for ever; with a pause, short ones with it in between
    cut: int | None = None  # the connection is closed behind so many bytes of the body
    stop: int | None = None  # nothing comes behind so many bytes of the body, but the connection stays
    pause: float = 0  # seconds between pieces of the body
    extra: int = 0  # so many bytes more than the body has; Content-Length counts them
    trailing: int = 0  # the same, and Content-Length does not count them

    def fits(self, request: Request) -> bool:
        """Whether this is a request that it happens to; counts."""
        if self.target not in request.target or self.ranged not in (None, "range" in request.headers):
            return False
        if self.methods and request.method not in self.methods:
            return False
        if self.behind and (self.behind.times or 0) > 0:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return self.times is None or self.times >= 0


@dataclass
class Request:
    method: str
    target: str
    headers: dict[str, str]  # by names in lower case
    body: bytes = b""
    status: int = 0  # that was answered
    sent: int = 0  # bytes of the body that were sent
    at: float = 0  # time.monotonic() when it came


@dataclass
class Response:
    status: int
    headers: dict[str, str]
    body: AsyncIterator[bytes]


Origin = Callable[[Request], Awaitable[Response]]


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        for begin in range(0, len(part), STEP):
            yield part[begin : begin + STEP]


def plain(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> Response:
    return Response(status, {"content-length": str(len(body)), **(headers or {})}, pieces(body))


class Memory:
    """Objects by target, served with ranges, ETag, If-Match and If-None-Match. Any path's query belongs to its name."""

    def __init__(self, objects: dict[str, bytes] | None = None) -> None:
        self.objects = objects if objects is not None else {}
        self._etags: dict[str, tuple[bytes, str]] = {}

    def etag(self, target: str, content: bytes) -> str:
        """Computed once for each content, because a large object is asked for by many ranges."""
        known = self._etags.get(target)
        if known is None or known[0] is not content:
            known = self._etags[target] = (content, '"' + hashlib.md5(content).hexdigest() + '"')
        return known[1]

    async def __call__(self, request: Request) -> Response:
        content = self.objects.get(request.target)
        if content is None:
            return plain(404, b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>")
        headers = {"etag": self.etag(request.target, content), "accept-ranges": "bytes"}
        if request.headers.get("if-match", headers["etag"]) != headers["etag"]:
            return plain(412)
        if request.headers.get("if-none-match") == headers["etag"]:
            return plain(304, b"", headers)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        if not asked:
            return plain(200, content, headers)
        begin = int(asked[1])
        end = min(int(asked[2] or len(content) - 1) + 1, len(content))
        if begin >= len(content):
            return plain(416, b"", {"content-range": f"bytes */{len(content)}"})
        return plain(206, content[begin:end], {**headers, "content-range": f"bytes {begin}-{end - 1}/{len(content)}"})


class Upstream:
    """A store that answers instead. Its connections are kept and used again."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __call__(self, request: Request) -> Response:
        while True:
            kept = bool(self.idle)
            reader, writer = self.idle.pop() if kept else await asyncio.open_connection(self.host, self.port)
            try:
                writer.write(head_of(f"{request.method} {request.target} HTTP/1.1", request.headers) + request.body)
                status, headers = await read_head(reader)
                break
            except (ConnectionError, asyncio.IncompleteReadError):
                writer.close()
                if not kept:  # one that the store had closed meanwhile says nothing
                    raise
        return Response(int(status.split()[1]), headers, self.body(request, headers, status, reader, writer))

    async def body(self, request, headers, status, reader, writer) -> AsyncIterator[bytes]:
        code = int(status.split()[1])
        if request.method != "HEAD" and code not in (204, 304):
            if headers.pop("transfer-encoding", "") == "chunked":
                while size := int((await reader.readline()).split(b";")[0], 16):
                    yield await reader.readexactly(size)
                    await reader.readline()
                await reader.readline()
            else:
                left = int(headers.get("content-length", 0))
                while left > 0:
                    part = await reader.read(min(left, STEP))
                    if not part:
                        break
                    left -= len(part)
                    yield part
        if headers.get("connection", "") == "close":
            writer.close()
        else:
            self.idle.append((reader, writer))


def head_of(first: str, headers: dict[str, str | None]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in headers.items() if value is not None)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    split = (line.partition(":") for line in lines)
    return first, {name.strip().lower(): value.strip() for name, _, value in split}


class FaultProxy:
    """The server. `faults` are tried in order, the first that fits happens. Counts begin with `forget()`."""

    def __init__(self, origin: Origin | None = None, *, delay: float = 0, rate: float = 0) -> None:
        self.origin = origin or Memory()
        self.delay = delay  # seconds that every request takes
        self.rate = rate  # bytes a second that all answers together have; 0: no limit
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.at_once = 0
        self.most_at_once = 0
        self._next = 0.0
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def sent(self) -> int:
        """Bytes of bodies that went out."""
        return sum(request.sent for request in self.requests)

    def forget(self) -> None:
        self.requests, self.most_at_once = [], 0

    async def start(self, context: ssl.SSLContext | None = None) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context, backlog=1024)
        self._port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, headers = await read_head(reader)
        method, target, _ = first.split()
        if headers.pop("expect", ""):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request = Request(method, target, headers, at=time.monotonic())
        request.body = await reader.readexactly(int(headers.get("content-length", 0)))
        if target.startswith("/__"):
            return await self._send(request, self._control(request), Fault(), writer)
        self.requests.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            fault = next((fault for fault in self.faults if fault.fits(request)), Fault())
            return await self._suffer(request, fault, writer)
        finally:
            self.at_once -= 1

    async def _suffer(self, request: Request, fault: Fault, writer: asyncio.StreamWriter) -> bool:
        if self.delay or fault.delay:
            await asyncio.sleep(self.delay + fault.delay)
        if fault.hang:
            await self._wait_for_close(writer)
        if fault.lost:
            async for _ in (await self.origin(request)).body:
                pass
        if fault.reset or fault.lost:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if fault.hang or fault.reset or fault.lost:
            return False
        if fault.raw is not None:
            writer.write(fault.raw.encode("latin-1"))
            await writer.drain()
            return False
        if fault.status:
            body = fault.body or (SLOW_DOWN if fault.status == 503 else "")
            return await self._send(request, plain(fault.status, body.encode()), fault, writer)
        for name in fault.drop:
            request.headers.pop(name, None)
        return await self._send(request, await self.origin(request), fault, writer)

    async def _send(self, request: Request, response: Response, fault: Fault, writer: asyncio.StreamWriter) -> bool:
        request.status = response.status
        length = int(response.headers.get("content-length", 0))
        headers: dict[str, str | None] = {**response.headers, "content-length": str(length + fault.extra)}
        if "transfer-encoding" in headers:
            del headers["transfer-encoding"], headers["content-length"]
            headers["connection"] = "close"
        headers |= fault.headers
        head = head_of(f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Status')}", headers)
        writer.write(head[:-2] if fault.endless_headers else head)
        while fault.endless_headers:
            writer.write(b"x-endless: " + b"x" * (1 if fault.pause else 1000) + b"\r\n")
            await writer.drain()
            await asyncio.sleep(fault.pause)
        if request.method == "HEAD":
            return True
        async for part in response.body:
            if not await self._send_part(request, part, fault, writer):
                return False
        writer.write(b"+" * (fault.extra + fault.trailing))
        await writer.drain()
        return headers.get("connection") != "close" and not fault.trailing

    async def _send_part(self, request: Request, part: bytes, fault: Fault, writer: asyncio.StreamWriter) -> bool:
        most = min((limit for limit in (fault.cut, fault.stop) if limit is not None), default=None)
        if most is not None:
            part = part[: most - request.sent]
        if fault.pause:
            await asyncio.sleep(fault.pause)
        if self.rate:
            now = time.monotonic()
            self._next = max(self._next, now - BURST) + len(part) / self.rate
            if self._next > now:
                await asyncio.sleep(self._next - now)
        request.sent += len(part)  # before the client has it, and may ask how much was sent
        writer.write(part)
        await writer.drain()
        if most is None or request.sent < most:
            return True
        if fault.stop is not None:
            await self._wait_for_close(writer)
        return False

    @staticmethod
    async def _wait_for_close(writer: asyncio.StreamWriter) -> None:
        while not writer.transport.is_closing():
            await asyncio.sleep(0.02)

    def _control(self, request: Request) -> Response:
        if request.target == "/__faults__":
            self.faults = [Fault(**given) for given in json.loads(request.body or "[]")]
        if request.target == "/__forget__":
            self.forget()
        return plain(200, json.dumps(self.counts()).encode() + b"\n")

    def counts(self) -> dict[str, Any]:
        faults = [asdict(fault) for fault in self.faults]
        return {"requests": len(self.requests), "bytes": self.sent, "at_once": self.most_at_once, "faults": faults}


@contextlib.contextmanager
def in_thread(proxy: FaultProxy, context: ssl.SSLContext | None = None) -> Iterator[FaultProxy]:
    """The proxy on a thread of its own, until the block ends."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # clients that go away in the middle
    loop.run_until_complete(proxy.start(context))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def stop_all() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(stop_all(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def serve(given: argparse.Namespace) -> None:
    proxy = FaultProxy(Upstream(given.upstream), delay=given.delay, rate=given.rate)
    server = await proxy.start()
    print(proxy.url, flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description="An HTTP proxy in front of a store, with faults on request.")
    parser.add_argument("--upstream", required=True, help="URL of the store")
    parser.add_argument("--delay", type=float, default=0, help="seconds that each request takes longer")
    parser.add_argument("--rate", type=float, default=0, help="bytes a second, of all answers together")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
