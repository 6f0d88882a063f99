"""Copying the intact batches of damaged logs, byte for byte, into new segments with new index files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np

from kafkacodec.arguments import path_text
from kafkacodec.errors import KafkaCodecError
from kafkacodec.log.checking.arrangement import Placed
from kafkacodec.log.checking.checked import Advance
from kafkacodec.log.checking.report import Finding, Report
from kafkacodec.log.checking.verify import Keep, verify_segment
from kafkacodec.log.files.access import reason_of
from kafkacodec.log.files.publishing import new_directory, write_file
from kafkacodec.log.files.side_files import leads_out, links_out, read_inside
from kafkacodec.log.formats import layout
from kafkacodec.log.formats.checkpoints import LeaderEpoch, encode_checkpoint, encode_leader_epochs
from kafkacodec.log.opening import StoredFile, is_directory, is_uploaded
from kafkacodec.log.opening.checkpoints import read_topic_id
from kafkacodec.log.opening.listing import segment_files
from kafkacodec.log.order.epochs import EpochRun, EpochRuns, contradiction, judge_epochs, told_by
from kafkacodec.log.order.gap_evidence import knows_base
from kafkacodec.log.order.placement import Ints
from kafkacodec.log.order.sets import records_in
from kafkacodec.log.partitions.directory import LogDirectory, discover
from kafkacodec.log.partitions.inside import arranged_segments, verify_files
from kafkacodec.log.partitions.partition import Partition
from kafkacodec.log.writing.producer_state import ProducerState
from kafkacodec.log.writing.segment_writer import MAX_BASE_OFFSET, SegmentWriter
from kafkacodec.records.columns import BatchHeaders
from kafkacodec.records.encode import EncodedBatch
from kafkacodec.signatures import suggests_options

_NO_TIMESTAMP = np.iinfo(np.int64).min

REPORT_FILE = "recovery-report.json"

# Files that identify a log directory. Offset checkpoints are not copied, so that a broker checks every segment; but the
# cleaner's is written again, since it shows what compaction has removed.
_DIRECTORY_FILES = ("meta.properties", "bootstrap.checkpoint")
_PARTITION_FILES = ("quorum-state",)


@suggests_options
def recover(src: str | os.PathLike[str], dest: str | os.PathLike[str], *, advance: Advance | None = None) -> Report:
    """Copy all intact batches of a log directory, a partition or a segment to a new log directory.

    Every batch with a right checksum and valid records is copied byte for byte into a segment of the same name. The
    checksum leaves out the base offset: one that contradicts the batches around it, the segment's name or the next
    one's is replaced by the right one if that is certain, because the batch fills the gap in which it lies, an index
    names it, or its producer's sequence numbers fix it; otherwise the batch is left out. A segment with a wrong name
    gets the right one. Nor does the checksum cover the leader epoch: batches whose epoch contradicts those around them
    are reported as ``leader-epoch``, and are left out of the leader-epoch checkpoint. A fault in one file never ends
    the recovery of another. Offset, time and transaction indexes, producer snapshots, the leader-epoch checkpoint and
    the cleaner's checkpoint are written again; topic ids and ``meta.properties`` are copied. Other offset checkpoints
    are not: a broker without them checks every segment. The source is only read. Symbolic links that lead out of it are
    not followed, and the report names them; the source itself may be one.

    The destination appears complete or not at all: it is written under a temporary name in the same directory. Only an
    existing destination that is a mount point, or whose parent is not writable, is filled directory by directory, with
    the report last.

    Args:
        src: the damaged log directory, partition directory or segment.
        dest: the new log directory; it must not exist, or be empty.
        advance: called with the number of bytes of the source that were read since the last call.

    Returns:
        Report: the faults in the source, and the number of batches and records that were copied; errors of kind
        ``damaged``, ``offset-order`` and ``left-out`` name what was not copied, those of kind ``gap`` what was
        missing, and warnings of kind ``offset-order`` batches with restored offsets. It is also in the file
        ``recovery-report.json`` of the destination.

    Raises:
        FileExistsError: the destination is not empty, at the start or when everything is copied.
        ValueError: the destination is in the source, or the source in the destination.
        FileNotFoundError: there is no segment in the source.
        OSError: the source cannot be listed, or the destination cannot be written.
    """
    src, dest = path_text(src, "src"), path_text(dest, "dest")
    partitions = discover(src)
    _check_destination(src, dest)
    with new_directory(dest, last=REPORT_FILE) as building:
        return _recover_into(building, src, partitions, advance or (lambda size: None))


def recover_tree(
    src: str | os.PathLike[str], dest: str | os.PathLike[str], *, levels: int, advance: Advance | None = None
) -> list[Report]:
    """Recover each log directory below a directory to the same place below another one, which must be empty.

    A log directory appears complete or not at all; those before one that cannot be written stay.

    Args:
        src: has log directories up to `levels` below it, and is none itself.
        dest: the new directory.
        levels: how deep to look.
        advance: as in `recover`.

    Returns:
        The report of each log directory, in order of their paths.

    Raises:
        As `recover`.
    """
    src, dest = path_text(src, "src"), path_text(dest, "dest")
    found = sorted({os.path.dirname(partition.path) for partition in discover(src, levels=levels)})
    _check_destination(src, dest)
    reports = []
    for directory in found:
        target = os.path.join(dest, os.path.relpath(directory, src))
        if leads_out(directory, src):
            reports.append(Report(directory))
            _left_out(directory, "a symbolic link out of the source; recover its target by itself", reports[-1])
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        reports.append(recover(directory, target, advance=advance))
    return reports


def _recover_into(dest: str, src: str, partitions: list[Partition], advance: Advance) -> Report:
    root = src if os.path.isdir(src) else os.path.dirname(src) or os.curdir
    report = Report(src)
    if root == src:
        _copy_files(_DIRECTORY_FILES, src, dest, report)
    cleaned: dict[tuple[str, int], int] = {}
    for partition in partitions:
        if partition.path != root and leads_out(partition.path, root):
            _left_out(partition.path, "a symbolic link out of the source; recover its target by itself", report)
            continue
        if partition.is_kafka07:
            text = "logs of Kafka 0.6 and 0.7 cannot be recovered"
            _left_out(partition.path, text, report)
            continue
        target = os.path.join(dest, _directory_name(partition))
        os.mkdir(target)
        part = Report(partition.path)
        with _leaving_out(partition.path, target, part):
            _recover_partition(partition, target, root, advance, part)
            cleaned |= _cleaned(partition, target)
        report.include(part)
    if any(partition.path != root for partition in partitions):
        report.include(LogDirectory(src).verify_checkpoints())
    if cleaned:
        write_file(os.path.join(dest, layout.CLEANER_CHECKPOINT), encode_checkpoint(cleaned), sync=True)
    write_file(os.path.join(dest, REPORT_FILE), (json.dumps(report.to_dict(), indent=1) + "\n").encode(), sync=True)
    return report


def _check_destination(src: str, dest: str) -> None:
    source, target = os.path.realpath(src), os.path.realpath(dest)
    if os.path.commonpath([source, target]) in (source, target):
        raise ValueError(f"the destination {dest!r} overlaps the source {src!r}: choose a directory outside it")
    if os.path.exists(dest) and (not os.path.isdir(dest) or os.listdir(dest)):
        raise FileExistsError(errno.EEXIST, "the destination is not an empty directory", dest)


def _directory_name(partition: Partition) -> str:
    if partition.topic is None or partition.partition is None:
        return os.path.basename(os.path.abspath(partition.path)) + "-0"
    return f"{partition.topic}-{partition.partition}"


def _recover_partition(partition: Partition, target: str, root: str, advance: Advance, report: Report) -> None:
    copier = _Copier(target, report)
    arranged = arranged_segments(partition)
    for number, placed in enumerate(arranged):
        path = placed.segment.path
        if os.path.isdir(root) and path != root and leads_out(path, root):
            _left_out(path, "a symbolic link out of the source", report)
            continue
        if placed.base_offset is not None and placed.base_offset > MAX_BASE_OFFSET:
            _left_out(path, "no record can have the offset in its name", report)
            continue
        report.include(copier.copy(placed, _stop_of(placed, arranged[number + 1 :]), advance))
    if not is_directory(partition.path):
        return
    epochs = encode_leader_epochs(_leader_epochs(copier.epochs.runs, partition, report))
    write_file(os.path.join(target, layout.LEADER_EPOCH_CHECKPOINT), epochs, sync=True)
    _write_producer_files(target)
    _copy_files((layout.PARTITION_METADATA, *_PARTITION_FILES), partition.path, target, report)
    links = links_out(partition.path, root)
    for path in links:
        report.add(Finding("warning", "link", path, "a symbolic link out of the source is not followed"))
    if not links:
        report.include(verify_files(partition, arranged, whole=copier.whole))


def _cleaned(partition: Partition, target: str) -> dict[tuple[str, int], int]:
    """The entry of a partition in the cleaner's checkpoint, at most the end of the saved log."""
    saved = Partition(target)
    if saved.topic is None or saved.partition is None:
        return {}
    offset = min(partition.cleaned_to, saved.end_offset())
    return {(saved.topic, saved.partition): offset} if offset else {}


