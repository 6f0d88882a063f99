"""Programs of other client libraries, in Go and JavaScript, built once into .cache; what they write and read."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import kafkacodec as kc
from kafkacodec import client

__all__ = ["CODECS", "assert_parts", "go", "script", "serving", "stored"]

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".cache" / "test-clients"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_FIRST_TIME = 1_700_000_000_000
_PER_CODEC = 20


def go() -> list[str]:
    """The command of the program in Go, made from its sources if they are newer."""
    program = CACHE / "go-clients"
    sources = [*(HERE / "go").glob("*.go"), HERE / "go" / "go.mod"]
    _once(program, sources, lambda: _run(HERE / "go", "go", "build", "-o", program, "."))
    return [str(program)]


def script() -> list[str]:
    """The command of the program in JavaScript, with the packages that its lock file names."""
    directory = CACHE / "js"
    sources = [*(HERE / "js").glob("*.json"), *(HERE / "js").glob("*.js")]

    def install() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(HERE / "js", directory)
        _run(directory, "npm", "ci", "--silent", "--no-audit", "--no-fund")
        (directory / "installed").touch()

    _once(directory / "installed", sources, install)
    return ["node", str(directory / "main.js")]


def _once(made: Path, sources: list[Path], make: Callable[[], None]) -> None:
    """Others who want the same wait."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{made.parent.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists() or made.stat().st_mtime < max(source.stat().st_mtime for source in sources):
            make()


def _run(directory: Path, *command: str | Path) -> None:
    subprocess.run(command, cwd=directory, check=True)


@contextmanager
def serving() -> Iterator[kc.broker.Broker]:
    """A broker with the records of all codecs in the topic "ours"."""
    with kc.broker.serve(topics={"ours": 1}, config={"group.share.heartbeat.interval.ms": 300}) as broker:
        for codec in CODECS:
            with client.Producer(broker.bootstrap_servers, compression_type=codec, linger_ms=20) as producer:
                for number, (key, value, headers) in enumerate(written(codec)):
                    producer.send("ours", value, key=key, headers=headers, timestamp=_FIRST_TIME + number)
        with client.Admin(broker.bootstrap_servers) as admin:
            admin.incremental_alter_configs({("group", "franz-share"): {"share.auto.offset.reset": "earliest"}})
        yield broker


def written(codec: str) -> list[tuple[bytes, bytes, list[tuple[str, bytes]]]]:
    """Keys, values and headers of the records of a codec; their times are milliseconds from `_FIRST_TIME` on."""
    name = codec.encode()
    return [(b"k%d" % n, b"%s %d" % (name, n), [("codec", name)]) for n in range(_PER_CODEC)]


def stored(broker: kc.broker.Broker, topic: str) -> None:
    """A topic has the records of all codecs, in batches of these codecs."""
    expected = [row for codec in CODECS for row in written(codec)]
    records = broker.records(topic)
    assert [(record.key, record.value, list(record.headers)) for record in records] == expected
    times = [_FIRST_TIME + number for _ in CODECS for number in range(_PER_CODEC)]
    assert [record.timestamp for record in records] == times
    (path,) = (Path(broker.data) / f"{topic}-0").glob("*.log")
    kinds = kc.scan(path.read_bytes(), columns=["codec"])["codec"].tolist()
    assert list(dict.fromkeys(kinds)) == list(CODECS)


def assert_parts(command: list[str], expected: list[str]) -> None:
    """Run a program, which prints the name of each part that has passed."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (ended.returncode, ended.stdout.splitlines()) == (0, expected), ended.stderr[-4000:]
