"""A real Kafka 0.7.2 for `make kafka07-proof`: built from its sources for Java 17, and run on the loopback interface.

    python -m tests.integration.kafka07_real GIT_DIRECTORY TARGET

GIT_DIRECTORY is a git directory of apache/kafka with its tags. Scala 2.8, with which it was compiled, does not run on
Java 17: the sources are changed as far as Scala 2.11 asks for, and the broker listens on 127.0.0.1 only.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tests.integration.kafka_jvm import Server, free_port

__all__ = ["RealBroker", "RealTool", "build", "java_command"]

TAG = "kafka-0.7.2-incubating-candidate-5"
_SCALA = "2.11.12"
_COMPILER = ("scala-compiler", "scala-reflect")
_LIBRARIES = (
    *(f"org.scala-lang:{name}:{_SCALA}" for name in (*_COMPILER, "scala-library", "scala-actors")),
    "org.scala-lang.modules:scala-xml_2.11:1.0.5",
    "org.scala-lang.modules:scala-parser-combinators_2.11:1.0.4",
    "log4j:log4j:1.2.17",
    "net.sf.jopt-simple:jopt-simple:3.2",
    "org.apache.zookeeper:zookeeper:3.3.4",
    "com.github.sgroschupf:zkclient:0.1",
    "org.xerial.snappy:snappy-java:1.1.10.5",
)
# What Scala 2.11 and Java 17 ask for: a pattern of file names, what is replaced in them, and by what.
_WRAPPERS = (("List", "seqAsJavaList"), ("Buffer", "asScalaBuffer"))
_COLLECTIONS = (("Map", "mapAsScalaMap"), ("Set", "asScalaSet"), ("Iterable", "collectionAsScalaIterable"))
_EDITS = (
    ("utils/Annotations.scala", r"^(package kafka\.utils)$", r"\1\nimport scala.annotation.StaticAnnotation"),
    *(("**/*.scala", rf"(?<!Arrays\.)\bas{name}\b", wrapper) for name, wrapper in _WRAPPERS),
    *(("**/*.scala", rf"\bas{name}\(", f"{wrapper}(") for name, wrapper in _COLLECTIONS),
    ("consumer/ZookeeperConsumerConnector.scala", "findIndexOf", "indexWhere"),
    ("utils/Pool.scala", r"m\.elements", "m.iterator"),
    ("**/*.scala", r"\b(sizeBuffer|buffer|b1|b2|topIter)\.(limit|position)\b(?!\s*\()", r"\1.\2()"),
    ("producer/ProducerPool.scala", r"props\.putAll\(config\.props\)",
     "props.putAll(config.props.asInstanceOf[java.util.Map[_, _]])"),
    ("network/SocketServer.scala", r"new InetSocketAddress\(port\)", 'new InetSocketAddress("127.0.0.1", port)'),
)  # fmt: skip


def build(git_directory: Path, target: Path) -> None:
    """Compile it; `target` gets the directories classes and lib."""
    target = target.resolve()  # Maven takes relative paths from its project
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        packed = subprocess.run(
            ["git", f"--git-dir={git_directory}", "archive", TAG, "core/src/main"], check=True, capture_output=True
        )
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(work, filter="data")
        sources = work / "core/src/main/scala/kafka"
        for pattern, found, replaced in _EDITS:
            for path in sources.glob(pattern):
                text = path.read_text("utf-8")
                changed = re.sub(found, replaced, text, flags=re.MULTILINE)
                if changed != text:
                    path.write_text(changed, "utf-8")
        _fetch(work, target / "lib")
        _compile(work, target)


def _fetch(work: Path, jars: Path) -> None:
    dependency = (
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"
    )
    named = "".join(dependency.format(*library.split(":")) for library in _LIBRARIES)
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>kafkacodec'
        "</groupId><artifactId>kafka07</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{named}</dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    subprocess.run(["mvn", "-q", "-B", "-f", work / "pom.xml", *goal], check=True)


def _compile(work: Path, target: Path) -> None:
    classes, jars = target / "classes", f"{target / 'lib'}/*"
    classes.mkdir(exist_ok=True)
    scala = sorted(map(str, (work / "core/src/main").rglob("*.scala")))
    java = sorted(map(str, (work / "core/src/main").rglob("*.java")))
    scalac = ["java", "-Xmx600m", "-Xss8m", "-cp", jars, "scala.tools.nsc.Main", "-usejavacp", "-nowarn"]
    subprocess.run([*scalac, "-d", str(classes), *scala, *java], check=True)
    path = f"{classes}:{jars}"
    subprocess.run(["javac", "-nowarn", "-Xlint:none", "-cp", path, "-d", str(classes), *java], check=True)


def java_command(built: Path, name: str, *arguments: Any) -> list[str]:
    """A command that runs one of its classes."""
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx200m"]
    return ["java", *quick, "-cp", f"{built / 'classes'}:{built / 'lib'}/*", name, *map(str, arguments)]


def _properties(path: Path, values: dict[str, Any]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return path


class RealBroker(Server):
    """Its broker; `start`, `stop`, `kill` and `signal` as those of other brokers."""

    def __init__(self, built: Path, directory: Path, zookeeper: str, number: int, **settings: Any) -> None:
        """`settings` are more properties, with underscores for dots."""
        directory.mkdir(exist_ok=True)
        self.server, self.logs = f"127.0.0.1:{free_port()}", directory / "data"
        self._output_path = directory / "broker.out"
        values = {
            "brokerid": number, "port": self.server.split(":")[1], "hostname": "127.0.0.1", "log.dir": self.logs,
            "zk.connect": zookeeper, "zk.connectiontimeout.ms": 30_000, "zk.sessiontimeout.ms": 5000,
            "log.flush.interval": 1, **{name.replace("_", "."): value for name, value in settings.items()},
        }  # fmt: skip
        self._command = java_command(built, "kafka.Kafka", _properties(directory / "server.properties", values))


class RealTool(Server):
    """One of its programs in the background, with files of properties by the option that names each.

    Attributes:
        output: the file with what it prints.
    """

    def __init__(
        self, built: Path, directory: Path, name: str, options: list[Any], **properties: dict[str, Any]
    ) -> None:
        directory.mkdir(exist_ok=True)
        self._output_path = self.output = directory / "tool.out"
        given = [
            part
            for option, values in properties.items()
            for part in (f"--{option.replace('_', '.')}", _properties(directory / option, values))
        ]
        self._command = java_command(built, name, *given, *options)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
