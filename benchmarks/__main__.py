"""Measures all readers in one run, taking turns, and prints rates and ratios. See --help."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from importlib.metadata import version

import kafkacodec as kc
from benchmarks import java, readers
from benchmarks.cases import CASES, Case, record_set

ROUNDS = 5
# A peer that needs this long for a case is run once only.
SLOW_SECONDS = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--only", metavar="NAME", help="cases whose name contains this")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data and no Java")
    parser.add_argument("--save", metavar="FILE", help="write the rates as JSON")
    arguments = parser.parse_args()
    cases = [case for case in CASES if not arguments.only or arguments.only in case.name]
    if arguments.quick:
        cases = [Case(**{**case.__dict__, "total_bytes": case.total_bytes // 10}) for case in cases]
    record_sets = {case.name: record_set(case) for case in cases}
    results = {case.name: measure(record_sets[case.name], compressed=case.codec != "none") for case in cases}
    reason = "--quick" if arguments.quick else java.missing()
    if reason is None:
        for name, rate in zip(record_sets, java.rates(list(record_sets.values())), strict=True):
            results[name]["Kafka's Java reader"] = rate
    report(results)
    if reason is not None:
        print(f"\nKafka's Java reader was left out: {reason}")
    if arguments.save:
        save(arguments.save, results)


def measure(data: bytes, *, compressed: bool) -> dict[str, float]:
    """Records per second of every reader: the best of several rounds, readers taking turns."""
    competitors = readers.OURS | readers.PEERS
    if compressed:
        competitors["merely decompressing"] = readers.merely_decompress
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, read in competitors.items():
            if best.get(name, 0) > SLOW_SECONDS:
                continue
            start = time.perf_counter()
            count = read(data)
            best[name] = min(best.get(name, float("inf")), time.perf_counter() - start)
    return {name: count / seconds for name, seconds in best.items()}


def report(results: dict[str, dict[str, float]]) -> None:
    """Tables in Markdown: million records a second, then iter_columns as a multiple of each."""
    names = list(dict.fromkeys(name for rates in results.values() for name in rates))
    print("\nMillion records per second (checksums verified)\n")
    _table(results, names, lambda rates, name: rates[name] / 1e6)
    print("\nkafkacodec iter_columns as a multiple of the others\n")
    _table(results, names[1:], lambda rates, name: rates[names[0]] / rates[name])


def _table(results, names, cell) -> None:
    print("| |", " | ".join(results), "|")
    print("|---|" + "---|" * len(results))
    for name in names:
        cells = [f"{cell(rates, name):.3g}" if name in rates else "" for rates in results.values()]
        print(f"| {name} |", " | ".join(cells), "|")


def save(path: str, results: dict[str, dict[str, float]]) -> None:
    about = {
        "kafkacodec": kc.__version__,
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "peers": {name: version(name) for name in ("aiokafka", "kafka-python", "lz4", "zstandard", "numpy")},
    }
    with open(path, "w") as file:
        json.dump(about | {"records_per_second": results}, file, indent=1)
        file.write("\n")


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
