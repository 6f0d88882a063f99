"""Keeps the classes of Kafka's releases as a JVM has them in memory, so that brokers start in a third of the time.

    python -m tests.integration.kafka_archives

Does nothing for those that are newer than the jars. Tests run without them too, and then take minutes longer.
"""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.integration.kafka_jars import BETWEEN, RELEASES, archive, prepare
from tests.integration.kafka_jvm import Broker, create_topic, tool


class Recorder(Broker):
    """A broker that archives the classes it has loaded when it ends."""

    def __init__(self, directory: Path, release: str, kept: Path) -> None:
        super().__init__(directory, release)
        self._command.insert(1, f"-XX:ArchiveClassesAtExit={kept}")


def make(release: str) -> None:
    """Start a broker, use it, and keep its classes."""
    archive(release).unlink(missing_ok=True)  # of other jars
    with tempfile.TemporaryDirectory(dir=archive(release).parent) as directory:
        kept = Path(directory) / "classes.jsa"
        broker = Recorder(Path(directory), release, kept)
        broker.start()
        create_topic(broker.server, "topic")
        tool("produce", broker.server, "topic", 10)
        tool("consume", broker.server, "topic", 1, "read_uncommitted")
        broker.stop()
        kept.replace(archive(release))


def is_made(release: str) -> bool:
    """Whether there is one of the jars that are there."""
    prepare(release)
    made, jars = archive(release), archive(release).with_suffix("")
    return made.exists() and made.stat().st_mtime > jars.stat().st_mtime


def main() -> None:
    """Make what is missing."""
    if shutil.which("java") and shutil.which("mvn"):
        missing = [release for release in (*RELEASES, *BETWEEN) if not is_made(release)]
        with ThreadPoolExecutor() as pool:
            list(pool.map(make, missing))


if __name__ == "__main__":
    main()
