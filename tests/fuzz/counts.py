"""How often the fuzz targets ran: every run is added to out/fuzz-counts.json.

    python -m tests.fuzz.counts LOG...

A log is what a C target printed; its file is named after the target.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

COUNTS = Path(__file__).parents[2] / "out" / "fuzz-counts.json"
EXECUTIONS = re.compile(r"number_of_executed_units: +(\d+)|(\d+) mutations passed")


def add(target: str, executions: int) -> None:
    """Note one run, and the sum of all runs of its target."""
    counts = json.loads(COUNTS.read_text()) if COUNTS.exists() else {"totals": {}, "runs": []}
    counts["totals"][target] = counts["totals"].get(target, 0) + executions
    counts["runs"].append({"date": time.strftime("%Y-%m-%d"), "target": target, "executions": executions})
    COUNTS.parent.mkdir(exist_ok=True)
    COUNTS.write_text(json.dumps(counts, indent=1) + "\n")


def executions_in(log: str) -> int:
    """The number that libFuzzer or the replay program printed."""
    found = EXECUTIONS.search(log)
    if found is None:
        raise ValueError("the log of a fuzz target tells no executions")
    return int(found[1] or found[2])


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        add(path.stem, executions_in(path.read_text(errors="replace")))
