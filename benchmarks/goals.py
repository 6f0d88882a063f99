"""The goals: the least ratio of our rate to another's, in the same contest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks import libraries, live_latency, live_limits, live_sends, live_standing
from benchmarks.broker_servers import KAFKA, KFAKE, MOCK, OURS as SERVED, TANSU
from benchmarks.contest import Rates

JAVA, FRANZ, RUST = "Kafka's Java classes", "franz-go", "rust-rdkafka"
DECOMPRESSING = "fastest library alone"
COLUMNS = "kafkacodec, columns"
BROKER, OWN_TUNED = "Spark, a topic of a broker", "Spark's own source, tuned"
EXPORT = "kafkacodec.spark.export"
IDLE, SMALL = "Spark, empty triggers of 800 partitions", "Spark, a topic of 2,000 small partitions"
BATCHES, FETCHES = "broker, produce, 16 KiB batches, requests", "broker, fetch, 1 MiB answers, bytes"
ALL_MADE, ALL_READ = "kafkacodec, all objects made", "kafkacodec, every array read"
MADE_AGAIN = "the same objects by CPython alone"
ONE_THREAD = "iter_columns, threads=1"
# The messages of `messages.bodies()`.
MESSAGES = (
    *(f"Metadata response v{version}" for version in (1, 5, 8, 12)),
    *(f"Fetch response v{version}" for version in (4, 11, 12, 13)),
    *(f"Produce request v{version}" for version in (7, 9)),
    *(f"OffsetCommit request v{version}" for version in (7, 8)),
)


@dataclass(frozen=True)
class Goal:
    """`at_least` times the rate of `against`; if `against` is None, a rate in the contest's unit per second."""

    contest: str
    ours: str
    against: str | None
    at_least: float

    @property
    def name(self) -> str:
        return f"{self.contest}: {self.ours} / {self.against or 'second'}"


@dataclass(frozen=True)
class Outcome:
    """A goal and the measured ratio or rate, None if a competitor was missing."""

    goal: Goal
    measured: float | None

    @property
    def met(self) -> bool | None:
        return None if self.measured is None else self.measured >= self.goal.at_least


