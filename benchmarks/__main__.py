"""Measure all competitors in one run, in turns, and print rates and ratios. See --help."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    broker_compaction,
    broker_line,
    broker_rewrite,
    broker_scale,
    brokers,
    goals,
    inspection,
    latencies,
    live,
    messages,
    page,
    primitives,
    programs,
    reading,
    report,
    searching,
    sizes,
    small,
    spark,
    threads,
    values,
    writing,
)
from benchmarks.cases import CASES, Case, record_set
from benchmarks.contest import Contest, Measured, Rates, run

HANDED_ON = ("none", "none, 1 KiB values", "lz4")
ENCODED = ("none", "lz4", "zstd", "snappy", "gzip")


def main() -> None:
    arguments = parse()

    def chosen(name: str) -> bool:
        return not arguments.only or arguments.only in name

    if arguments.live:
        of_live, calls, absent = live.run(2 if arguments.quick else 5, note, chosen)
        finish(of_live, absent, arguments.save, "live", calls)
        return
    if arguments.spark:
        of_spark = spark.run(2 if arguments.quick else 5, note, chosen, 10 if arguments.quick else 1)
        finish(of_spark, [], arguments.save, "spark")
        return
    if arguments.brokers:
        rates, said = brokers.run(2 if arguments.quick else 9, note)
        for module in (broker_compaction, broker_scale, broker_line, broker_rewrite):
            said += module.run()
        finish(rates, said, arguments.save, "brokers")
        return

    def sets(cases: Sequence[Case]) -> dict[Case, bytes]:
        found = [case for case in cases if chosen(case.name)]
        if arguments.quick:
            found = [replace(case, total_bytes=case.total_bytes // 10) for case in found]
        return {case: record_set(case) for case in found}

    of_sizes(Runner(3 if arguments.quick else 5), sets(sizes.CASES), chosen, arguments)
    if arguments.sizes:
        return
    made = sets(CASES)
    cases, record_sets = list(made), {case.name: data for case, data in made.items()}
    bodies = [body for body in messages.bodies() if chosen(str(body))]
    runner = Runner(3 if arguments.quick else 5)
    of_cases(runner, cases, record_sets)
    of_calls(runner, chosen)
    for body in bodies:
        for contest in messages.contests(body):
            runner.run(contest)
    left_out = by_programs(runner, record_sets, bodies, arguments.quick)
    finish(runner.results, left_out, arguments.save, "rates")


class Runner:
    """Runs contests, and keeps their rates."""

    def __init__(self, rounds: int) -> None:
        self.results: dict[str, Measured] = {}
        self._rounds = rounds

    def run(self, contest: Contest, clock: Callable[[], float] = time.thread_time) -> None:
        self.results[contest.name] = run(contest, self._rounds, clock)
        note(contest.name)


def of_cases(runner: Runner, cases: list[Case], record_sets: dict[str, bytes]) -> None:
    """The contests about the cases' record sets."""
    for case in cases:
        runner.run(reading.contest(case, record_sets[case.name]))
    for case in cases:
        if case.name in HANDED_ON:
            runner.run(reading.handed_on(case, record_sets[case.name]))
    for case in cases:
        if case.name in threads.COMPARED:
            runner.run(threads.contest(case, record_sets[case.name]), time.perf_counter)
    for case in cases:
        if case.name in ENCODED:
            runner.run(writing.contest(case))
    for case in cases:
        if case.name in searching.COMPARED:
            with searching.contest(case, record_sets[case.name]) as contest:
                runner.run(contest, searching.processor_time)
    for contest in primitives.contests(record_sets):
        runner.run(contest)
    with inspection.contests(cases) as contests:
        for contest in contests:
            runner.run(contest)


def of_calls(runner: Runner, chosen: Callable[[str], bool]) -> None:
    """Contests of small record sets, and of values."""
    if chosen("small"):
        for contest in small.contests():
            runner.run(contest)
    if chosen("values"):
        for contest in values.contests():
            runner.run(contest)


def of_sizes(
    runner: Runner, record_sets: Mapping[Case, bytes], chosen: Callable[[str], bool], arguments: argparse.Namespace
) -> None:
    """Contests by size, and how long single calls take; they have their own file of results."""
    for case, data in record_sets.items():
        runner.run(sizes.value_contest(case, data))
    for contest in sizes.set_contests():
        if chosen(contest.name):
            runner.run(contest)
    left_out = by_programs(runner, {case.name: data for case, data in record_sets.items()}, (), arguments.quick)
    distributions = {found.name: latencies.measure(found) for found in latencies.contests() if chosen(found.name)}
    if runner.results or distributions:
        finish(runner.results, left_out, arguments.save, "sizes", distributions)


def by_programs(
    runner: Runner, record_sets: Mapping[str, bytes], bodies: Sequence[messages.Body], quick: bool
) -> Sequence[str | None]:
    """Add the rates of programs; why some are missing."""
    if quick:
        return ["Java and franz-go were skipped: --quick"]
    return programs.add(runner.results, record_sets, bodies)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--only", metavar="NAME", help="cases, messages, and contests with a broker or Spark whose name contains this"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the data, fewer rounds, no Java and no Go")
    parser.add_argument("--spark", action="store_true", help="only Spark on two cores, with a broker; minutes")
    parser.add_argument("--sizes", action="store_true", help="only rates by size, and the times of single calls")
    parser.add_argument("--live", action="store_true", help="only the client beside its peers, with a broker; minutes")
    parser.add_argument("--brokers", action="store_true", help="only the broker beside its peers; minutes")
    parser.add_argument(
        "--save",
        metavar="DIR",
        type=Path,
        help="write rates.json, sizes.json, live.json, brokers.json or spark.json there, and index.html with all plots",
    )
    return parser.parse_args()


def note(name: str) -> None:
    print(f"measured: {name}", file=sys.stderr, flush=True)


def finish(
    results: Mapping[str, Rates],
    left_out: Sequence[str | None],
    directory: Path | None,
    kind: report.Kind,
    distributions: report.Distributions | None = None,
) -> None:
    """Print the results, and save them if a directory is given."""
    outcomes = goals.outcomes(results)
    print("\n" + report.rates_table(results))
    if outcomes:
        print("\n" + report.goals_table(outcomes))
    for reason in filter(None, left_out):
        print(f"\n{reason}")
    if directory:
        report.save(directory, results, outcomes, kind, distributions or {})
        print(f"\n{page.write(directory)}")


if __name__ == "__main__":
    main()
