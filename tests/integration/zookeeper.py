"""A real ZooKeeper on the loopback interface, with sessions of 0.2 s and more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.integration.kafka_jars import HERE, fetched
from tests.integration.kafka_jvm import Server, free_port

__all__ = ["ZooKeeperServer", "end_session"]

_TICK_MS = 100


class ZooKeeperServer(Server):
    """A server by itself; `start`, `stop`, `kill` and `signal` as those of brokers."""

    def __init__(self, directory: Path) -> None:
        jars = fetched("zookeeper", (HERE / "zookeeper.xml").read_text())
        self.server = f"127.0.0.1:{free_port()}"
        self._output_path = directory / "zookeeper.out"
        properties = directory / "zoo.cfg"
        host, port = self.server.split(":")
        properties.write_text(
            f"tickTime={_TICK_MS}\ndataDir={directory / 'data'}\nclientPort={port}\nclientPortAddress={host}\n"
            "maxClientCnxns=0\nmaxSessionTimeout=60000\n"
        )
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx128m", "-Dzookeeper.forceSync=no"]
        self._command = [
            "java", *quick, "-cp", f"{jars}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", properties
        ]  # fmt: skip

    @contextmanager
    def client(self) -> Iterator[KazooClient]:
        """A session of kazoo."""
        client = KazooClient(self.server)
        client.start(60)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def tree(self, path: str = "/") -> dict[str, str | None]:
        """Contents of all nodes below a path, by their path; None: nothing is in it."""
        with self.client() as client:
            return dict(_nodes(client, path))


def _nodes(client: KazooClient, path: str) -> Iterator[tuple[str, str | None]]:
    names: list[str] = []
    with suppress(NoNodeError):  # it has gone meanwhile, as ephemeral ones do
        names = client.get_children(path)
    for name in names:
        child = f"{path.rstrip('/')}/{name}"
        if child == "/zookeeper":
            continue
        with suppress(NoNodeError):
            content, _ = client.get(child)
            yield child, None if content is None else content.decode()
        yield from _nodes(client, child)


def end_session(server: str, session: tuple[int, bytes]) -> None:
    """Let a session be lost: whoever has it learns that it has expired."""
    client = KazooClient(server, client_id=session)
    client.start(60)
    client.stop()
    client.close()
