"""Times of the command that contradict each other, or are none."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import DONE, WRONG_USAGE, run
from tests.patience import SOON

LOG = kc.sample().path


@pytest.fixture(scope="module")
def server():
    with kc.broker.serve(topics={"t": 1}) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"value").result(SOON)
        yield broker.bootstrap_servers


@pytest.mark.parametrize("command", [["dump"], ["convert", "-o", "none.csv"]])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--start-time", "now", "--end-time", "yesterday"], "--end-time is before --start-time"),
        (["--start-offset", "5", "--end-offset", "4"], "--end-offset is below --start-offset"),
    ],
)
def test_a_span_that_ends_before_it_starts(capsys, command, options, reason):
    assert run([*command, LOG, *options]) == WRONG_USAGE
    assert f"{reason}: no record is between them" in capsys.readouterr().err


def test_a_span_without_anything_in_it_is_none(capsys):
    for options in (["--start-offset", "5", "--end-offset", "5"], ["--start-time", "now", "--end-time", "now"]):
        assert run(["dump", LOG, "--format", "%o", *options]) == DONE
        assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--start-time", "now", "--end-time", "yesterday"], "--end-time is before --start-time"),
        (["-o", "s@now", "--end-time", "yesterday"], "--end-time is before --offset"),
        (["-o", "s@nonsense"], "--offset: the time after s@ is 'nonsense', which is neither milliseconds, "),
        (["-o", "s@"], "--offset: the time after s@ is '', which is neither milliseconds, "),
        (["-o", "s@-5"], "--offset: s@-5 is before 1970"),
        (["-o", "nonsense"], "--offset: 'nonsense' is none of beginning, end, stored, an offset, "),
        (["--start-time", "-5"], "-5 is before 1970"),
        (["--end-time", "-90000w"], "-90000w is before 1970"),
    ],
)
def test_times_that_brokers_cannot_look_up(capsys, server, options, reason):
    assert run(["consume", "t", "-b", server, "-e", *options]) == WRONG_USAGE
    out, err = capsys.readouterr()
    assert (out, reason in err) == ("", True), err


@pytest.mark.parametrize("options", [["--to-time", "-5"], ["--by-duration", "90000w"], ["--by-duration", "P90000D"]])
def test_times_that_no_offsets_are_reset_to(capsys, server, options):
    assert run(["admin", "groups", "reset-offsets", "g", "-b", server, "--topic", "t", *options]) == WRONG_USAGE
    assert "is before 1970" in capsys.readouterr().err


@pytest.mark.parametrize(("time", "warns"), [("1741564951", True), ("1741564951000", False), ("0", False)])
def test_seconds_that_are_taken_for_milliseconds(capsys, time, warns):
    assert run(["dump", LOG, "-n", "0", "--start-time", time]) == DONE
    warning = f"kafkacodec: warning: --start-time {time} is in 1970, in milliseconds; for seconds, add 000\n"
    assert capsys.readouterr().err == (warning if warns else "")
