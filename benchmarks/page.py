"""One page of all results of a directory, with its plots, which are also files beside it.

    python -m benchmarks.page benchmarks/results/0.1.0

draws them again from rates.json, sizes.json, live.json and brokers.json, as far as they are there.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from benchmarks import plots
from benchmarks.broker_servers import KAFKA, OURS as SERVED
from benchmarks.cases import CASES
from benchmarks.contest import Rates
from benchmarks.goals import ALL_MADE, ALL_READ, FRANZ, JAVA, MADE_AGAIN, MESSAGES as _MESSAGES, RUST, Outcome, outcomes
from benchmarks.live_latency import ON_UVLOOP
from benchmarks.live_limits import KEEPING, ON_A_LOOP, ONE_THREAD, RECEIVING, WRITING
from benchmarks.live_sends import SHAPES
from benchmarks.report import Distributions
from benchmarks.threads import ALONE

READING_OURS = ("iter_columns", "iter_columns, views", "decode", "iter_records")
WRITING_OURS = ("encode", "iter_encoded")
CALLS_OURS = ("Decoder.decode", "Decoder.iter_records", "Encoder.encode")
LIVE_OURS = ("kafkacodec, columns", "kafkacodec")
LATENCY_OURS = ("kafkacodec", "kafkacodec.aio")
READERS = (*READING_OURS, JAVA, FRANZ, "aiokafka", "kafka-python")
WRITERS = (*WRITING_OURS, JAVA, "aiokafka")
CLIENTS = (*LIVE_OURS, FRANZ, RUST, "confluent-kafka", "aiokafka", "kafka-python")
CODERS = ("kafkacodec", ALL_MADE, ALL_READ, JAVA, FRANZ, "kio", "kafka-python", MADE_AGAIN)
KINDS = ("rates", "sizes", "live", "brokers", "spark")
_CASES = tuple(case.name for case in CASES)


@dataclass(frozen=True)
class Document:
    """What one run has stored."""

    content: Mapping[str, Any]

    @property
    def machine(self) -> str:
        """The processor and what it was doing."""
        load = self.content.get("load")
        return f"{self.content['cpu']}, {self.content['cores']} cores" + ("" if load is None else f", load {load}")

    @property
    def rates(self) -> dict[str, Rates]:
        found: dict[str, Rates] = self.content["units_per_second"]
        return found

    @property
    def rounds(self) -> dict[str, dict[str, list[float]]]:
        found: dict[str, dict[str, list[float]]] = self.content.get("rounds", {})
        return found

    @property
    def distributions(self) -> Distributions:
        """How many calls took how long; empty if none were timed one by one."""
        return {
            contest: {
                name: {int(number): count for number, count in classes.items()} for name, classes in found.items()
            }
            for contest, found in self.content.get("classes_of_seconds", {}).items()
        }

    @property
    def outcomes(self) -> list[Outcome]:
        """Of today's goals."""
        return outcomes(self.rates)

    def under(self, prefix: str, names: Sequence[str] | None = None) -> dict[str, str]:
        """The contests whose names begin so, and go on with one of `names`: how they go on, and their names."""
        found = {name.removeprefix(prefix): name for name in self.rates if name.startswith(prefix)}
        return found if names is None else {name: found[name] for name in names if name in found}

    def numbered(self, pattern: str) -> dict[int, Rates]:
        """The rates of contests by the number in their names."""
        matches = ((re.fullmatch(pattern, name), rates) for name, rates in self.rates.items())
        return {int(match[1].replace(",", "")): rates for match, rates in matches if match}


Draw = Callable[[Document], bytes | None]


def _points(
    prefix: str,
    of: Sequence[str] | None,
    axis: str,
    who: Sequence[str],
    ours: Sequence[str],
    limits: Sequence[str] = (),
) -> Draw:
    def draw(document: Document) -> bytes | None:
        contests = {
            short: name for short, name in document.under(prefix, of).items() if set(document.rates[name]) & set(who)
        }
        rates = {short: document.rates[name] for short, name in contests.items()}
        rounds = {short: document.rounds.get(name, {}) for short, name in contests.items()}
        return plots.points(document.machine, axis, rates, rounds, who, ours, limits=limits) if rates else None

    return draw


