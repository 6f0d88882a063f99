"""Writes kafkacodec/broker_errors.txt from a JSON list of Kafka's error codes."""

import json
import sys
from pathlib import Path

TABLE = Path(__file__).parent.parent / "kafkacodec" / "broker_errors.txt"


def main(path: str) -> None:
    """Writes one line per code: the code, the name, its properties."""
    lines = ["# code name [retriable] [stale-metadata]"]
    for error in sorted(json.loads(Path(path).read_text())["errors"], key=lambda e: int(e["code"])):
        words = [str(error["code"]), error["name"]]
        words += ["retriable"] * error["retriable"] + ["stale-metadata"] * error["invalidMetadata"]
        lines.append(" ".join(words))
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
