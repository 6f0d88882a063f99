"""Short runs of the fuzz targets that need Python, and whether they would tell."""

import random
from itertools import islice

import pytest

from kafkacodec import messages
from kafkacodec.protocol import Connection
from tests.fuzz import connection, messages as target


@pytest.mark.slow
def test_messages():
    rnd = random.Random(5)
    inputs = rnd.sample(list(target.seeds()), 4000)
    outcomes = {target.run(new) for new in islice(target.mutations(inputs, rnd), 6000)}
    assert sum(outcome.endswith(" read") for outcome in outcomes) > 200
    assert len(outcomes) > 1500


def test_fuzzing_keeps_what_is_new_and_keeps_the_last_input(tmp_path):
    inputs = list(islice(target.seeds(), 50))
    assert target.TARGET.fuzz(inputs, random.Random(5), tmp_path / "last", seconds=0.2)
    assert len(inputs) > 50
    target.run(target.parse((tmp_path / "last").read_text()))


def test_memory_beyond_the_limit_is_a_finding(monkeypatch):
    monkeypatch.setattr(target, "FIXED_BYTES", 0)
    monkeypatch.setattr(target, "BYTES_PER_BYTE", 1)
    # Three bytes of input for each item; the list is new, even where its items reuse the memory of dead ones.
    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="a")] * 5000)
    with pytest.raises(target.Finding, match="too much memory"):  # type: ignore[attr-defined]
        target.check_memory(target.Input("MetadataRequest", 0, request.encode(0)))


def test_a_message_that_changes_in_encoding_is_a_finding(monkeypatch):
    changed = messages.HeartbeatRequest(generation_id=7)
    monkeypatch.setattr(messages.HeartbeatRequest, "from_dict", lambda _: changed)
    with pytest.raises(target.Finding, match="other bytes"):  # type: ignore[attr-defined]
        target.run(target.Input("HeartbeatRequest", 0, messages.HeartbeatRequest().encode(0)))


@pytest.mark.slow
def test_connections():
    rnd = random.Random(5)
    inputs = list(connection.seeds())
    outcomes = {connection.run(new) for new in islice(connection.mutations(inputs, rnd), 3000)}
    assert sum(outcome.endswith("Received']") for outcome in outcomes) > 100
    assert len(outcomes) > 700
    assert all(connection.parse(str(new)) == new for new in islice(connection.mutations(inputs, rnd), 300))


def test_events_that_depend_on_the_pieces_are_a_finding(monkeypatch):
    broken = lambda self, data: [len(data)]  # noqa: E731
    monkeypatch.setattr(Connection, "receive", broken)
    with pytest.raises(connection.Finding, match="pieces tell"):  # type: ignore[attr-defined]
        connection.run(connection.Input(None, (b"ab", b"c")))


def test_a_failed_connection_that_goes_on_is_a_finding(monkeypatch):
    monkeypatch.setattr(Connection, "_note_failure", lambda self, reason: None)
    with pytest.raises(connection.Finding, match="a failed connection"):  # type: ignore[attr-defined]
        connection.run(connection.Input(None, (b"\0\0\0\0",)))
