"""Measure all competitors in one run, in turns, and print rates and ratios. See --help."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    broker_line,
    broker_rewrite,
    broker_scale,
    brokers,
    goals,
    inspection,
    java,
    live,
    messages,
    primitives,
    reading,
    report,
    searching,
    small,
    spark,
    threads,
    values,
    writing,
)
from benchmarks.cases import CASES, record_set
from benchmarks.contest import Rates, run

HANDED_ON = ("none", "none, 1 KiB values", "lz4")
ENCODED = ("none", "lz4", "zstd", "snappy", "gzip")


def main() -> None:
    arguments = parse()
    if arguments.live:
        finish(live.run(2 if arguments.quick else 5, note), [], arguments.save, "live")
        return
    if arguments.brokers:
        rates, said = brokers.run(2 if arguments.quick else 5, note)
        finish(
            rates, [*said, *broker_scale.run(), *broker_line.run(), *broker_rewrite.run()], arguments.save, "brokers"
        )
        return
    cases = [case for case in CASES if not arguments.only or arguments.only in case.name]
    if arguments.quick:
        cases = [replace(case, total_bytes=case.total_bytes // 10) for case in cases]
    bodies = [body for body in messages.bodies() if not arguments.only or arguments.only in str(body)]
    rounds = 3 if arguments.quick else 5
    results: dict[str, Rates] = {}
    record_sets = {case.name: record_set(case) for case in cases}
    for case in cases:
        results[case.name] = run(reading.contest(case, record_sets[case.name]), rounds)
        note(case.name)
    for case in cases:
        if case.name in HANDED_ON:
            contest = reading.handed_on(case, record_sets[case.name])
            results[contest.name] = run(contest, rounds)
    for case in cases:
        if case.name in threads.COMPARED:
            contest = threads.contest(case, record_sets[case.name])
            results[contest.name] = run(contest, rounds, clock=time.perf_counter)
            note(contest.name)
    for case in cases:
        if case.name in ENCODED:
            results[f"encode, {case.name}"] = run(writing.contest(case), rounds)
            note(f"encode, {case.name}")
    for case in cases:
        if case.name in searching.COMPARED:
            with searching.contest(case, record_sets[case.name]) as contest:
                results[contest.name] = run(contest, rounds, clock=searching.processor_time)
            note(contest.name)
    for contest in primitives.contests(record_sets):
        results[contest.name] = run(contest, rounds)
    for contest in small.contests() if not arguments.only or arguments.only in "small" else ():
        results[contest.name] = run(contest, rounds)
        note(contest.name)
    with inspection.contests(cases) as contests:
        for contest in contests:
            results[contest.name] = run(contest, rounds)
            note(contest.name)
    for contest in values.contests() if not arguments.only or arguments.only in "values" else ():
        results[contest.name] = run(contest, rounds)
        note(contest.name)
    for body in bodies:
        for contest in messages.contests(body):
            results[contest.name] = run(contest, rounds)
        note(str(body))
    left_out: list[str | None] = (
        [java.add(results, record_sets, bodies)] if not arguments.quick else ["Java was skipped: --quick"]
    )
    if arguments.spark:
        for contest in spark.contests():
            results[contest.name] = run(contest, rounds=3, clock=contest.clock or time.perf_counter, slow=float("inf"))
    finish(results, left_out, arguments.save, "rates")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="cases and messages whose name contains this")
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, fewer rounds and no Java")
    parser.add_argument("--spark", action="store_true", help="Spark too: two cores, wall-clock time, minutes")
    parser.add_argument("--live", action="store_true", help="only the client beside its peers, with a broker; minutes")
    parser.add_argument("--brokers", action="store_true", help="only the broker beside its peers; minutes")
    parser.add_argument(
        "--save",
        metavar="DIR",
        type=Path,
        help="write rates.json, live.json or brokers.json, and a plot there",
    )
    return parser.parse_args()


def note(name: str) -> None:
    print(f"measured: {name}", file=sys.stderr, flush=True)


def finish(results: dict[str, Rates], left_out: list[str | None], directory: Path | None, kind: report.Kind) -> None:
    """Print the results, and save them if a directory is given."""
    outcomes = goals.outcomes(results)
    print("\n" + report.rates_table(results))
    print("\n" + report.goals_table(outcomes))
    for reason in filter(None, left_out):
        print(f"\n{reason}")
    if directory:
        report.save(directory, results, outcomes, kind)


if __name__ == "__main__":
    main()
