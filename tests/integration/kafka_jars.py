"""Releases of Kafka: jars from Maven Central, and the Java programs of the tests, all kept in .cache/test-java."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.integration import jvm_files
from tests.integration.class_archives import mapped

__all__ = [
    "ALL_RELEASES",
    "BETWEEN",
    "OLD_RELEASES",
    "RELEASES",
    "TARGET",
    "Release",
    "archive",
    "fetched",
    "java",
    "prepare",
    "tools",
]

HERE = Path(__file__).parent / "java"
TARGET = Path(__file__).parent.parent.parent / ".cache" / "test-java"


class Release(NamedTuple):
    """What names the jars of a release: versions, and other artifacts as group:artifact:version."""

    kafka: str
    scala: str
    others: tuple[str, ...]

    def pom(self) -> str:
        """The project file that depends on them."""
        filled = (HERE / "pom.xml").read_text().replace("@scala@", self.scala).replace("@kafka@", self.kafka)
        return filled.replace("@others@", "\n".join(map(_dependency, self.others)))


def _dependency(name: str) -> str:
    tags = zip(("groupId", "artifactId", "version"), name.split(":"), strict=True)
    lines = (f"      <{tag}>{value}</{tag}>" for tag, value in tags)
    return "\n".join(["    <dependency>", *lines, "    </dependency>"])


def _old(kafka: str, scala: str, zookeeper: str) -> Release:
    # They log with log4j, which the newer of them do not depend on, and use a part of Java that was removed in 11.
    logging = ("log4j:log4j:1.2.17", "org.slf4j:slf4j-log4j12:1.7.36")
    return Release(
        kafka, scala, (f"org.apache.zookeeper:zookeeper:{zookeeper}", "javax.xml.bind:jaxb-api:2.3.1", *logging)
    )


# Brokers without ZooKeeper, by the directories of their jars. The Java programs are compiled with the first.
RELEASES = {
    "jars": Release("3.9.1", "2.13", ("org.slf4j:slf4j-nop:1.7.36",)),
    "newest": Release("4.4.0", "2.13", ("org.slf4j:slf4j-nop:1.7.36",)),
}

# Between them, only for what changed there.
BETWEEN = {"4.1": Release("4.1.0", "2.13", ("org.slf4j:slf4j-nop:1.7.36",))}

# Brokers with ZooKeeper, in the versions that the releases name, except that 3.4.13, named by 2.1.1, cannot resolve
# addresses on Java 14 and later.
OLD_RELEASES = {
    "0.8.2": _old("0.8.2.2", "2.11", "3.4.6"),
    "0.9.0": _old("0.9.0.1", "2.11", "3.4.6"),
    "0.10.2": _old("0.10.2.2", "2.11", "3.4.9"),
    "0.11.0": _old("0.11.0.3", "2.11", "3.4.10"),
    "2.1": _old("2.1.1", "2.12", "3.4.10"),
    "2.8": _old("2.8.2", "2.13", "3.5.9"),
}

ALL_RELEASES = {**OLD_RELEASES, **RELEASES}


def prepare(release: str = "jars") -> None:
    """Fetch the jars of a release and compile the programs, once; others who want the same wait."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with open(TARGET / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for needed in {"jars", release}:
            _fetch(needed, {**ALL_RELEASES, **BETWEEN}[needed].pom())
        _compile()


def fetched(name: str, pom: str) -> Path:
    """The directory with the jars that a project file names, fetched once; others who want the same wait."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with open(TARGET / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _fetch(name, pom)
    return TARGET / name


def tools(release: str = "jars") -> Path:
    """The directory with the jar of Kafka's command-line tools; those of the console need no more than a broker's."""
    name = "tools" if release == "jars" else f"tools-{release}"
    return fetched(name, (HERE / "tools.xml").read_text().replace("@kafka@", RELEASES[release].kafka))


def java(release: str = "jars", *more: Path) -> list[str]:
    """The first part of a command that runs a Java program of the tests or of a release, whose jars are fetched.

    `more` are other directories of jars.

    The JVM is ready soon, rather than fast after a minute, and has nothing of its own to print. Classes come from
    `archive` if that has been made.
    """
    prepare(release)
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable", "-Xmx512m"]
    path = os.pathsep.join([_classpath(release), *(f"{jars}/*" for jars in more)])
    return ["java", *quick, jvm_files.option(), *mapped(archive(release)), "-cp", path]


def archive(release: str) -> Path:
    """Where the classes of a release are kept as a JVM has them in memory (see kafka_archives)."""
    return TARGET / f"{release}.jsa"


def _classpath(release: str = "jars") -> str:
    """The jars of a release, then the Java programs: a JVM archives no classes of what comes after a directory."""
    return f"{TARGET}/{release}/*{os.pathsep}{TARGET}"


def _fetch(name: str, wanted: str) -> None:
    """Jars stay until the project file that lies beside them changes."""
    jars, partial = TARGET / name, TARGET / f"{name}.partial"
    kept = jars / "pom.xml"
    if not kept.exists() or kept.read_text() != wanted:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        named = partial / "pom.xml"
        named.write_text(wanted)
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
        subprocess.run(["mvn", "-q", "-B", "-f", named, *goal], check=True)
        shutil.rmtree(jars, ignore_errors=True)
        os.rename(partial, jars)


def _compile() -> None:
    sources = list(HERE.glob("*.java"))
    classes = [TARGET / f"{source.stem}.class" for source in sources]
    if not all(c.exists() and c.stat().st_mtime >= s.stat().st_mtime for c, s in zip(classes, sources, strict=True)):
        subprocess.run(["javac", "-encoding", "UTF-8", "-cp", _classpath(), "-d", TARGET, *sources], check=True)