def _value_sizes(document: Document) -> bytes | None:
    found = document.numbered(r"values of ([\d,]+) bytes")
    return plots.value_sizes(document.machine, found, READERS, READING_OURS) if found else None


def _set_sizes(document: Document) -> bytes | None:
    found = document.numbered(r"sets of ([\d,]+) records")
    return plots.set_sizes(document.machine, found, CALLS_OURS) if found else None


def _threads(document: Document) -> bytes | None:
    found = {
        short: {
            call: rates[f"{call}, threads=2"] / rates[f"{call}, threads=1"]
            for call in ("iter_columns", "decode", ALONE)
            if f"{call}, threads=2" in rates
        }
        for short, rates in ((short, document.rates[name]) for short, name in document.under("threads, ").items())
    }
    return plots.threads(document.machine, found, 2) if found else None


def _calls(document: Document) -> bytes | None:
    found = document.distributions
    return plots.calls(document.machine, "of processor time", found, CALLS_OURS) if found else None


def _latencies(document: Document) -> bytes | None:
    """A panel for each load, and one for the clients on uvloop beside one that needs no loop."""
    panels: Distributions = {}
    for contest, found in document.distributions.items():
        load = contest.removeprefix("live, latency, ")
        panels[load] = {name: classes for name, classes in found.items() if not name.endswith(ON_UVLOOP)}
        on_uvloop = {name.removesuffix(ON_UVLOOP): found[name] for name in found if name.endswith(ON_UVLOOP)}
        if on_uvloop:
            panels[load + ON_UVLOOP] = {**on_uvloop, "confluent-kafka": found["confluent-kafka"]}
    limits = (ONE_THREAD, ON_A_LOOP)
    return plots.calls(document.machine, "by the clock", panels, LATENCY_OURS, limits) if panels else None


def _brokers(document: Document) -> bytes | None:
    names = document.under("broker, ")
    held = {short: document.rates[name] for short, name in names.items() if KAFKA in document.rates[name]}
    ratios = {short: {who: rate / rates[KAFKA] for who, rate in rates.items()} for short, rates in held.items()}
    who = list(dict.fromkeys(name for rates in ratios.values() for name in rates))
    axis = "times Apache Kafka's rate, per second of the broker's processor time"
    return plots.points(document.machine, axis, ratios, {}, who, (SERVED,), scale=1) if ratios else None


_RECORDS = "million records per second"
_TOPICS = ("consume, none", "consume, lz4", "produce, none", "produce, lz4")
_CLIENT = f"{_RECORDS} of the client's processor time"


@dataclass(frozen=True)
class Plot:
    """A plot of the page: its file, the results that it shows, its title, and what the reader has to know."""

    file: str
    kind: str
    title: str
    remark: str
    draw: Draw


