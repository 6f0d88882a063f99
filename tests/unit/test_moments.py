"""Times as arguments."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import run
from kafkacodec.moments import milliseconds
from tests.corpus import ROOT

NOON = int(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000
LOG = ROOT / "logs" / "kraft-4.1.0" / "gzip-0"


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (NOON, NOON),
        (np.int64(7), 7),
        (str(NOON), NOON),
        ("-5", -5),
        (datetime(2026, 5, 1, 12), NOON),
        (datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
        (date(2026, 5, 1), NOON - DAY // 2),
        ("2026-05-01", NOON - DAY // 2),
        ("2026-05-01T12:00", NOON),
        ("2026-05-01 12:00:00.250", NOON + 250),
        ("2026-05-01T14:00+02:00", NOON),
        ("2026-05-01T12:00Z", NOON),
        ("now", NOON),
        ("today", NOON - DAY // 2),
        ("yesterday", NOON - 3 * DAY // 2),
        ("tomorrow", NOON + DAY // 2),
        ("-1h", NOON - 3_600_000),
        ("-1d12h", NOON - 3 * DAY // 2),
        ("+90s", NOON + 90_000),
        ("-2w", NOON - 14 * DAY),
        ("-5m", NOON - 300_000),
        ("-5ms", NOON - 5),
        (2**80, 2**63 - 1),
        ("-999999999999999999w", -(2**63) + 1),
    ],
)
def test_times(moment, expected):
    assert milliseconds(moment, now=NOON) == expected


@pytest.mark.parametrize("text", ["", "soon", "1h", "-", "-1y", "-1.5h", "2026-13-01", "9" * 30, "-1h later", "٣"])
def test_text_that_says_no_time(text):
    with pytest.raises(ValueError, match=r"^a start is .*, which is neither milliseconds, a date or time such as"):
        milliseconds(text, "a start")


@pytest.mark.parametrize("wrong", [True, 1.5, None, b"now"])
def test_what_is_no_time(wrong):
    with pytest.raises(TypeError, match="a time must be milliseconds, a datetime, a date or text, not"):
        milliseconds(wrong)


def test_relative_times_are_those_of_the_clock():
    before = datetime.now(UTC).timestamp() * 1000
    assert milliseconds("now") >= int(before)
    assert milliseconds("+1h") - milliseconds("now") <= 3_600_000 + 60_000


def test_logs_take_all_of_them():
    partition = kc.log.Partition(LOG)
    first = min(record.timestamp or 0 for chunk in partition.read() for record in chunk.records())
    text = datetime.fromtimestamp(first / 1000, UTC).isoformat()
    assert partition.offset_of_timestamp(text) == partition.offset_of_timestamp(first)
    assert partition.offset_of_timestamp("2000-01-01") == partition.start_offset() == 0
    assert sum(map(len, partition.read(start_timestamp=date(2100, 1, 1)))) == 0
    assert sum(map(len, partition.read(end_timestamp="2100-01-01"))) == sum(map(len, partition.read())) > 0


def test_clients_take_all_of_them():
    with kc.broker.serve(topics={"t": 1}) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            for time in (datetime(2026, 5, 1, 12), "2026-05-02T12:00", date(2026, 5, 4), NOON + 5 * DAY):
                producer.send("t", b"", timestamp=time).result()
        key = ("t", 0)
        with kc.client.Admin(broker.bootstrap_servers) as admin:
            for time, offset in (("2026-05-01", 0), (datetime(2026, 5, 1, 12), 0), ("2026-05-01T12:00:00.001", 1)):
                assert admin.list_offsets({key: time})[key].offset == offset
            with pytest.raises(ValueError, match=r"no offset or time is 'newest'; names of offsets are latest, "):
                admin.list_offsets({key: "newest"})
        with kc.client.Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
            consumer.assign([key])
            assert consumer.offsets_for_times({key: date(2026, 5, 3)})[key].offset == 2
            consumer.seek_to_timestamp("2026-05-06", key)
            assert next(iter(consumer)).timestamp == NOON + 5 * DAY


def test_the_command_takes_text(capsys):
    assert run(["dump", str(LOG), "--start-time", "tomorrow"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert run(["dump", str(LOG), "--start-time", "2000-01-01", "-n", "1", "--json"]) == 0
    assert '"offset":0,' in capsys.readouterr().out
    assert run(["dump", str(LOG), "--start-time", "soon"]) == 2
    assert "the time is 'soon', which is neither milliseconds" in capsys.readouterr().err


def test_records_are_encoded_with_times_of_any_kind() -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    expected = 1_777_636_800_000
    for given in (expected, noon, noon.replace(tzinfo=None), "2026-05-01T12:00", "2026-05-01T14:00+02:00"):
        assert kc.decode(kc.encode([(b"k", b"v")], default_timestamp=given)).records()[0].timestamp == expected
        record = kc.Record(0, given, 0, b"k", b"v", ())  # type: ignore[arg-type]
        assert kc.decode(kc.encode([record])).records()[0].timestamp == expected
    ago = kc.decode(kc.encode([(b"k", b"v")], default_timestamp="-1h")).records()[0].timestamp
    assert abs(time.time() * 1000 - 3_600_000 - ago) < 60_000
    with pytest.raises(ValueError, match="default_timestamp is 'soon'"):
        kc.encode([], default_timestamp="soon")
    with pytest.raises(kc.EncodeError, match="timestamp: it is 'soon'"):
        kc.encode([kc.Record(0, "soon", 0, b"k", b"v", ())])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="default_timestamp must be milliseconds, a datetime, a date or text"):
        kc.encode([], default_timestamp=1.5)  # type: ignore[arg-type]
