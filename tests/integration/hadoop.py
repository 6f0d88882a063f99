"""HDFS on this machine: a name node and a data node, by the jars of Hadoop."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hdfs_native import Client, WriteOptions

from tests.integration.kafka_jars import HERE, fetched
from tests.integration.kafka_jvm import free_port

BLOCK = 1 << 20
"""The size of a file's blocks in bytes."""

_NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


class Hdfs:
    """An empty file system; `settings` is the directory with its configuration, as for ``HADOOP_CONF_DIR``."""

    def __init__(self, directory: Path) -> None:
        self.settings = directory
        self.url = f"hdfs://127.0.0.1:{free_port()}"
        self._configure()
        subprocess.run([*self._java(_NAME_NODE), "-format", "-force"], check=True, capture_output=True)
        self.servers = [self._start(_NAME_NODE), self._start(_DATA_NODE)]
        # It would ask for three minutes before it says that nothing listens.
        self.client = Client(self.url, {"dfs.client.failover.max.attempts": "1"})
        self._wait()

    def _configure(self) -> None:
        places = {f"dfs.{name}.address": "127.0.0.1:0" for name in ("datanode", "datanode.http", "datanode.ipc")}
        write(self.settings / "core-site.xml", {"fs.defaultFS": self.url})
        write(
            self.settings / "hdfs-site.xml",
            {
                "dfs.namenode.name.dir": (self.settings / "names").as_uri(),
                "dfs.datanode.data.dir": (self.settings / "data").as_uri(),
                "dfs.namenode.http-address": "127.0.0.1:0",
                "dfs.namenode.fs-limits.min-block-size": str(BLOCK),
                "dfs.replication": "1",
                **places,
            },
        )

    def _java(self, program: str) -> list[str]:
        jars = fetched("hadoop", (HERE / "hadoop.xml").read_text())
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
        return ["java", *quick, "-cp", f"{self.settings}:{jars}/*", program]

    def _start(self, program: str) -> subprocess.Popen[bytes]:
        with open(self.settings / f"{program}.log", "wb") as log:
            return subprocess.Popen(self._java(program), stdout=log, stderr=log)

    def _wait(self) -> None:
        for _ in range(60):
            try:
                self.put("/ready", b"yes")
            except (OSError, RuntimeError):
                time.sleep(0.5)
            else:
                return
        raise AssertionError("HDFS did not start within 30 seconds")

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
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            server.wait()


def write(path: Path, settings: dict[str, str]) -> None:
    """A file of Hadoop's settings."""
    lines = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items())
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
