"""Whatever is in a directory, every call and every command ends with a result or a documented error."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import kafkacodec as kc
from kafkacodec.log import LogDirectory, Partition, Segment
from kafkacodec.log.partitions import each_once
from kafkacodec.log.reading import relocate
from kafkacodec.spark.errors import OptionError
from kafkacodec.spark.reading import view_rows
from kafkacodec.spark.reading.discovery import partitions_of
from kafkacodec.spark.reading.options import ReadOptions, parse_read_options
from kafkacodec.spark.reading.planning import plan, refuse_without_batches
from kafkacodec.spark.reading.tasks import read_ranges
from kafkacodec.spark.schema import COLUMNS, LOG_COLUMNS
from tests.command_runner import Runner, faults
from tests.examples import examples
from tests.log_trees import SEGMENT_ID, UUID, Content, trees, write
from tests.memory_files import temporary_directory

pytestmark = pytest.mark.filterwarnings("ignore::kafkacodec.errors.CheckpointWarning")  # of files damaged at random

EXAMPLES = int(os.environ.get("KAFKACODEC_TREES", "50"))

Call = Callable[[str], object]

DOCUMENTED = (OSError, kc.KafkaCodecError, OptionError)
"""OSError, invalid bytes, and in Spark an option without anything to read. `ValueError` is for wrong arguments."""

PHANTOM = {f"NAME-{UUID}": {"3": {}}, "blockmgr-6a2c1a3e-0d3b-4b3a-8f1e-2b1e3c4d5e6f": {"0": {}}}
"""Directories as Spark's block manager names them."""
DAMAGED_UPLOAD = {f"t-{UUID}": {"0": {f"{0:020}-{SEGMENT_ID}.rsm-manifest": Content("an object")}}}


AMBIGUOUS = "which are the same partition"
"""Directories that a broker has set aside, or that links lead to, may be so: `diff` refuses them."""


def rows(table: Any) -> object:
    return list(islice(table, 20))


def differences(path: str) -> object:
    """None from itself, if it can be compared."""
    try:
        return rows(kc.log.diff(path, path))
    except ValueError as error:
        if AMBIGUOUS not in str(error):
            raise
        return None


def of_directory(path: str) -> Iterator[Call]:
    """What a log directory has to offer."""
    yield lambda path: LogDirectory(path)._repr_html_()
    yield lambda path: LogDirectory(path).verify()
    for name in ("topics", "all_partitions", "set_aside", "log_start_offsets", "high_watermarks"):
        yield lambda path, name=name: getattr(LogDirectory(path), name)
    yield lambda path: [LogDirectory(path).topic(name).head(3) for name in LogDirectory(path).topics]
    for skip in ({}, {"problems": []}):
        yield lambda path, skip=skip: kc.log.read_consumer_groups(path, **skip)
        yield lambda path, skip=skip: kc.log.read_committed_offsets(path, **skip)
        yield lambda path, skip=skip: kc.log.lag(path, **skip)
        yield lambda path, skip=skip: kc.log.read_cluster_metadata(path, **skip)
    yield lambda path: kc.log.read_schemas(path)
    yield lambda path: kc.log.statistics(path, records=True)
    yield lambda path: kc.log.codec_trial(kc.log.discover(path), sample_bytes=1000)
    yield differences
    yield lambda path: kc.log.uploads(path)
    yield lambda path: kc.log.remove_unfinished(path)
    yield lambda path: kc.log.discover(path, levels=2)


def of_partition(partition: Partition) -> Iterator[Callable[[], object]]:
    """What a partition has to offer."""
    for on_error in ("raise", "stop", "skip"):
        yield lambda on_error=on_error: rows(partition.read(on_error=on_error, max_rows=100))
    for name in ("start_offset", "end_offset", "transactions", "verify", "breaks", "ranges", "_repr_html_"):
        yield lambda name=name: getattr(partition, name)()
    yield lambda: partition.size_in_bytes
    yield lambda: partition.last_stable_offset()
    yield lambda: partition.offset_of_timestamp(1)
    yield lambda: rows(partition.read(isolation_level="read_committed", gaps="accept"))
    yield lambda: kc.log.read_last(partition, 3)
    yield lambda: kc.log.Follower(partition).poll()
    yield lambda: kc.log.record_statistics(partition.read())


def of_file(path: str) -> Iterator[Callable[[], object]]:
    """What reads one file."""
    for name in (
        "read_checkpoint",
        "read_leader_epochs",
        "read_offset_index",
        "read_time_index",
        "read_transaction_index",
        "read_producer_snapshot",
        "read_properties",
        "read_topic_id",
    ):
        yield lambda name=name: getattr(kc.log, name)(path)
    segment = Segment(path)
    for on_error in ("raise", "stop", "skip"):
        yield lambda on_error=on_error: rows(segment.read(on_error=on_error))
    yield lambda: segment.verify()
    yield lambda: segment.scan(on_error="stop")
    yield lambda: (segment.first_offset(), segment.last_offset(), segment.ranges(max_bytes=100))
    yield lambda: kc.log.segment_statistics(segment)


def of_spark(path: str) -> Iterator[Call]:
    """What Spark's tasks do."""
    for mode in ("FAILFAST", "PERMISSIVE"):
        options = parse_read_options({"path": path, "mode": mode})
        for columns in (COLUMNS, LOG_COLUMNS):
            yield lambda _, options=options, columns=columns: read_as_spark(options, tuple(columns))
        for make in (view_rows.problems, view_rows.transactions):
            yield lambda _, options=options, make=make: rows(make(tuple(partitions_of(options)), options, ()))
        for make in (view_rows.lag, view_rows.offsets, view_rows.groups):
            yield lambda path, options=options, make=make: rows(make(([path],), options, ()))
        for name in view_rows.METADATA:
            yield lambda path, options=options, name=name: rows(view_rows.METADATA[name]((path,), options, ()))


