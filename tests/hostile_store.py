"""An S3 on loopback with objects in memory, whose answers a test can replace by wrong ones."""

import hashlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from kafkacodec.log.storage import stores


def use(server, monkeypatch, retries):
    """Make the server that of ``s3:`` URLs, without objects; a request is made again so often."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-word")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(stores, "_RETRIES", retries)
    stores._bucket.cache_clear()
    server.reset()


def strong(data):
    """The ETag of a store: quoted, of the content."""
    return f'"{hashlib.md5(data).hexdigest()}"'


class Request(BaseHTTPRequestHandler):
    """One request; a test's `fault` gets it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # header and body are sent one after the other
    store: "HostileStore"

    def log_message(self, *_arguments):
        """Say nothing."""

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_GET(self):
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.key = unquote(parts.path.split("/", 2)[2]) if parts.path.count("/") > 1 else ""
        self.span = None
        if "Range" in self.headers:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            self.span = int(first), int(last) + 1
        self.store.asked.append((self.command, self.key, self.span))
        if not self.store.fault(self):
            self.store.answer(self)

    do_HEAD = do_GET

    def send(self, status, headers, body=b"", length=None):
        """Answer; `length` is told instead of that of the body."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        return True

    def refuse(self, status, code=""):
        """Answer with an error of S3."""
        return self.send(status, {}, f"<Error><Code>{code}</Code><Message>a-secret-word</Message></Error>".encode())

    def send_part(self, span, body, length=None):
        """Answer with some bytes as those of a range."""
        content_range = f"bytes {span[0]}-{span[1] - 1}/{len(self.store.objects[self.key])}"
        return self.send(206, {**self.store.headers(self.key), "Content-Range": content_range}, body, length)

    def break_off(self, sent=0):
        """Send a part of what was asked for, and end the connection by a reset."""
        start, end = self.span
        if sent:
            self.send_part(self.span, self.store.objects[self.key][start : start + sent], end - start)
            self.wfile.flush()
            time.sleep(0.05)  # a reset takes away what was not read
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
        return True


class HostileStore:
    """The server.

    Attributes:
        objects: contents by key; the bucket's name does not matter.
        changed: when an object was modified, in seconds since 1970, if that is told at all.
        tag: makes the ETag of a content; None for none.
        page: the most keys of a page of a listing.
        fault: called first with each request; true if it has answered.
        asked: method, key and range of each request.
    """

    def __init__(self):
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("_Request", (Request,), {"store": self}))
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        self.reset()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def reset(self):
        self.objects: dict[str, bytes] = {}
        self.changed: dict[str, int] = {}
        self.tag: Callable[[bytes], str | None] = strong
        self.page = 1000
        self.fault: Callable[[Request], bool | None] = lambda request: None
        self.asked: list[tuple[str, str, tuple[int, int] | None]] = []

    def headers(self, key):
        """What an answer tells of an object."""
        tag = self.tag(self.objects[key])
        told = {} if tag is None else {"ETag": tag}
        return {**told, "Last-Modified": formatdate(self.changed.get(key, 1_700_000_000), usegmt=True)}

    def answer(self, request):
        """The right answer."""
        if not request.key:
            return self._list(request)
        data = self.objects.get(request.key)
        if data is None:
            return request.refuse(404, "NoSuchKey")
        headers = self.headers(request.key)
        wanted = request.headers.get("If-Match")
        # A weak tag never matches (RFC 9110, 13.1.1).
        if wanted is not None and (wanted != headers.get("ETag") or wanted.startswith("W/")):
            return request.refuse(412, "PreconditionFailed")
        if request.span is None:
            return request.send(200, headers, data, len(data))
        start, end = request.span
        if start >= len(data):
            return request.refuse(416, "InvalidRange")
        return request.send_part((start, min(end, len(data))), data[start:end])

    def _list(self, request):
        prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
        names = {}
        for key in sorted(self.objects):
            if key.startswith(prefix):
                part, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key[len(prefix) :], "", "")
                names[prefix + part + found] = bool(found)
        first = int(request.query.get("continuation-token", "0"))
        page = list(names.items())[first : first + self.page]
        more = first + self.page < len(names)
        token = f"<NextContinuationToken>{first + self.page}</NextContinuationToken>" if more else ""
        listed = [self._listed(name, below) for name, below in page]
        text = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(listed)}"
        return request.send(200, {"Content-Type": "application/xml"}, f"{text}</ListBucketResult>".encode())

    def _listed(self, name, below):
        if below:
            return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        data = self.objects[name]
        tag = self.tag(data)
        told = "" if tag is None else f"<ETag>{escape(tag)}</ETag>"
        time_ = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(self.changed.get(name, 1_700_000_000)))
        return (
            f"<Contents><Key>{escape(name)}</Key><LastModified>{time_}</LastModified>{told}"
            f"<Size>{len(data)}</Size></Contents>"
        )
