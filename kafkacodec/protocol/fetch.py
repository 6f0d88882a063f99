"""The records of a fetch response as one table. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from kafkacodec.errors import error
from kafkacodec.records.columns import RecordColumns
from kafkacodec.records.decode import RECORD_COLUMNS, decode

if TYPE_CHECKING:
    import pyarrow

    from kafkacodec.messages import FetchResponse

__all__ = ["fetch_to_columns"]

# What tells which records belong to an aborted transaction.
_TRANSACTION_COLUMNS = ("is_transactional", "is_control", "producer_id")
_ABORT = 0


def fetch_to_columns(
    response: FetchResponse,
    *,
    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
    topic_names: dict[Any, str] | None = None,
    **options: Any,
) -> pyarrow.Table:
    """All records of a fetch response: columns ``topic`` and ``partition``, then those of `kafkacodec.decode`.

    Record sets are decoded where they lie. A chunk of the table is a partition; values are not copied.

    Args:
        response: of any version.
        isolation_level: ``"read_committed"`` drops the records of the aborted transactions that the response lists,
            as a consumer does. The broker sends nothing beyond the last stable offset where it was asked for that.
        topic_names: names by topic id, for versions from 13 on; without it the topic is the id in text.
        options: those of `kafkacodec.decode`, such as ``columns``.

    Raises:
        BrokerError: the response, or one of its partitions, has an error code: the class of that code.
        DecodeError: as `kafkacodec.decode`; the path names the partition.
    """
    import pyarrow as pa

    if response.error_code:
        raise error(response.error_code)()
    names = topic_names or {}
    batches = []
    for topic, partition in _partitions(response, names):
        if partition.error_code:
            raise error(partition.error_code)(
                f"{topic}-{partition.partition_index}: {error(partition.error_code).name}"
            )
        aborted = partition.aborted_transactions if isolation_level == "read_committed" else None
        try:
            rows = _rows(partition.records, aborted or [], options)
        except ValueError as fault:
            if hasattr(fault, "path"):
                fault.path = f"{topic}-{partition.partition_index}" + (f": {fault.path}" if fault.path else "")
            raise
        size = len(rows)
        place = [pa.repeat(pa.scalar(topic), size), pa.repeat(pa.scalar(partition.partition_index, pa.int32()), size)]
        batches.append(pa.table([*place, *rows.columns], names=["topic", "partition", *rows.column_names]))
    if not batches:
        empty = pa.table(decode(b"", **options))
        place = [pa.array([], pa.string()), pa.array([], pa.int32())]
        return pa.table([*place, *empty.columns], names=["topic", "partition", *empty.column_names])
    return pa.concat_tables(batches)


def _partitions(response: Any, names: dict[Any, str]) -> Iterator[tuple[str, Any]]:
    for topic in response.responses:
        name = topic.topic or names.get(topic.topic_id) or str(topic.topic_id)
        for partition in topic.partitions:
            yield name, partition


def _rows(records: Any, aborted: list[Any], options: dict[str, Any]) -> Any:
    import pyarrow as pa

    data = b"" if records is None else records
    if not aborted:
        return pa.table(decode(data, **options))
    shown = list(options.get("columns") or RECORD_COLUMNS)
    needed = dict.fromkeys([*shown, "offset", "key", *_TRANSACTION_COLUMNS])
    decoded = decode(data, **{**options, "columns": list(needed), "include_control": True})
    keep = _kept(decoded, pa.table(decoded).column("key"), aborted, bool(options.get("include_control")))
    return pa.table(decoded).select(shown).filter(pa.array(keep))


def _kept(decoded: RecordColumns, keys: Any, aborted: list[Any], include_control: bool) -> list[bool]:
    """Which rows a consumer is given. An abort marker ends the aborted transaction of its producer."""
    waiting = sorted(((entry.first_offset, entry.producer_id) for entry in aborted), reverse=True)
    inside: set[int] = set()
    keep = []
    columns = [decoded[name].tolist() for name in ("offset", *_TRANSACTION_COLUMNS)]
    for row, (offset, transactional, control, producer) in enumerate(zip(*columns, strict=True)):
        while waiting and waiting[-1][0] <= offset:
            inside.add(waiting.pop()[1])
        if control:
            key = keys[row].as_py()
            if key and int.from_bytes(key[2:4], "big") == _ABORT:
                inside.discard(producer)
            keep.append(include_control)
        else:
            keep.append(not (transactional and producer in inside))
    return keep
