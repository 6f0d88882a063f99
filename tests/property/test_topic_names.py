"""Every legal topic name survives a round trip through the directory's name."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given, settings, strategies as st

from kafkacodec.log import LogDirectory, LogWriter, Segment, discover
from kafkacodec.log.formats import layout
from kafkacodec.log.opening.listing import directory_name
from tests.examples import examples

LEGAL = "ABCXYZabcxyz0189._-"
UUID_LIKE = st.one_of(st.just("A" * 22), st.from_regex("[AZaz09_-]{21}[AQgw]", fullmatch=True))
NUMBERS = st.integers(0, 99_999)
# Parts of the names of other kinds of directories.
PIECES = st.one_of(
    UUID_LIKE,
    st.text("0123456789abcdef", min_size=32, max_size=32),
    st.sampled_from(["-delete", "-future", "-stray", "delete", "stray", ".log", ".", "-", "_", "0", "-5-", "foo"]),
    NUMBERS.map("-{}".format),
    NUMBERS.map("-{}-".format),
    st.text(LEGAL, max_size=20),
)
TOPICS = (
    st.one_of(st.text(LEGAL, min_size=1, max_size=249), st.lists(PIECES, min_size=1, max_size=12).map("".join))
    .map(lambda name: name[:249])
    .filter(lambda name: name not in ("", ".", ".."))
)


def by_kafka(name: str) -> tuple[str, int]:
    """Splits a directory's name at the last dash, as a broker does."""
    cut = name.rindex("-")
    return name[:cut], int(name[cut + 1 :])


@given(TOPICS, NUMBERS)
@example("A" * 22 + "-5-foo", 0)
@example("A" * 22 + "-5", 0)
@example("LWgrMmVrT0a__7a4SasuPA-0-orders-eu-0", 7)
@example("orders-3.0123456789abcdef0123456789abcdef-delete", 0)
def test_names_are_read_as_a_broker_reads_them(topic: str, partition: int) -> None:
    name = f"{topic}-{partition}"
    assert layout.parse_directory_name(name) == (*by_kafka(name), "current") == (topic, partition, "current")


@given(TOPICS, NUMBERS, st.sampled_from(["delete", "future", "stray"]))
def test_replicas_set_aside(topic: str, partition: int, state: str) -> None:
    # UnifiedLog.logDirNameWithSuffixCappedLength: file names have at most 255 bytes.
    suffix = f"-{partition}.0123456789abcdef0123456789abcdef-{state}"
    name = topic[: 255 - len(suffix)] + suffix
    assert layout.parse_directory_name(name) == (topic[: 255 - len(suffix)], partition, state)


@given(UUID_LIKE, TOPICS, NUMBERS)
@example("A" * 22, "foo-0", 5)
@example("A" * 22, "7.abc-delete", 5)
def test_tiered_directories_are_recognized_by_what_they_hold(topic_id: str, topic: str, partition: int) -> None:
    name = f"{topic_id}-{partition}-{topic}"
    assert layout.parse_directory_name(name, tiered=True) == (topic, partition, "remote")
    if len(name) > 255:
        return
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place, name)
        directory.mkdir()
        segment = directory / f"{0:020d}-{'A' * 22}.log"
        segment.touch()
        assert directory_name(str(directory)) == (topic, partition, "remote")
        assert (Segment(segment).topic, Segment(segment).partition) == (topic, partition)
        assert LogDirectory(place).topics == [topic]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(TOPICS, NUMBERS), min_size=1, max_size=4, unique=True))
@example([("A" * 22 + "-5-foo", 0), ("foo-0", 5), ("foo", 0)])
def test_what_is_written_is_read_under_the_same_name(targets: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        for topic, partition in targets:
            with LogWriter(place, topic, partition, sync=False) as writer:
                writer.write([(None, f"{topic}/{partition}".encode())])
        log = LogDirectory(place)
        assert {(p.topic, p.partition) for p in log.all_partitions} == set(targets)
        assert {p.state for p in log.all_partitions} == {"current"}
        assert {(p.topic, p.partition) for p in discover(place)} == set(targets)
        for topic, partition in targets:
            (chunk,) = log.read(topic, partition)
            assert [record.value for record in chunk.records()] == [f"{topic}/{partition}".encode()]
            (segment,) = log.partition(topic, partition).segments
            assert (Segment(segment.path).topic, Segment(segment.path).partition) == (topic, partition)
