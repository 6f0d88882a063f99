"""``kafkacodec admin``: what it changes is what the clients then see, and what it prints."""

from __future__ import annotations

import json
import time

import pytest

import kafkacodec as kc
from kafkacodec.cli.__main__ import BAD_INPUT, DONE, WRONG_USAGE, run
from tests.patience import eventually

LONG_AGO = 3_600_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A broker with an authorizer, and a transaction in hung-0 that no coordinator knows."""
    data = tmp_path_factory.mktemp("data")
    config = {"super.users": "User:ANONYMOUS"}
    with kc.broker.serve(data, topics={"orders": 2, "returns": 1, "hung": 1}, config=config):
        pass
    now = int(time.time() * 1000)
    batch = kc.encode(
        [(0, now - LONG_AGO, 0, None, b"value", [])],
        producer_id=4242, producer_epoch=3, base_sequence=0, is_transactional=True,
    )  # fmt: skip
    (data / "hung-0" / f"{0:020}.log").write_bytes(batch)
    with kc.broker.serve(data, config=config, authorizer=True) as broker:
        with kc.client.Producer(broker.bootstrap_servers) as producer:
            for number in range(10):
                sent = producer.send("orders", b"", partition=number % 2, timestamp=now - (10 - number) * 60_000)
            sent.result()
        yield broker.bootstrap_servers


@pytest.fixture
def admin(server):
    with kc.client.Admin(server) as made:
        yield made


@pytest.fixture
def command(capsys, server):
    def call(line, *more):
        code = run(["admin", *line.split(), *map(str, more), "-b", server])
        found = capsys.readouterr()
        return code, found.out.splitlines(), found.err

    return call


def test_topics(command, admin):
    making = "topics create a b --partitions 2 --replicas 1 --set retention.ms=9000"
    assert command(f"{making} --dry-run")[:2] == (DONE, [f"{n}: would be created, 2 partitions" for n in "ab"])
    assert not {"a", "b"} & set(admin.list_topics())
    assert command(making)[:2] == (DONE, ["a: created, 2 partitions", "b: created, 2 partitions"])
    code, _, err = command("topics create a")
    assert (code, "TOPIC_ALREADY_EXISTS" in err) == (BAD_INPUT, True)
    assert command("topics create a --if-not-exists")[:2] == (DONE, ["a: left as it is"])
    command("topics alter a --partitions 3 --set segment.bytes=2000000 --delete retention.ms --dry-run")
    assert admin.list_topics()["a"].num_partitions == 2
    code, out, _ = command("topics alter a --partitions 3 --set segment.bytes=2000000 --delete retention.ms")
    assert (code, out[0]) == (DONE, "a: given 3 partitions")
    code, out, _ = command("topics describe a --json")
    rows = [json.loads(line) for line in out]
    assert [row["partition"] for row in rows[:3]] == [0, 1, 2]
    assert rows[3:] == [{"topic": "a", "config": "segment.bytes", "value": "2000000"}]
    assert command("topics delete a b --dry-run")[1] == ["a: would be deleted", "b: would be deleted"]
    assert command("topics delete a b")[:2] == (DONE, ["a: deleted", "b: deleted"])
    assert command("topics delete a --if-exists")[:2] == (DONE, [])
    code, _, err = command("topics delete retruns")
    assert (code, "did you mean 'returns'?" in err) == (BAD_INPUT, True)


def test_what_was_done_is_printed_before_the_errors_of_the_rest(command, admin):
    def partly(line):
        code, out, err = command(line)
        assert (code, err.count("kafkacodec: error: ")) == (BAD_INPUT, 1)
        return out

    assert partly("topics create orders half --partitions 2") == ["half: created, 2 partitions"]
    assert partly("topics alter none half --partitions 3") == ["half: given 3 partitions"]
    assert partly("topics alter half --partitions 4 --set no.such=1") == ["half: given 4 partitions"]
    assert partly("topics alter none half --set retention.ms=1") == ["half: set to retention.ms=1"]
    assert partly("topics delete none half --dry-run") == ["half: would be deleted"]
    admin.alter_group_offsets("partly", {("half", 0): 0})
    assert partly("groups delete none partly") == ["partly: deleted"]
    assert partly("topics delete none half") == ["half: deleted"]
    assert "half" not in admin.list_topics()


def test_configs(command):
    assert command("configs alter topic returns --append cleanup.policy=compact")[:2] == (
        DONE,
        ["topic returns: given also cleanup.policy=compact"],
    )
    assert command("configs alter topic returns --set retention.ms=77")[:2] == (
        DONE,
        ["topic returns: set to retention.ms=77"],
    )
    names = {row["name"] for row in map(json.loads, command("configs describe topic returns --json")[1])}
    assert "retention.ms" in names
    assert len(command("configs describe topic returns --all")[1]) > len(names) + 1
    assert command("configs alter topic returns --delete retention.ms")[0] == DONE
    code, _, err = command("configs alter topic returns --set retention.ms=soon --dry-run")
    assert (code, "INVALID_CONFIG" in err) == (BAD_INPUT, True)
    assert command("configs alter topic returns")[0] == WRONG_USAGE


def committed(admin, group="readers"):
    return {tuple(key): found.offset for key, found in admin.list_group_offsets(group).items()}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("--to-earliest", [0, 0]),
        ("--to-latest", [5, 5]),
        ("--to-offset 2", [2, 2]),
        ("--to-offset 99", [5, 5]),
        ("--shift-by -1", [2, 2]),
        ("--shift-by -100", [0, 0]),
        ("--to-time yesterday", [0, 0]),
        ("--to-time tomorrow", [5, 5]),
        ("--by-duration 30m", [0, 0]),
        ("--by-duration PT30M", [0, 0]),
    ],
)
def test_offsets_are_reset(command, admin, how, expected):
    admin.alter_group_offsets("readers", {("orders", 0): 3, ("orders", 1): 3})
    code, out, _ = command(f"groups reset-offsets readers {how} --json --dry-run")
    assert (code, committed(admin)) == (DONE, {("orders", 0): 3, ("orders", 1): 3})
    assert [json.loads(line) for line in out] == [
        {"topic": "orders", "partition": number, "from": 3, "to": offset} for number, offset in enumerate(expected)
    ]
    assert command(f"groups reset-offsets readers {how}")[0] == DONE
    assert list(committed(admin).values()) == expected


def test_offsets_from_files_and_of_some_partitions(command, admin, tmp_path):
    plain, titled = tmp_path / "plain.csv", tmp_path / "titled.csv"
    plain.write_text("orders,0,4\norders,1,1\n")
    titled.write_text('group,topic,partition,offset\nfresh,"orders",1,2\nother,orders,0,3\n')
    assert command("groups reset-offsets fresh --from-file", plain)[0] == DONE
    assert committed(admin, "fresh") == {("orders", 0): 4, ("orders", 1): 1}
    assert command("groups reset-offsets fresh --from-file", titled)[0] == DONE
    assert committed(admin, "fresh") == {("orders", 0): 4, ("orders", 1): 2}
    assert command("groups reset-offsets fresh --topic orders:1 --to-earliest")[0] == DONE
    assert committed(admin, "fresh") == {("orders", 0): 4, ("orders", 1): 0}
    plain.write_text("orders,zero,4\n")
    code, _, err = command("groups reset-offsets fresh --from-file", plain)
    assert (code, "row 1 has no topic, partition and offset" in err) == (BAD_INPUT, True)
    code, _, err = command("groups reset-offsets freshh --to-latest")
    assert (code, "did you mean 'fresh'?" in err) == (BAD_INPUT, True)
    assert command("groups reset-offsets fresh")[0] == WRONG_USAGE
    assert command("groups reset-offsets fresh --to-latest --to-earliest")[0] == WRONG_USAGE
    assert "fresh" in command("groups list")[1]
    assert command("groups delete fresh --dry-run")[:2] == (DONE, ["fresh: would be deleted"])
    assert command("groups delete fresh")[:2] == (DONE, ["fresh: deleted"])
    assert "fresh" not in command("groups list")[1]


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ("--topic orders:9", "orders: no partition 9; it has 2 partitions, from 0 on"),
        ("--topic orders:0,9,7", "orders: no partition 7, 9; it has 2 partitions, from 0 on"),
        ("--topic orders:0 --topic returns:1", "returns: no partition 1; it has 1 partition, from 0 on"),
        ("--topic orders:", "--topic orders:: not numbers of partitions"),
        ("--topic orders:-1", "--topic orders:-1: not numbers of partitions"),
        ("--topic ordres", "did you mean 'orders'?"),
    ],
)
@pytest.mark.parametrize("more", ["", "--dry-run"])
def test_partitions_that_are_not_there_change_no_offset(command, admin, named, error, more):
    before = {("orders", 0): 3, ("orders", 1): 3, ("returns", 0): 0}
    admin.alter_group_offsets("careful", before)
    code, out, err = command(f"groups reset-offsets careful {named} --to-latest {more}")
    assert (code != DONE, out, error in err) == (True, [], True), err
    assert committed(admin, "careful") == before


def test_topics_of_a_reset_add_up(command, admin):
    admin.alter_group_offsets("several", {("orders", 0): 3, ("orders", 1): 3, ("returns", 0): 0})
    assert command("groups reset-offsets several --topic orders:1 --topic orders:0 --to-offset 1")[0] == DONE
    assert committed(admin, "several") == {("orders", 0): 1, ("orders", 1): 1, ("returns", 0): 0}
    assert command("groups reset-offsets several --topic orders:1 --topic orders --to-offset 2")[0] == DONE
    assert committed(admin, "several") == {("orders", 0): 2, ("orders", 1): 2, ("returns", 0): 0}


def test_topics_lists_no_other_partitions_than_those_that_are_named(capsys, server):
    assert run(["topics", "-b", server, "--topic", "orders", "--partition", "1", "--partition", "9"]) == BAD_INPUT
    assert capsys.readouterr() == ("", "kafkacodec: error: no partition 9\n")


def test_a_file_and_topics_exclude_each_other(command, tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text("orders,0,4\n")
    code, _, err = command("groups reset-offsets readers --topic orders:1 --from-file", file)
    assert (code, "--topic does not apply" in err) == (WRONG_USAGE, True)


def test_a_group_with_members_keeps_its_offsets(command, server):
    with kc.client.Consumer("orders", bootstrap_servers=server, group_id="busy") as consumer:
        eventually(lambda: consumer.getmany(0.1) or consumer.assignment())
        code, _, err = command("groups reset-offsets busy --topic orders --to-earliest")
    assert (code, err.startswith("kafkacodec: error: ")) == (BAD_INPUT, True)
    assert "UNKNOWN_MEMBER_ID: the group has members; stop its consumers first" in err


def test_acls(command):
    adding = "acls add --resource topic --name ord --pattern prefixed --principal User:alice"
    rules = [f"allow User:alice {operation} on topic ord (prefix): added" for operation in ("read", "write")]
    assert command(f"{adding} --operation read --operation write")[:2] == (DONE, rules)
    command("acls add --resource cluster --principal User:bob --operation alter --deny --host 10.0.0.1")
    assert len(command("acls list --json")[1]) == 3
    (row,) = command("acls list --principal User:bob --json")[1]
    assert json.loads(row) == {
        "resource": "cluster", "name": "kafka-cluster", "pattern": "literal", "principal": "User:bob",
        "host": "10.0.0.1", "operation": "alter", "permission": "deny",
    }  # fmt: skip
    assert len(command("acls list --resource topic --name orders --pattern match --json")[1]) == 2
    _, out, _ = command("acls remove --principal User:alice --operation write --dry-run")
    assert out == ["allow User:alice write on topic ord (prefix): would be removed"]
    assert len(command("acls remove --principal User:alice")[1]) == 2
    assert command("acls remove --principal User:alice")[0] == BAD_INPUT
    assert command("acls remove")[0] == WRONG_USAGE
    assert command("acls add --resource topic --principal User:bob --operation read")[0] == WRONG_USAGE


def test_quotas(command, admin):
    command("quotas alter --user alice --set producer_byte_rate=1024 --dry-run")
    assert admin.describe_client_quotas() == {}
    code, out, _ = command("quotas alter --user alice --client-id app --set producer_byte_rate=1024")
    assert (code, out) == (DONE, ["user alice, client-id app: given producer_byte_rate=1024"])
    assert command("quotas alter --set request_percentage=50 --user", "")[0] == DONE
    rows = [json.loads(line) for line in command("quotas list --json")[1]]
    assert {row["entity"] for row in rows} == {"client-id app, user alice", "user <default>"}
    assert command("quotas alter --user alice --client-id app --delete producer_byte_rate")[0] == DONE
    assert [json.loads(line)["value"] for line in command("quotas list --json")[1]] == [50.0]
    assert command("quotas alter --user alice --set producer_byte_rate=much")[0] == WRONG_USAGE
    assert command("quotas alter --set producer_byte_rate=1")[0] == WRONG_USAGE


def test_transactions(command, server, admin):
    with kc.client.Producer(server, transactional_id="payments") as producer:
        producer.begin_transaction()
        producer.send("returns", b"", key=b"key").result()
        assert json.loads(command("transactions list --state Ongoing --json")[1][0])["transactional_id"] == "payments"
        (row,) = command("transactions describe payments --json")[1]
        assert json.loads(row)["partitions_of_it"] == ["returns-0"]
        (row,) = command("transactions hanging --minutes 0 --json")[1]
        (known,) = admin.describe_producers([("returns", 0)])[("returns", 0)]
        start = known.transaction_start_offset
        code, _, err = command("transactions abort --topic returns --partition 0 --start-offset", start)
        assert (code, "its coordinator still knows the transaction" in err) == (BAD_INPUT, True)
        producer.abort_transaction()
    found = json.loads(row)
    assert [found[name] for name in ("topic", "partition", "producer_id", "epoch", "start")] == ["hung", 0, 4242, 3, 0]
    code, _, err = command("transactions abort --topic hung --partition 0 --start-offset 7")
    assert (code, "no transaction is open at offset 7; open at: 0" in err) == (BAD_INPUT, True)
    aborting = "transactions abort --topic hung --partition 0 --start-offset 0"
    assert command(f"{aborting} --dry-run")[1] == ["hung-0: transaction of producer 4242 from 0 on: would be aborted"]
    assert command(aborting)[:2] == (DONE, ["hung-0: transaction of producer 4242 from 0 on: aborted"])
    assert command("transactions hanging --minutes 0 --json")[1] == []
    key = ("hung", 0)
    assert admin.list_offsets({key: "latest"}, isolation_level="read_committed")[key].offset == 2
    assert command("transactions list --state Silly")[0] == WRONG_USAGE
    code, _, err = command("transactions hanging --topic hnug")
    assert (code, "no topic 'hnug'" in err) == (BAD_INPUT, True)
