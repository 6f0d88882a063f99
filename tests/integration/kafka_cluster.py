"""A cluster of brokers on the loopback interface, each of which is a controller too."""

from __future__ import annotations

from pathlib import Path
from signal import SIGTERM

from tests.integration.kafka_jvm import Broker, free_port


class Cluster:
    """Several brokers; their log directories are ``1/logs``, ``2/logs`` and so on."""

    def __init__(self, directory: Path, count: int, **settings: str) -> None:
        """`settings` are more server properties for each broker, with underscores for dots."""
        controllers = [free_port() for _ in range(count)]
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(controllers, 1))
        self._running: set[Broker] = set()

        def made(number: int) -> Broker:
            (directory / str(number)).mkdir(parents=True)
            server = f"127.0.0.1:{free_port()}"
            own = {
                "node_id": str(number),
                "controller_quorum_voters": voters,
                "listeners": f"PLAINTEXT://{server},CONTROLLER://127.0.0.1:{controllers[number - 1]}",
            }
            broker = Broker(directory / str(number), **own, **settings)
            broker.server = server
            return broker

        self.brokers = [made(number) for number in range(1, count + 1)]

    @property
    def servers(self) -> str:
        """All brokers, as clients are given them."""
        return ",".join(broker.server for broker in self.brokers)

    def start(self) -> None:
        """Start those that do not run, and wait until they answer: each of them waits for the others."""
        starting = [broker for broker in self.brokers if broker not in self._running]
        for broker in starting:
            broker.launch()
            self._running.add(broker)
        for broker in starting:
            broker.wait()

    def kill(self, broker: Broker) -> None:
        """End a broker at once, if it runs."""
        if broker in self._running:
            self._running.remove(broker)
            broker.kill()

    def kill_all(self) -> None:
        """End all at once. In good order, one of two brokers would wait a minute for the third, which was killed."""
        for broker in list(self._running):
            self.kill(broker)

    def stop(self) -> None:
        """Shut down all in good order."""
        for broker in self._running:
            broker.signal(SIGTERM)
        for broker in self._running:
            broker.stop()
        self._running.clear()
