"""A standalone cluster of Spark on the loopback interface: a master and a worker, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyspark

import kafkacodec as kc
from tests.integration.kafka_jvm import free_port
from tests.integration.spark_archive import java_options
from tests.patience import LATE

SPARK_HOME = Path(pyspark.__file__).parent
# As a directory of configuration would; with one, whose path is new each time, no JVM takes classes from an archive.
_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
}


class SparkCluster:
    """Started by the constructor; `stop` ends it. `work` has the directories in which executors run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.work = directory / "work"
        self.master = f"spark://127.0.0.1:{free_port()}"
        directory.mkdir(parents=True, exist_ok=True)
        self._processes: list[subprocess.Popen[bytes]] = []
        host, port = "127.0.0.1", self.master.rpartition(":")[2]
        deploy = "org.apache.spark.deploy"
        self.run("master", "bin/spark-class", f"{deploy}.master.Master", "--host", host, "--port", port)
        worker = ["--host", host, "-c", "1", "-m", "600m", "-d", str(self.work), self.master]
        self.run("worker", "bin/spark-class", f"{deploy}.worker.Worker", *worker)
        self.wait("worker", "Successfully registered with master")

    def environment(self, **more: str) -> dict[str, str]:
        """Variables for a program that uses the cluster, without this process's own Python."""
        found = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))
        }
        java = kc.spark.java_home(quick_start=True)
        return {
            **found,
            **({"JAVA_HOME": str(java)} if java else {}),
            "JAVA_TOOL_OPTIONS": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {java_options()}",  # starts faster
            "PATH": f"{SPARK_HOME / 'bin'}:{os.environ['PATH']}",
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_SUBMIT_OPTS": " ".join(f"-D{name}={value}" for name, value in _CONF.items()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "CLUSTER": self.master,
            **more,
        }

    def run(self, name: str, program: str, *arguments: str, **environment: str) -> None:
        """Run a program of Spark in the background."""
        with open(self._log(name), "wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [SPARK_HOME / program, *arguments],
                    env=self.environment(**environment),
                    cwd=self.directory,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )

    def wait(self, name: str, text: str, seconds: int = 120) -> None:
        """Until the program has said something."""
        end = time.monotonic() + seconds
        while text not in self._log(name).read_text():
            assert self._processes[0].poll() is None, self._log("master").read_text()
            assert time.monotonic() < end, self._log(name).read_text()
            time.sleep(0.1)

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def stop(self) -> None:
        """End all programs, those that use the cluster first; scripts do not end the JVM that they have started."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            process.wait(LATE)
