"""A registry on the loopback interface: answers to the requests that Confluent's clients send, as documented."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answers:
    """What a registry answers, by path, or ``POST`` and the path; and the requests that it got.

    An answer is JSON with status 200, a pair of status and body, or a list of answers of which each is given once.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = dict(answers)
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.posted: list[tuple[str, Any]] = []
        self.url = ""

    def answer(self, path: str) -> tuple[int, bytes]:
        found = self.answers.get(path, (404, {"error_code": 40403, "message": "Schema not found"}))
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        status, body = found if isinstance(found, tuple) else (200, found)
        return status, body if isinstance(body, bytes) else json.dumps(body).encode()


@contextmanager
def serving(answers: Mapping[str, Any]) -> Iterator[Answers]:
    """The answers at ``url`` while the body runs."""
    state = Answers(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append((self.path, dict(self.headers)))
            self._answer(self.path)

        def do_POST(self) -> None:
            state.posted.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self._answer(f"POST {self.path}")

        def _answer(self, path: str) -> None:
            status, body = state.answer(path)
            self.send_response(status)
            if status == 302:
                self.send_header("Location", body.decode())
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