def _left_out(path: str, text: str, report: Report) -> None:
    report.add(Finding("error", "left-out", path, f"not copied: {text}"))


@contextmanager
def _leaving_out(path: str, target: str, report: Report) -> Iterator[None]:
    """Turns an error in the source into a finding. An error of the destination, `target`, is raised."""
    try:
        yield
    except (OSError, KafkaCodecError) as error:
        if isinstance(error, OSError) and os.fspath(error.filename or target).startswith(target):
            raise
        _left_out(path, reason_of(error), report)


def _leader_epochs(runs: list[EpochRun], partition: Partition, report: Report) -> list[LeaderEpoch]:
    """The leader epochs of the batches, from the start offsets in the source's checkpoint if these are smaller.

    An epoch's first batches may be compacted away. Epochs that contradict the batches around them are reported, and
    replaced by those of the checkpoint.
    """
    known: list[LeaderEpoch] = []
    with suppress(OSError, KafkaCodecError):
        known = partition.leader_epochs
    right, wrong = judge_epochs(runs, known)
    other = contradiction(right, known)
    for run, text in ((found.run, found.reason) for found in (*wrong, *(() if other is None else (other,)))):
        report.add(Finding("warning", "leader-epoch", run.path, text, run.position, None, run.first_offset))
    starts = dict(known)
    epochs: list[LeaderEpoch] = []
    least = 0
    for run in sorted([*right, *told_by(known, wrong)], key=lambda run: run.first_offset):
        if not epochs or run.epoch > epochs[-1].epoch:
            start = min(run.first_offset, starts.get(run.epoch, run.first_offset))
            epochs.append(LeaderEpoch(run.epoch, max(least, start)))
        least = run.last_offset + 1
    return epochs


