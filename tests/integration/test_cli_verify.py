"""``kafkacodec verify`` and ``kafkacodec recover``."""

import json

import pytest

from kafkacodec.cli.__main__ import BAD_INPUT, DONE
from tests.corpus import sample, segments
from tests.integration.cli_samples import BROKER, SEGMENT


def test_verify_finds_a_broker_s_directory_intact(kafkacodec):
    code, out, err = kafkacodec("verify", BROKER, "--topic", "txn*", "--json", "--strict")
    assert (code, err) == (DONE, "")
    reports = [json.loads(line) for line in out.splitlines()]
    assert [(r["topic"], r["ok"], r["clean"], r["damaged_bytes"]) for r in reports] == [
        (topic, True, True, 0) for topic in ("txn", "txn-codecs", "txn-open")
    ]
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == "txn-0"]
    assert reports[0]["num_records"] == sum(len(s.expected.records) for s in samples)


@pytest.mark.parametrize("command", ["verify", "scan", "topics"])
def test_commands_agree_on_what_a_record_is(kafkacodec, command):
    """A transaction marker is none."""
    samples = [s for s in segments(writer="kraft-4.1.0") if s.path.parent.name == "txn-0"]
    count = sum(not record.is_control for s in samples for record in s.expected.records)
    assert count < sum(len(s.expected.records) for s in samples)
    code, out, _ = kafkacodec(command, BROKER / "txn-0")
    assert code == DONE
    assert f", {count:,} records, " in out.splitlines()[-1]


def test_verify_names_the_damage(kafkacodec, damaged):
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    code, out, err = kafkacodec("verify", damaged)
    assert code == BAD_INPUT
    assert "DAMAGED" in out
    assert f"error: {damaged} at byte {bad['position']}, {bad['sizeInBytes']} bytes" in out
    assert err == "kafkacodec: error: 1 of 1 partition failed verification\n"


def test_verify_fails_for_warnings_only_when_strict(kafkacodec, tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(sample(SEGMENT).data()[:-5])
    assert kafkacodec("verify", path)[0] == DONE
    assert kafkacodec("verify", path, "--strict")[0] == BAD_INPUT


def test_recover_keeps_what_is_intact(kafkacodec, tmp_path, damaged):
    source, saved = tmp_path / "broker", tmp_path / "saved"
    (source / "none-0").mkdir(parents=True)
    damaged.rename(source / "none-0" / damaged.name)
    code, out, err = kafkacodec("recover", source, saved, "--json")
    assert code == BAD_INPUT  # something was lost
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    kept = [row.offset for row in sample(SEGMENT).expected.records if row.batch != bad["index"]]
    _, out, _ = kafkacodec("dump", saved, "--json")
    assert [json.loads(line)["offset"] for line in out.splitlines()] == kept
    assert kafkacodec("verify", saved)[0] == DONE
    code, _, err = kafkacodec("recover", source, saved)
    assert code != DONE
    assert "Traceback" not in err
