"""A client of the HTTP API over one connection."""

import asyncio
import json
import math


class Closed(Exception):
    """The server closed the connection before the answer's end."""


class Connection:
    """One connection, without a library that would hide what the server does."""

    def __init__(self, address):
        self.address = address

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection(*self.address)
        return self

    async def __aexit__(self, *_):
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except OSError:
            pass

    async def send(self, method, path, body=None, media_type="application/json", rest=1.0):
        """Sends a request, or a part of its body."""
        body = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body[: int(len(body) * rest)])
        await self.writer.drain()

    async def head(self):
        """The status of the answer, and its headers."""
        line = await self.reader.readline()
        if not line:
            raise Closed("no answer")
        status, headers = int(line.split()[1]), {}
        while (line := await self.reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        self.chunked = headers.get("transfer-encoding") == "chunked"
        self.length = int(headers.get("content-length", 0))
        return status, headers

    async def chunks(self):
        if not self.chunked:
            yield await self.reader.readexactly(self.length)
            return
        while size := int(await self.reader.readline() or b"0", 16):
            yield await self.reader.readexactly(size)
            await self.reader.readexactly(2)

    async def body(self):
        return b"".join([chunk async for chunk in self.chunks()])

    async def events(self):
        """Values of server-sent events."""
        rest = b""
        async for chunk in self.chunks():
            rest += chunk
            *whole, rest = rest.split(b"\n\n")
            for event in whole:
                if event.startswith(b"data: ") and event != b"data: [DONE]":
                    yield json.loads(event[6:])


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else math.nan
