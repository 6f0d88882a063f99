"""Writing record sets from columns, compared with aiokafka's builder and the compression libraries alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

import kafkacodec as kc
from benchmarks import libraries
from benchmarks.cases import Case, record_set, records
from benchmarks.contest import Contest


def table(entries: list[tuple[int, bytes, bytes]]) -> pa.Table:
    """Records as columns."""
    timestamps, keys, bodies = zip(*entries, strict=True)
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(bodies, pa.binary())}).append_column(
        "timestamp", pa.array(timestamps, pa.timestamp("ms", "UTC"))
    )


def contest(case: Case) -> Contest:
    """Our two functions, aiokafka's builder and, if the case is compressed, the libraries alone on the same batches.

    `iter_encoded` does not keep batches, like Kafka's builder.
    """
    entries = list(records(case))
    columns = table(entries)
    options: dict[str, Any] = {"codec": case.codec, "batch_bytes": case.batch_bytes}
    competitors: dict[str, Callable[[], object]] = {
        "encode": partial(kc.encode, columns, **options),
        "iter_encoded": lambda: sum(batch.num_records for batch in kc.iter_encoded(columns, **options)),
        "aiokafka": partial(record_set, case, entries),
    }
    if case.codec != "none":
        contents = list(libraries.payloads(bytes(kc.encode(columns, batch_bytes=case.batch_bytes))))
        competitors["compressing alone"] = partial(_compress_all, libraries.COMPRESSORS[case.codec], contents)
    return Contest(f"encode, {case.name}", "records", case.num_records, competitors)


def _compress_all(compress: Callable[[bytes], object], contents: list[bytes]) -> None:
    for content in contents:
        compress(content)
