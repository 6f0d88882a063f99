"""Classes as a JVM has them in memory, which other JVMs map: see `kafka_archives` and `spark_archive`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["mapped"]

# JVMs map an archive at an address of chance, and then correct every pointer in it, for a quarter of a second.
_AS_IT_IS = ["-XX:+IgnoreUnrecognizedVMOptions", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"]


def mapped(archive: Path) -> list[str]:
    """The options of a JVM that takes its classes from an archive; none if there is no such file."""
    return [f"-XX:SharedArchiveFile={archive}", *_AS_IT_IS] if archive.exists() else []
