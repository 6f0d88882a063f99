"""The functional tests that sarama ships, against this broker.

    python -m tests.integration.sarama_suite [--run PATTERN]

They expect five brokers at the ports 29091 to 29095 behind a proxy that is told by HTTP to refuse connections, and
that containers can be stopped; both are done with the broker's own handle here. Prints which tests fail and are
skipped, what they say, and why where that is known; the exit code is 1 if others fail.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kafkacodec as kc
from kafkacodec.broker.kafka.apis import TABLE
from kafkacodec.messages import APIS
from tests.integration import client_suites

FIRST_PORT, BROKERS = 29091, 5
_SLOW = "sarama takes 4 s of the 6 s that a rebalance may last to give up partitions, too much on a busy machine"
KNOWN = {
    "TestFuncConsumerGroupCooperative": _SLOW,
    "TestFuncConsumerGroupCooperative/round_trips_messages_while_scaling_the_group": _SLOW,
}
"""By the name of a test: why it fails."""

DOCKER = """#!{python}
import sys, urllib.request
_, compose, action, *options = sys.argv
if action in ("start", "stop"):
    place = "{address}/brokers/" + options[-1].rpartition("-")[2] + "/" + action
    urllib.request.urlopen(urllib.request.Request(place, method="POST"))
elif action != "logs":
    sys.exit("docker " + action + " is not there")
"""
"""In place of the program that starts and stops containers, and shows their logs, which say nothing here."""


class Proxy:
    """What the tests ask of toxiproxy and of containers, carried out by the broker's handle."""

    def __init__(self, broker: kc.broker.Broker) -> None:
        self._broker = broker
        self._stopped: set[int] = set()
        self._rules: list[Any] = []

    def runs(self, number: int) -> bool:
        """Whether a broker takes connections."""
        return number not in self._stopped

    def set(self, number: int, runs: bool) -> None:
        """Let a broker take connections, or not."""
        if runs and number in self._stopped:
            self._broker.start_broker(number)
            self._stopped.discard(number)
        elif not runs and number not in self._stopped:
            self._broker.stop_broker(number)
            self._stopped.add(number)

    def harm(self, number: int, kind: str, attributes: dict[str, int]) -> None:
        """Delay answers, or close connections instead of them."""

        def here(request: Any) -> bool:
            return bool(request.broker == number)

        if kind == "latency":
            for key in TABLE:
                delay = attributes["latency"] / 1000
                self._rules.append(self._broker.inject(APIS[key].name, delay=delay, times=None, when=here))
        elif kind == "reset_peer":
            self._rules.append(self._broker.inject("Metadata", close=True, times=None, when=here))

    def reset(self) -> None:
        """All brokers run, and nothing goes wrong."""
        for rule in self._rules:
            rule.remove()
        self._rules.clear()
        for number in sorted(self._stopped):
            self.set(number, True)


def handler_of(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    """The HTTP interface of a proxy: as much of toxiproxy's as the tests use, and the containers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, self._proxy(self.path.split("/")[2]))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            match self.path.split("/")[1:]:
                case ["reset"]:
                    proxy.reset()
                    self._answer(204)
                case ["proxies", name]:
                    proxy.set(_number(name), json.loads(body)["enabled"])
                    self._answer(200, self._proxy(name))
                case ["proxies", name, "toxics"]:
                    harm = json.loads(body)
                    proxy.harm(_number(name), harm["type"], harm["attributes"])
                    self._answer(200, harm)
                case ["brokers", number, action]:
                    proxy.set(int(number), action == "start")
                    self._answer(204)
                case _:
                    self._answer(404)

        def log_message(self, *_: Any) -> None:
            pass

        def _proxy(self, name: str) -> dict[str, Any]:
            number = _number(name)
            address = f"127.0.0.1:{FIRST_PORT + number - 1}"
            return {"name": name, "listen": address, "upstream": address, "enabled": proxy.runs(number)}

        def _answer(self, status: int, message: Any = None) -> None:
            body = b"" if message is None else json.dumps(message).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _number(name: str) -> int:
    return int(name.removeprefix("kafka"))


@contextmanager
def serving(directory: Path) -> Iterator[dict[str, str]]:
    """The brokers with their proxy; the environment that the tests need."""
    listen = f"kafka://127.0.0.1:{FIRST_PORT}"
    config = {"auto.create.topics.enable": False}
    with kc.broker.serve(brokers=BROKERS, listen=listen, config=config) as broker:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(Proxy(broker)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        docker = directory / "docker"
        docker.write_text(DOCKER.format(python=sys.executable, address=address))
        docker.chmod(0o755)
        try:
            yield {
                "TOXIPROXY_ADDR": address,
                "KAFKA_VERSION": "4.1.0",
                "PATH": f"{directory}:{os.environ['PATH']}",
            }
        finally:
            server.shutdown()


def main() -> int:
    """Run the tests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default=".", help="a pattern of names of tests")
    parser.add_argument("--minutes", default=30, type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        command, place = client_suites.compiled(directory, "github.com/IBM/sarama", ".", "-tags=functional")
        command += [f"-test.timeout={arguments.minutes}m", f"-test.run={arguments.run}"]
        with serving(directory) as environment:
            results = client_suites.run(command, place, environment)
    client_suites.show("sarama", results, KNOWN)
    return int(bool(results.failed.keys() - KNOWN.keys()))


if __name__ == "__main__":
    sys.exit(main())