def _stop_of(placed: Placed, later: list[Placed]) -> int | None:
    """The offset from which on batches are copied from the segments after this one; None: none."""
    following = placed.surroundings.following
    if following is None or is_uploaded(placed.segment.path):  # the next leader has uploaded them again
        return following
    if placed.corrections is None or placed.end_offset <= following:
        return None
    _, lasts = placed.corrections.known
    here = sum(last >= following for last in lasts.tolist())
    near = [one for one in later if one.base_offset is not None and one.base_offset < placed.end_offset]
    there = sum(one.num_right - one.num_restored for one in near)
    return following if there >= here else None


class _Copier:
    """Copies the intact batches of a partition's segments, in order."""

    def __init__(self, target: str, report: Report) -> None:
        self.target = target
        self.report = report
        self.next_offset = 0
        self.names: set[int] = set()  # base offsets of the segments so far
        self.whole = True  # every segment could be read
        # Of the current segment; of a compressed message set, the number of records is unknown.
        self.copied_batches = self.copied_records = self.left_out_records = self.left_out_controls = 0
        self.epochs = EpochRuns()

    def copy(self, placed: Placed, stop: int | None, advance: Advance) -> Report:
        """Copy a segment up to the offset `stop`; the report counts what was copied."""
        segment, base_offset = placed.segment, placed.base_offset
        if layout.is_stand_in(segment.path):
            return self._read(placed, lambda *_: None, advance)
        if base_offset is None:
            base_offset = self.next_offset if placed.first_offset is None else placed.first_offset
        again = base_offset < self.next_offset or base_offset in self.names  # it has offsets that were copied before
        base_offset = self.next_offset if again else base_offset
        with _writer(self.target, base_offset, again) as writer:

            def keep(file: StoredFile, headers: BatchHeaders, base: Ints, last: Ints) -> None:
                self._append(writer, file, headers, base, last, stop)

            self.copied_batches = self.copied_records = self.left_out_records = self.left_out_controls = 0
            report = self._read(placed, keep, advance)
            report.num_batches = self.copied_batches
            if self.copied_batches or not again:
                self.names.add(base_offset)
            self.next_offset = writer.next_offset
        return report

    def _read(self, placed: Placed, keep: Keep, advance: Advance) -> Report:
        segment = placed.segment
        left_out = Report(segment.path, num_segments=1)
        reports = []
        with _leaving_out(segment.path, self.target, left_out):
            reports.append(
                verify_segment(
                    segment.path,
                    placed.base_offset,
                    surroundings=placed.surroundings,
                    corrections=placed.corrections,
                    keep=keep,
                    advance=advance,
                )
            )
            if placed.fault is not None:
                raise placed.fault
        self.whole = self.whole and not left_out.findings
        if not reports:
            left_out.num_records = self.copied_records
            return left_out
        report = reports[0]
        report.num_records -= self.left_out_records
        report.control_records -= self.left_out_controls
        report.findings += left_out.findings
        report.counts += left_out.counts
        return report

    def _append(
        self, writer: SegmentWriter, file: StoredFile, headers: BatchHeaders, base: Ints, last: Ints, stop: int | None
    ) -> None:
        magics, known = headers["magic"], knows_base(headers)
        # A compressed message set has only its last offset.
        bases = np.where(magics >= 2, base, last).tolist()
        times = headers["max_timestamp"].astype(np.int64)
        times = np.where(times == _NO_TIMESTAMP, -1, times).tolist()
        starts, sizes = headers["position"].tolist(), headers["size_in_bytes"].tolist()
        lasts, counts, controls = last.tolist(), headers["count"].tolist(), headers["is_control"].tolist()
        copied: list[int] = []
        for i, start in enumerate(starts):
            if stop is not None and bases[i] >= stop:
                self._uncount(file, start, sizes[i], counts[i] if known[i] else None, controls[i])
                if not is_uploaded(file.path):
                    self._left_out(file.path, start, sizes[i], bases[i], lasts[i])
                continue
            if bases[i] < writer.next_offset:  # the report of the segment or the partition has a finding for it
                self._uncount(file, start, sizes[i], counts[i] if known[i] else None, controls[i])
                self._left_out(file.path, start, sizes[i], bases[i], lasts[i])
                continue
            data = file.read(start, sizes[i])
            file.check_size()
            if base[i] != headers["base_offset"][i]:
                data = bases[i].to_bytes(8, "big") + data[8:]
            writer.append(EncodedBatch(data, bases[i], lasts[i], times[i], 0))
            self.copied_batches += 1
            self.copied_records += max(0, counts[i])
            copied.append(i)
        copied = [i for i in copied if magics[i] >= 2]
        epochs = headers["partition_leader_epoch"].astype(np.int64)
        self.epochs.add(file.path, *(column[copied] for column in (epochs, base, last, headers["position"])))

    def _uncount(self, file: StoredFile, position: int, size: int, count: int | None, is_control: bool) -> None:
        """A batch of the report is not copied; None: its header does not tell the number of its records."""
        count = records_in(file, position, size) if count is None else count
        self.left_out_records += count
        self.left_out_controls += count if is_control else 0

    def _left_out(self, path: str, position: int, size: int, first: int, last: int) -> None:
        text = "not copied: offsets out of order"
        self.report.add(Finding("error", "left-out", path, text, position, size, first, last + 1))


