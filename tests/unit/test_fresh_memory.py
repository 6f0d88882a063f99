"""Exporters with new memory for each export, which is overwritten when the export ends: one export is made and held."""

from __future__ import annotations

import gc

import pytest

import kafkacodec as kc
from kafkacodec import messages
from tests.lifetime.exporters import EXPORTERS

RECORDS = kc.encode([(b"key", b"value")] * 3)
VERSION = 12


def response() -> messages.FetchResponse:
    partition = messages.FetchResponse.PartitionData(partition_index=5, records=RECORDS)
    topic = messages.FetchResponse.FetchableTopicResponse(topic="orders", partitions=[partition])
    return messages.FetchResponse(responses=[topic, topic])


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_records_of_decoded_messages(exporter: str) -> None:
    raw = response().encode(VERSION)
    export = EXPORTERS[exporter](raw)
    decoded = messages.FetchResponse.decode(export.data, VERSION)
    assert decoded.encode(VERSION) == raw
    partition = decoded.responses[1].partitions[0]
    records = partition.records
    assert bytes(records) == RECORDS
    assert decoded.encode(VERSION) == raw
    del decoded, partition
    gc.collect()
    assert [r.value for r in kc.iter_records(records)] == [b"value"] * 3
    del records
    gc.collect()
    export.require_free()


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_records_that_are_encoded(exporter: str) -> None:
    export = EXPORTERS[exporter](RECORDS)
    fetched = response()
    fetched.responses[0].partitions[0].records = export.data
    assert fetched.encode(VERSION) == response().encode(VERSION)
    assert kc.encode([(export.data, export.data)]) == kc.encode([(RECORDS, RECORDS)])
    del fetched
    export.require_free()