GOALS = [
    Goal("none", "iter_columns", "aiokafka", 14),
    Goal("none", "iter_columns", JAVA, 2),
    Goal("all bytes of none", "iter_columns", JAVA, 2),
    Goal("all bytes of none, 1 KiB values", "iter_columns", JAVA, 1),
    Goal("none", "decode", "aiokafka", 5),
    Goal("none", "iter_records", "aiokafka", 1.5),
    Goal("none, 1 KiB values", "iter_columns, views", JAVA, 1.3),
    Goal("none, 1 KiB values", "iter_columns, views", "iter_columns", 2),
    Goal("none, 2 headers", "iter_columns", JAVA, 1.3),
    *(Goal(codec, "decode", "iter_columns", 0.9) for codec in libraries.CANDIDATES),
    Goal("bytes of none, 1 KiB values", "iter_columns", None, 8e9),
    *(Goal(f"search, {case}", "Search, bytes", None, 1e9) for case in ("none", "none, 1 KiB values", "lz4")),
    Goal("search, none", "Search, bytes", "pyarrow.compute.match_substring", 3),
    Goal("values in Avro", "values.decode", "Confluent's deserializer", 10),
    *(Goal(codec, "iter_columns", DECOMPRESSING, 0.85) for codec in libraries.CANDIDATES),
    Goal("magic 1", "iter_columns", "aiokafka", 8),
    Goal("magic 1", "iter_columns", JAVA, 1.5),
    Goal("encode, none", "encode", "aiokafka", 10),
    Goal("encode, none", "encode", JAVA, 4.5),
    Goal("encode, none", "iter_encoded", JAVA, 4.5),
    *(Goal(f"encode, {codec}", "encode", "compressing alone", 0.85) for codec in libraries.COMPRESSORS),
    *(Goal(f"decode, {body}", "kafkacodec", "kio", 4) for body in MESSAGES),
    *(Goal(f"encode, {body}", "kafkacodec", "kio", 40) for body in MESSAGES),
    *(Goal(f"decode, {body}", "kafkacodec", JAVA, 1) for body in MESSAGES),
    *(Goal(f"decode, {body}", ALL_MADE, JAVA, 1) for body in MESSAGES),
    *(Goal(f"decode, {body}", ALL_MADE, MADE_AGAIN, 1) for body in MESSAGES),
    *(Goal(f"encode, {body}", "kafkacodec", JAVA, 1) for body in MESSAGES),
    *(Goal(f"threads, {codec}", "iter_columns, threads=2", ONE_THREAD, 1.8) for codec in ("gzip", "snappy", "lz4")),
    Goal("threads, zstd", "iter_columns, threads=2", ONE_THREAD, 1.9),
    Goal("threads, none", "iter_columns, threads=2", ONE_THREAD, 1.7),
    Goal("decode sets of one record", "Decoder.decode", None, 1 / 1.5e-6),
    Goal("decode sets of one record", "Decoder.iter_records", None, 1 / 1.5e-6),
    Goal("encode sets of ten records", "Encoder.encode", "aiokafka", 1),
    Goal("verify", "verify", None, 5e9),
    *(Goal("resynchronisation", kind, None, 1e9) for kind in ("random", "text", "big-endian integers")),
    Goal("CRC-32C of 16 KiB blocks", "kc.crc32c", "PyPI crc32c", 1.4),
    Goal("partition of 10 B keys", "partition", None, 100e6),
    Goal("live, consume, none", COLUMNS, "aiokafka", 30),
    Goal("live, consume, lz4", COLUMNS, "aiokafka", 12),
    Goal("live, consume, none", COLUMNS, "confluent-kafka", 25),
    Goal("live, consume, lz4", COLUMNS, "confluent-kafka", 6),
    *(Goal(f"live, consume, {codec}", "kafkacodec", "aiokafka", 2) for codec in ("none", "lz4")),
    Goal("live, produce, none", COLUMNS, "confluent-kafka", 14),
    Goal("live, produce, lz4", COLUMNS, "confluent-kafka", 10),
    Goal("live, produce, lz4", COLUMNS, live_limits.WRITING, 0.9),
    *(Goal(f"live, produce, {codec}", "kafkacodec", "aiokafka", 2) for codec in ("none", "lz4")),
    *(Goal(f"live, send, {shape}", "kafkacodec", "confluent-kafka", 1.8) for shape in live_sends.SHAPES),
    *(Goal(f"live, send, {shape}", "kafkacodec", "aiokafka", 10) for shape in live_sends.SHAPES[:-1]),
    Goal("live, send, 8 threads, wall clock", "kafkacodec", "confluent-kafka", 1),
    Goal("live, consume, none", "kafkacodec", "confluent-kafka", 5),
    Goal("live, one after the other, commit", "kafkacodec", "confluent-kafka", 1),
    Goal("live, one after the other, transaction, wall clock", "kafkacodec", "confluent-kafka", 1.5),
    *(
        Goal(f"live, latency, {load}{end}", "kafkacodec", "confluent-kafka", 1)
        for load in live_latency.LOADS
        for end in ("", ", 99 of 100")
    ),
    *(Goal(f"live, {work}", "kafkacodec", "confluent-kafka", 1) for work in live_standing.PARTITIONS),
    Goal(BATCHES, SERVED, KAFKA, 2.5),
    Goal(BATCHES, SERVED, TANSU, 1.5),
    *(Goal("broker, produce, 1 MiB batches, bytes", SERVED, peer, 1.5) for peer in (KAFKA, KFAKE, TANSU, MOCK)),
    Goal("broker, produce, one record at a time, requests", SERVED, KAFKA, 1.5),
    Goal(FETCHES, SERVED, KAFKA, 1),
    Goal(FETCHES, SERVED, KFAKE, 2),
    Goal("Spark, sum of value lengths", "kafkalog", "ready-made Arrow batches", 0.8),
    Goal("Spark, stream", "kafkalog", "ready-made Arrow batches", 0.9),
    *(Goal(BROKER, source, OWN_TUNED, 2) for source in ("kafkalog", "kafkabroker")),
    Goal(BROKER, "kafkalog, only values", OWN_TUNED, 3.5),
    Goal(f"{BROKER}, processor time", "kafkabroker", OWN_TUNED, 2),
    Goal("Spark, segments to Parquet", EXPORT, "kafkalog, df.write.parquet", 6),
    Goal(f"{BROKER}, to Parquet", EXPORT, "Spark's own source, df.write.parquet", 9),
    *(Goal(IDLE, source, None, 20) for source in ("kafkabroker", "kafkalog")),
    Goal(SMALL, "kafkabroker", None, 20_000 / 3),
    Goal("Spark, write", "kafkalog, none", "batches thrown away", 0.7),
    Goal("Spark, write", "kafkalog, lz4", "batches thrown away", 0.7),
]


def outcomes(results: Mapping[str, Rates]) -> list[Outcome]:
    """The outcomes of all goals whose contest was run."""
    return [Outcome(goal, _measured(goal, results[goal.contest])) for goal in GOALS if goal.contest in results]


def _measured(goal: Goal, rates: Rates) -> float | None:
    ours = rates.get(goal.ours)
    if ours is None or goal.against is None:
        return ours
    theirs = _fastest_library(rates) if goal.against == DECOMPRESSING else rates.get(goal.against)
    return None if theirs is None else ours / theirs


def _fastest_library(rates: Rates) -> float:
    names = {name for candidates in libraries.CANDIDATES.values() for name in candidates}
    return max(rate for name, rate in rates.items() if name in names)
