"""What tests of the command share: the golden logs they run it on, and what it should print."""

import json
import subprocess
import sys

from tests.corpus import ROOT, Row, segments

BROKER = ROOT / "logs" / "kraft-4.1.0"
SEGMENT = "logs/kraft-4.1.0/none-0/00000000000000000000.log"


def command(*arguments, **options):
    """Run the command in a new process."""
    return subprocess.run([sys.executable, "-m", "kafkacodec.cli", *map(str, arguments)], text=True, **options)


def expected(topic, partition=0) -> list[Row]:
    """All records of a partition except control records, in order."""
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == f"{topic}-{partition}"]
    return [row for s in sorted(samples, key=str) for row in s.expected.records if not row.is_control]


def is_binary(value) -> bool:
    try:
        return value is not None and not value.decode().isprintable()
    except UnicodeDecodeError:
        return True


def from_json(line: str) -> tuple:
    """A record of `dump --json` in the form of the expected rows."""
    record = json.loads(line)
    headers = [(header["key"], from_json_value(header["value"])) for header in record["headers"]]
    names = ("offset", "timestamp", "timestamp_type")
    return (*(record[n] for n in names), from_json_value(record["key"]), from_json_value(record["value"]), headers)


def from_json_value(value):
    import base64

    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else value.encode()