PLOTS = (
    Plot(
        "reading.png",
        "rates",
        "Reading record sets",
        "One thread. Every reader verifies every checksum and reads every field; the columns of kafkacodec contain"
        " copies of all keys and values, while Kafka's Java classes and franz-go return places in the batch. Keys of 10"
        " bytes, values of 100 or 1,024, batches of 16 KiB or 1 MiB.",
        _points("", _CASES, _RECORDS, READERS, READING_OURS),
    ),
    Plot(
        "value_sizes.png",
        "sizes",
        "Reading by the size of values",
        "Uncompressed batches of 16 KiB or one record, 24 MB in all. Lines without points limit kafkacodec, each"
        " alone and in the same run: a copy of the record set, and the CRC-32C of its bytes in blocks of 16 KiB. Java"
        " copies nothing, and its CRC-32C of large batches is faster than that of kafkacodec.",
        _value_sizes,
    ),
    Plot(
        "set_sizes.png",
        "sizes",
        "Reading by the size of record sets",
        "Sets of 160 bytes to 1.2 MB, each read with one call.",
        _set_sizes,
    ),
    Plot(
        "calls.png",
        "sizes",
        "How long single calls take",
        "Two thousand calls each, in turns. What other processes take of the processor is not in it, but what they take"
        " of its caches is.",
        _calls,
    ),
    Plot(
        "threads.png",
        "rates",
        "Two threads",
        "By the clock, so that other work on the machine lowers it. Copying is limited by the memory, which both"
        " processors share: what two threads save of one copy of the same bytes, or of zstd's library, is beside it.",
        _threads,
    ),
    Plot(
        "writing.png",
        "rates",
        "Writing record sets",
        "From columns; the peers get record by record. Keys of 10 bytes, values of 100, batches of 16 KiB.",
        _points("encode, ", _CASES, _RECORDS, WRITERS, WRITING_OURS),
    ),
    *(
        Plot(
            f"messages_{work}.png",
            "rates",
            f"Messages of the protocol: {work}",
            "Large bodies of Metadata, Fetch, Produce and OffsetCommit. " + remark,
            _points(f"{work}, ", _MESSAGES, "MB per second", CODERS, CODERS[:3]),
        )
        for work, remark in (
            (
                "decode",
                "kafkacodec makes the objects of an array when it is read; its peers make all at once. To make the"
                " same objects by CPython's functions alone reads no bytes: what a decoder without a memory of its own"
                " cannot be faster than.",
            ),
            ("encode", "From the objects that were decoded."),
        )
    ),
    Plot(
        "live.png",
        "live",
        "Clients with a broker",
        "One partition, keys of 10 bytes, values of 100, acks=all; the broker is Apache Kafka on the other processor."
        " Lines without points limit kafkacodec, each in the same run: no client, but ready requests, checksums, and"
        " the library of LZ4 on the same batches.",
        _points("live, ", _TOPICS, _CLIENT, CLIENTS, LIVE_OURS, (RECEIVING, WRITING)),
    ),
    Plot(
        "sends.png",
        "live",
        "Records sent one by one",
        "One partition, values of 100 bytes, acks=all; with keys of 10 bytes but for the first. The line is what Python"
        " takes for the same calls of a method in C that keeps its arguments and does nothing else.",
        _points("live, send, ", SHAPES, _CLIENT, CLIENTS, LIVE_OURS, (KEEPING,)),
    ),
    Plot(
        "latency.png",
        "live",
        "From send to its result, with a broker",
        "By the clock, one partition, values of 100 bytes, acks=all, linger 0; all records of all rounds. A record is"
        " sent when another one is acknowledged. A transaction has ten records and a linger of 5 ms; its time is that"
        " from its begin to the end of its commit. The broker and its disk are part of all times, and other work on the"
        " machine lengthens them. Those without an area are no clients: a ready request and its answer, on a blocking"
        " socket, and on an event loop, in one thread.",
        _latencies,
    ),
    Plot(
        "brokers.png",
        "brokers",
        "Brokers",
        "The same frames to all. Apache Kafka and kafkacodec write files, the others keep records in memory.",
        _brokers,
    ),
)


def write(directory: Path) -> Path:
    """Draw the plots of the results there, and write the page."""
    documents = {
        kind: Document(json.loads((directory / f"{kind}.json").read_text()))
        for kind in KINDS
        if (directory / f"{kind}.json").exists()
    }
    shown = []
    for plot in PLOTS:
        drawn = plot.draw(documents[plot.kind]) if plot.kind in documents else None
        if drawn:
            (directory / plot.file).write_bytes(drawn)
            shown.append((plot, base64.b64encode(drawn).decode()))
    page = directory / "index.html"
    page.write_text(_render(documents, shown), "utf-8")
    return page


def rate(number: float) -> str:
    """Four digits, with the letter of a thousand, a million or a thousand million."""
    for power, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= power:
            return f"{number / power:.4g}{letter}"
    return f"{number:.4g}"


def _render(documents: Mapping[str, Document], shown: Sequence[tuple[Plot, str]]) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["rate"] = rate
    return environment.get_template("page.jinja").render(documents=documents, shown=shown)


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
