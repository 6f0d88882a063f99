"""A short run of the fuzz target of messages, and whether it would tell."""

import random
from itertools import islice

import pytest

from kafkacodec import messages
from tests.fuzz import messages as target


def test_replay():
    rnd = random.Random(5)
    inputs = rnd.sample(list(target.seeds()), 4000)
    outcomes = {
        target.run(new, measured=i % 10 == 0) for i, new in enumerate(islice(target.mutations(inputs, rnd), 6000))
    }
    assert sum(outcome.endswith(" read") for outcome in outcomes) > 200
    assert len(outcomes) > 1500


def test_fuzzing_keeps_what_is_new_and_leaves_the_last_input_behind(tmp_path):
    inputs = list(islice(target.seeds(), 50))
    assert target.fuzz(inputs, random.Random(5), tmp_path / "last", seconds=0.2)
    assert len(inputs) > 50
    name, version, body = (tmp_path / "last").read_text().split(":")
    target.run(target.Input(name, int(version), bytes.fromhex(body)))


def test_memory_beyond_the_limit_is_a_finding(monkeypatch):
    monkeypatch.setattr(target, "FIXED_BYTES", 0)
    monkeypatch.setattr(target, "BYTES_PER_BYTE", 1)
    # More topics than dead objects are kept for reuse.
    request = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="a")] * 5000)
    with pytest.raises(target.Finding, match="bytes of memory"):
        target.run(target.Input("MetadataRequest", 12, request.encode(12)))


def test_a_message_that_changes_in_encoding_is_a_finding(monkeypatch):
    changed = messages.HeartbeatRequest(generation_id=7)
    monkeypatch.setattr(messages.HeartbeatRequest, "from_dict", lambda _: changed)
    with pytest.raises(target.Finding, match="other bytes"):
        target.run(target.Input("HeartbeatRequest", 0, messages.HeartbeatRequest().encode(0)))
