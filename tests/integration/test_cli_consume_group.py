"""What `consume --group` commits of partitions that it has read nothing of."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import DONE, run


@pytest.fixture
def server():
    with kc.broker.serve(topics={"t": 4}) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            for number in range(90):
                producer.send("t", b"%d" % number, partition=number % 3)
        yield broker.bootstrap_servers


def committed(server, group):
    with kc.client.Admin(server) as admin:
        return [offset.offset for _, offset in sorted(admin.list_group_offsets(group).items())]


@pytest.mark.parametrize("options", [[], ["--output"]], ids=["printed", "written"])
def test_partitions_that_are_not_read_have_a_lag_too(server, tmp_path, capsys, options):
    consume = ["consume", "t", "-b", server, "--group", "g", *options]
    consume += [str(tmp_path / "out.csv")] if options else []
    assert run([*consume, "-n", "20"]) == DONE
    offsets = committed(server, "g")
    assert (len(offsets), sum(offsets)) == (4, 20)
    capsys.readouterr()
    assert run(["lag", "-b", server, "-g", "g"]) == DONE
    assert "1 group, 4 partitions, lag 70" in capsys.readouterr().out
    assert run([*consume, "-e", *(["--force"] if options else [])]) == DONE
    assert committed(server, "g") == [30, 30, 30, 0]


def test_a_group_that_starts_at_the_end_has_its_place_there(server):
    assert run(["consume", "t", "-b", server, "--group", "g", "-o", "end", "-e"]) == DONE
    assert committed(server, "g") == [30, 30, 30, 0]