@contextmanager
def _writer(directory: str, base_offset: int, optional: bool) -> Iterator[SegmentWriter]:
    """A writer that commits at the end; an `optional` segment only if it has batches."""
    writer = SegmentWriter(directory, base_offset)
    try:
        yield writer
    except BaseException:
        writer.discard()
        raise
    if optional and not writer.size_in_bytes:
        writer.discard()
    else:
        writer.commit()


def _write_producer_files(target: str) -> None:
    """Transaction indexes, and the producers known where each segment ends."""
    if not segment_files(target):
        return
    partition = Partition(target)
    producers = ProducerState(target, [], 0)
    ends = [segment.base_offset or 0 for segment in partition.segments[1:]] + [partition.end_offset()]
    for segment, end in zip(partition.segments, ends, strict=True):
        producers.read_segment(segment)
        for name, data in producers.files_at(segment.base_offset or 0, end).items():
            path = os.path.join(target, name)
            if not os.path.exists(path):  # a last segment without batches ends where the one before it does
                write_file(path, data, sync=True)


def _copy_files(names: tuple[str, ...], src: str, dest: str, report: Report) -> None:
    """Copy the files of a directory that exist; a topic id only if it can be read."""
    for name in names:
        path, copy = os.path.join(src, name), os.path.join(dest, name)
        try:
            write_file(copy, read_inside(src, name), sync=True)
            if name == layout.PARTITION_METADATA:
                read_topic_id(copy)
        except FileNotFoundError:
            pass
        except (OSError, KafkaCodecError) as error:
            if isinstance(error, KafkaCodecError):
                with suppress(FileNotFoundError):
                    os.unlink(copy)
            report.add(Finding("warning", name.replace(".", "-"), path, f"not copied: {reason_of(error)}"))
