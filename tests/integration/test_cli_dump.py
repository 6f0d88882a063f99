"""``kafkacodec dump``: records as JSON and as a table."""

import json

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE
from tests.corpus import ROOT, read_committed, sample
from tests.integration.cli_samples import BROKER, SEGMENT, expected, from_json, is_binary
from tests.terminal import on_a_terminal


def test_dump_gives_every_record_as_json(kafkacodec):
    code, out, err = kafkacodec("dump", BROKER, "--topic", "mixed", "--json")
    assert (code, err) == (DONE, "")
    assert [from_json(line) for line in out.splitlines()] == [row[:6] for row in expected("mixed")]


def test_dump_limits_and_chooses(kafkacodec):
    _, out, _ = kafkacodec("dump", ROOT / SEGMENT, "--start-offset", 3, "--end-offset", 9, "--json")
    assert [json.loads(line)["offset"] for line in out.splitlines()] == list(range(3, 9))
    _, out, _ = kafkacodec("dump", ROOT / SEGMENT, "-n", 2)
    assert len(out.splitlines()) == 3
    _, out, _ = kafkacodec("dump", BROKER, "--topic", "partitions", "--partition", 1, "--json")
    assert {json.loads(line)["partition"] for line in out.splitlines()} == {1}


def test_dump_chooses_by_time(kafkacodec):
    rows = expected("none")
    middle = rows[len(rows) // 2].timestamp
    _, out, _ = kafkacodec("dump", BROKER / "none-0", "--start-time", middle, "--json")
    assert json.loads(out.splitlines()[0])["offset"] == next(r.offset for r in rows if r.timestamp >= middle)
    _, out, _ = kafkacodec("dump", BROKER / "none-0", "--end-time", "1999-01-01T00:00", "--json")
    assert out == ""
    code, _, err = kafkacodec("dump", BROKER / "none-0", "--end-time", "someday")
    assert (code, "'someday', which is neither" in err) == (WRONG_USAGE, True)


def test_dump_excludes_uncommitted_records(kafkacodec):
    item = next(c for c in read_committed() if c.directory == BROKER and c.topic == "txn-open")
    _, out, _ = kafkacodec("dump", BROKER / "txn-open-0", "--isolation-level", "read_committed", "--json")
    assert [json.loads(line)["offset"] for line in out.splitlines()] == item.offsets


def test_dump_includes_control_records_when_asked(kafkacodec):
    path = BROKER / "txn-0" / "00000000000000000000.log"
    _, without, _ = kafkacodec("dump", path, "--json")
    _, with_control, _ = kafkacodec("dump", path, "--json", "--control")
    records = sample(path.relative_to(ROOT).as_posix()).expected.records
    assert len(with_control.splitlines()) == len(records)
    assert len(without.splitlines()) == sum(not row.is_control for row in records)


def test_dump_prints_what_comes_before_a_fault(kafkacodec, damaged):
    code, out, err = kafkacodec("dump", damaged, "--json")
    good = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)["baseOffset"]
    assert code == BAD_INPUT
    assert [json.loads(line)["offset"] for line in out.splitlines()] == list(range(good))
    assert err.count("\n") == 1
    assert "CRC-32C" in err


def test_dump_skips_a_fault_with_a_warning(kafkacodec, damaged):
    bad = next(b for b in sample(SEGMENT).expected.batches if b["position"] > 2000)
    code, out, err = kafkacodec("dump", damaged, "--json", "--on-error", "skip")
    lost = {row.offset for row in sample(SEGMENT).expected.records if row.batch == bad["index"]}
    assert code == DONE
    assert [json.loads(line)["offset"] for line in out.splitlines()] == [
        row.offset for row in sample(SEGMENT).expected.records if row.offset not in lost
    ]
    assert err.startswith(f"kafkacodec: warning: {damaged}: {bad['sizeInBytes']:,} bytes skipped: ")


def test_dump_shows_text_or_hex(kafkacodec):
    _, out, _ = kafkacodec("dump", ROOT / SEGMENT, "--full")
    rows = [row for row in sample(SEGMENT).expected.records if not row.is_control]
    lines = out.splitlines()[1:]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert line.split()[0] == str(row.offset)
        assert ("0x" in line) == any(map(is_binary, [row.key, row.value, *(value for _, value in row.headers)]))
        if is_binary(row.value):
            assert "0x" + row.value.hex() in line


@pytest.mark.parametrize("option", ["--full", "--wide"])
def test_long_cells_are_cut_unless_all_is_asked_for(kafkacodec, tmp_path, option):
    value = "ü" * 200 + "end"
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(kc.encode([(None, value), (None, "東" * 60), (None, "short")]))
    _, out, _ = kafkacodec("dump", tmp_path)
    first, second, third = (line.split("null", 1)[1].strip() for line in out.splitlines()[1:])
    assert (first, third) == ("ü" * 99 + "…", "short")
    assert second.rstrip(" …") == "東" * 49  # a character of two cells that would be cut in half is left out
    _, out, _ = kafkacodec("dump", tmp_path, option)
    assert value in out
    code, shown = on_a_terminal("dump", tmp_path, option)
    assert (code, value in shown) == (DONE, True)
    _, shown = on_a_terminal("dump", tmp_path)
    assert all(len(line) <= 80 for line in shown.replace("\r\n", "\n").split("\n"))


def test_text_that_looks_like_null_or_hex_is_quoted(kafkacodec, tmp_path):
    rows = [(b"null", None), (None, b"null"), (b"0x00ff", b"\x00\xff"), (b"0x", b"0xAB"), (b"nulls", b'"null"')]
    headers = (("a", b"null"), ("b", None))
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(kc.encode([kc.Record(n, 0, 0, *row, headers) for n, row in enumerate(rows)]))
    code, out, _ = kafkacodec("dump", path, "--columns", "key,value,headers")
    assert (code, [line.split()[:2] for line in out.splitlines()[1:]]) == (
        DONE,
        [['"null"', "null"], ["null", '"null"'], ['"0x00ff"', "0x00ff"], ["0x", "0xAB"], ["nulls", '"null"']],
    )
    assert out.count('a="null" b=null') == len(rows)
