"""Commands over logs whose gaps or torn ends are known, and what they advise at faults."""

from __future__ import annotations

import io
import sys

import pytest

import kafkacodec as kc


@pytest.fixture
def recovered(tmp_path):
    kc.sample(tmp_path / "damaged", damaged=True)
    kc.log.recover(tmp_path / "damaged", tmp_path / "saved")
    return tmp_path / "saved"


def test_a_recovered_log_is_intact_if_its_gaps_are_accepted(recovered, kafkacodec):
    for command in ("verify", "topics"):
        assert kafkacodec(command, recovered)[0] == 1
        code, out, err = kafkacodec(command, recovered, "--gaps", "accept")
        assert (command, code, err, "damaged" in out.lower()) == (command, 0, "", False)
    assert "note: " in kafkacodec("verify", recovered, "--gaps", "accept")[1]  # they are still told
    (recovered / "orders-2" / "00000000000000000000.log").write_bytes(b"\x01" * 100)
    for command in ("verify", "topics"):
        assert kafkacodec(command, recovered, "--gaps", "accept")[0] == 1


def test_a_checksum(tmp_path, kafkacodec):
    kc.sample(tmp_path / "logs", damaged=True)
    for command in (("dump",), ("convert", "-o", tmp_path / "out.parquet")):
        code, _, err = kafkacodec(command[0], tmp_path / "logs", "--topic", "orders", *command[1:])
        assert (code, "CRC-32C" in err, err.endswith("; --on-error skip reads what follows\n")) == (1, True, True)


@pytest.mark.parametrize(
    ("cut", "warning"),
    [
        (lambda data: data[:-7], "standard input: the last 65 bytes, of a partial batch, are not read"),
        (lambda data: b"", "standard input is empty"),
        (lambda data: data, ""),
        (lambda data: data + bytes(4096), ""),  # preallocated
    ],
)
def test_standard_input_that_ended_early(tmp_path, kafkacodec, monkeypatch, cut, warning):
    data = b"".join(kc.encode([kc.Record(n, 0, 0, None, b"1234", [])], first_offset=n, last_offset=n) for n in range(2))
    assert len(data) == 2 * (61 + 11)  # a header, and a record with its length
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(cut(data))))
    code, _, err = kafkacodec("convert", "-", "-o", tmp_path / "out.parquet")
    assert (code, f"warning: {warning}" in err if warning else "warning" not in err) == (0, True)
