"""HDFS on this machine: a name node and a data node in one JVM, as Hadoop's own tests have them."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hdfs_native import Client, WriteOptions

from tests.integration import jvm_files
from tests.integration.kafka_jars import HERE, fetched
from tests.integration.kafka_jvm import free_port
from tests.patience import LATE

BLOCK = 1 << 20
"""The size of a file's blocks in bytes."""

_CLUSTER = "org.apache.hadoop.test.MiniDFSClusterManager"


class Hdfs:
    """An empty file system; `settings` is the directory with its configuration, as for ``HADOOP_CONF_DIR``."""

    def __init__(self, directory: Path) -> None:
        self.settings = directory
        self._log = directory / "servers.log"
        port = free_port()
        self.url = f"hdfs://127.0.0.1:{port}"
        self._configure()
        self._servers = self._start(port)
        # It would ask for three minutes before it says that nothing listens.
        self.client = Client(self.url, {"dfs.client.failover.max.attempts": "1"})
        self._wait()

    def _configure(self) -> None:
        write(self.settings / "core-site.xml", {"fs.defaultFS": self.url})
        write(
            self.settings / "hdfs-site.xml",
            {
                "hdfs.minidfs.basedir": str(self.settings),
                "dfs.namenode.fs-limits.min-block-size": str(BLOCK),
                "dfs.replication": "1",
            },
        )

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        jars = fetched("hadoop", (HERE / "hadoop.xml").read_text())
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
        command = ["java", *quick, jvm_files.option(), "-cp", f"{self.settings}:{jars}/*", _CLUSTER]
        asked = ["-format", "-datanodes", "1", "-nnport", str(port), "-httpport", "0"]
        with open(self._log, "wb") as log:
            return subprocess.Popen([*command, *asked], stdout=log, stderr=log)

    def _wait(self) -> None:
        end = time.monotonic() + LATE
        while True:
            try:
                self.put("/ready", b"yes")
            except (OSError, RuntimeError):
                assert self._servers.poll() is None, self._log.read_text()[-2000:]
                assert time.monotonic() < end, "HDFS does not start"
                time.sleep(0.2)
            else:
                return

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        with self.client.create(path, WriteOptions(overwrite=True, create_parent=True, block_size=BLOCK)) as file:
            file.write(data)

    def upload(self, directory: Path, path: str) -> str:
        """Copy a directory; its URL."""
        sources = [source for source in directory.rglob("*") if source.is_file()]
        with ThreadPoolExecutor(16) as pool:  # the client waits about half a second for a file to be complete
            list(pool.map(lambda of: self.put(f"{path}/{of.relative_to(directory)}", of.read_bytes()), sources))
        return self.url + path

    def stop(self) -> None:
        """End the servers."""
        self._servers.terminate()
        self._servers.wait()


def write(path: Path, settings: dict[str, str]) -> None:
    """A file of Hadoop's settings."""
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
