"""Tests an installed wheel with only its required dependencies. argv: tests/data/kafka."""

import base64
import gzip
import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import kafkacodec as kc

DATA = Path(sys.argv[1])
SEGMENT = DATA / "logs/kraft-4.1.0/none-0/00000000000000000000.log"
PACKAGE = Path(kc.__file__).parent
# Present in every environment, or needed by a required dependency.
AROUND = {"pip", "setuptools", "kafkacodec", "cffi", "pycparser"}


def hard_dependencies():
    requirements = importlib.metadata.requires("kafkacodec") or []
    return {r.split(">")[0].split("=")[0].strip().lower() for r in requirements if "extra ==" not in r}


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "kafkacodec.cli", *arguments], capture_output=True, text=True)


def test_comes_from_the_wheel():
    assert "site-packages" in PACKAGE.parts
    assert importlib.metadata.version("kafkacodec") == kc.__version__
    assert (PACKAGE / "py.typed").is_file()
    assert list(PACKAGE.rglob("_*.pyi")), "stubs are missing"
    assert not [p for p in PACKAGE.rglob("*") if p.suffix in (".c", ".pyx", ".h")]


def test_nothing_else_is_installed():
    names = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
    assert names <= hard_dependencies() | AROUND, names


def expected_records(segment):
    name = segment.relative_to(DATA).as_posix()
    with gzip.open(DATA / "expected/logs/kraft-4.1.0.records.jsonl.gz", "rt") as lines:
        records = [record for record in map(json.loads, lines) if record["file"] == name]
    return [(record["offset"], record["timestamp"], decoded(record["key"])) for record in records]


def decoded(text):
    return None if text is None else base64.b64decode(text)


def test_decodes_every_codec_without_pyarrow():
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        for segment in sorted((DATA / f"logs/kraft-4.1.0/{codec}-0").glob("*.log")):
            records = list(kc.iter_records(segment.read_bytes(), include_control=True))
            assert [(r.offset, r.timestamp, r.key) for r in records] == expected_records(segment)
    assert "pyarrow" not in sys.modules


def test_encodes_what_it_decodes():
    records = list(kc.iter_records(SEGMENT.read_bytes()))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert list(kc.iter_records(kc.encode(records, codec=codec))) == records


def test_reads_log_directories():
    directory = kc.log.LogDirectory(DATA / "logs/kraft-4.1.0")
    chunks = directory.read("txn", 0, isolation_level="read_committed")
    committed = json.loads((DATA / "expected/logs/kraft-4.1.0/txn-0.read_committed.json").read_text())
    assert [offset for chunk in chunks for offset in chunk["offset"].tolist()] == committed["offsets"]


def test_has_the_sample():
    log = kc.sample()
    assert PACKAGE in Path(log).parents
    assert log.verify().clean
    assert log.topic("orders").count() == len(list(log.topic("orders"))) == 600
    assert log.topic("payments").count(isolation_level="read_committed") == 88


def test_speaks_the_protocol():
    request = kc.messages.ApiVersionsRequest(client_software_name="smoke", client_software_version="1")
    frame = kc.protocol.encode_request(request, 3, 7, "client")
    header, message = kc.protocol.decode_request(frame)
    assert (header.correlation_id, message) == (7, request)


def error_of(call):
    """The exception that a call raises, or None."""
    try:
        call()
    except Exception as error:
        return error
    return None


def test_bad_bytes_give_our_errors():
    for data in (b"\xff" * 100, b"text that is not Kafka's"):
        error = error_of(lambda data=data: kc.decode(data))
        assert isinstance(error, kc.DecodeError)
        assert error.position is not None


def test_missing_extras_are_named():
    error = error_of(lambda: kc.decode(b"").to_pyarrow())
    assert "pip install 'kafkacodec[arrow]'" in str(error)
    error = error_of(lambda: kc.spark.register(None))
    assert "kafkacodec[spark]" in str(error)


def test_command_says_what_is_missing():
    finished = command("scan", str(SEGMENT))
    assert finished.returncode == 2
    assert "pip install 'kafkacodec[cli]'" in finished.stderr
    assert "Traceback" not in finished.stderr


def main():
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    for test in tests:
        test()
    print(f"{len(tests)} checks of the installed wheel passed")


main()