def read_as_spark(options: ReadOptions, columns: tuple[str, ...]) -> None:
    """What the tasks of a query read."""
    tasks = plan(options)
    refuse_without_batches(tasks, columns)
    for ranges in tasks:
        rows(read_ranges(ranges, columns, permissive=options.permissive, gaps=options.gaps))


def attempt(call: Callable[..., object], *arguments: object) -> None:
    """Call; only documented errors may leave it."""
    with suppress(DOCUMENTED):
        call(*arguments)


def partitions_in(path: str) -> list[Partition]:
    try:
        return LogDirectory(path).all_partitions
    except OSError:
        return []


@pytest.fixture(scope="module", autouse=True)
def impatient() -> Iterator[None]:
    """No broker replaces files meanwhile, for which Spark's reader would wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(each_once, "PAUSE_SECONDS", 0)
        patch.setattr(relocate, "PAUSE_SECONDS", 0)
        yield


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with temporary_directory() as directory:
        yield Path(directory)


def made(tree: dict[str, Any], place: Path) -> Path:
    """The tree, and nothing else in the place, to which it may have links."""
    shutil.rmtree(place)
    (place / "tree").mkdir(parents=True)
    write(tree, place / "tree")
    return place / "tree"


@example(PHANTOM)
@example(DAMAGED_UPLOAD)
@example({f"t-0.{'0' * 32}-{state}": {} for state in ("delete", "future")})
@example({f"{0:020}.log": Content("empty"), f"{2**63 - 1:020}.log": Content("txn-0/.log", "cut", 1145)})
@given(trees)
@settings(
    max_examples=examples(EXAMPLES), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_calls_end_with_a_result_or_a_documented_error(place: Path, tree: dict[str, Any]) -> None:
    root = made(tree, place)
    directories, files = [str(root)], []
    for directory, below, names in os.walk(root):
        directories += [os.path.join(directory, name) for name in below]
        files += [os.path.join(directory, name) for name in names]
    for path in directories:
        for call in [*of_directory(path), *of_spark(path)]:
            attempt(call, path)
        shutil.rmtree(place / "saved", ignore_errors=True)
        attempt(kc.log.recover, path, place / "saved")
        for partition in [Partition(path), *partitions_in(path)]:
            for call in of_partition(partition):
                attempt(call)
    for path in files:
        for call in of_file(path):
            attempt(call)


def test_segments_named_beyond_all_offsets_are_left_out_and_told(place: Path) -> None:
    name, data = f"{2**63 - 1:020}.log", Content("none-0/.log")
    root = made(
        {"t-0": {f"{0:020}.log": data, name: data, "9" * 20 + ".log": data, f"{2**63 - 1:020}.kafka": data}}, place
    )
    report = kc.log.recover(root, place / "recovered")
    left_out = [os.path.basename(finding.path) for finding in report.findings if finding.kind == "left-out"]
    assert set(left_out) == {name}
    unread = [os.path.basename(finding.path) for finding in report.findings if finding.kind == "unread"]
    assert sorted(unread) == [f"{2**63 - 1:020}.kafka", "9" * 20 + ".log"]
    assert Partition(place / "recovered" / "t-0").count() == Segment(root / "t-0" / f"{0:020}.log").count()


def test_directories_of_others_are_no_topics(place: Path) -> None:
    root = made(PHANTOM, place)
    with pytest.raises(FileNotFoundError, match="no partitions, and no file of a broker"):
        _ = LogDirectory(root).topics
    with pytest.raises(FileNotFoundError, match="no Kafka log segments"):
        kc.log.discover(root)


COMMANDS = [
    "topics PATH",
    "topics PATH --json --records --partitions",
    "scan PATH",
    "scan PATH --batches --json",
    "scan PATH --segments",
    "dump PATH --on-error skip",
    "dump PATH --json --tail 3",
    "verify PATH --json",
    "verify PATH",
    "stats PATH --json --on-error skip --codec zstd",
    "diff PATH PATH --json",
    "recover PATH OUT",
    "report PATH -o OUT.html",
    "convert PATH -o OUT.jsonl --on-error skip --batch-columns",
    "lag PATH --json --on-error skip",
    "offsets PATH",
    "groups PATH --json",
    "metadata PATH --json --on-error skip",
]


@example(PHANTOM, 0)
@example(DAMAGED_UPLOAD, 0)
@example({f"t-0.{'0' * 32}-{state}": {} for state in ("delete", "future")}, COMMANDS.index("diff PATH PATH --json"))
@given(trees, st.integers(0, len(COMMANDS) - 1))
@settings(
    max_examples=examples(EXAMPLES // 2),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_commands_end_with_a_result_or_one_line(place: Path, runner: Runner, tree: dict[str, Any], first: int) -> None:
    """Six commands on each tree, different ones."""
    root = made(tree, place)
    for line in (COMMANDS + COMMANDS)[first : first + 6]:
        out = place / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        arguments = [str(root) if w == "PATH" else w.replace("OUT", str(out / "made")) for w in line.split()]
        outcome = runner(arguments)
        wrong = faults(arguments, outcome)
        assert not wrong, (line, wrong)
        assert outcome.code != 2 or AMBIGUOUS.encode() in outcome.err, (line, outcome.err)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(tmp_path_factory.mktemp("runner")) as made_runner:
        yield made_runner
