"""The commands that talk to brokers: produce, consume, and topics, groups, lag and offsets with --bootstrap."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from kafkacodec.client import Admin, Consumer, GroupOffset, NewTopic, Producer
from tests.integration.kafka_jvm import Broker
from tests.patience import SOON
from tests.terminal import on_a_terminal
from tests.unit.test_cli_completion import completions

pytestmark = [pytest.mark.java, pytest.mark.slow]

SCRIPT = [sys.executable, "-m", "kafkacodec.cli"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    made = Broker(tmp_path_factory.mktemp("broker"), "newest")
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def server(broker):
    return broker.server


@pytest.fixture(scope="module")
def admin(server):
    with Admin(server) as made:
        yield made


@pytest.fixture
def topic(request, admin):
    """A topic of the test's own, with two partitions."""
    name = request.node.name.replace("[", "-").replace("]", "")
    admin.create_topics(NewTopic(name, 2, 1))
    while name not in admin.list_topics():
        time.sleep(0.02)
    return name


@pytest.fixture
def command(capsys, monkeypatch, server):
    """Run the command with the broker and standard input; gives exit code, standard output and standard error."""
    from kafkacodec.cli.__main__ import run

    def call(*arguments, stdin=b"", brokers=server):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run([*map(str, arguments), *(["-b", brokers] if brokers else [])])
        return code, *capsys.readouterr()

    return call


def consumed(command, *arguments):
    """The records that `consume --json` prints, in order of partition and offset."""
    code, out, err = command("consume", *arguments, "-e", "--json")
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def fill(server, topic, counts=(4, 3)):
    """Records ``0-0``, ``0-1``, ... with times from 1000 on in each partition."""
    with Producer(server) as producer:
        for partition, count in enumerate(counts):
            for n in range(count):
                value = f"{partition}-{n}".encode()
                producer.send(topic, value, key=b"k%d" % n, partition=partition, timestamp=1000 + 10 * n)


@pytest.mark.parametrize("to_end", [True, False])
def test_progress_where_records_go_to_a_file(server, topic, tmp_path, to_end):
    fill(server, topic, (3000, 1500))
    file = tmp_path / "records"
    arguments = ["consume", topic, "-b", server, "--json", *(["-e"] if to_end else ["-n", 4500])]
    with file.open("wb") as output:
        code, shown = on_a_terminal(*arguments, columns=100, kind="xterm-256color", output=output)
    assert (code, len(file.read_bytes().splitlines())) == (0, 4500)
    assert "4,500 of 4,500 records" in shown
    assert "consume" not in on_a_terminal(*arguments, "-n", 5, kind="xterm-256color")[1]


def test_lines_as_kcat_reads_them(command, topic):
    lines = b"a:1\nb:x:2\nno key\n:\n\nlast"
    code, out, err = command("produce", topic, "-K", ":", "-Z", "-H", "from=test", "-p", 1, stdin=lines)
    assert (code, out, err) == (0, "", f"{topic}: 6 records\n")
    found = consumed(command, topic)
    assert [(row["key"], row["value"]) for row in found] == [
        ("a", "1"), ("b", "x:2"), (None, "no key"), (None, None), (None, None), (None, "last"),
    ]  # fmt: skip
    assert {row["partition"] for row in found} == {1}
    assert found[0]["headers"] == [{"key": "from", "value": "test"}]


def test_a_line_that_is_too_large_has_its_number(command, topic):
    lines = b"small\n" * 2500 + b"x" * 2_000_000 + b"\nlast\n"
    code, _, err = command("produce", topic, "-p", 1, stdin=lines)
    assert code == 1
    assert f"{topic}: record 2501: a record exceeds its maximum size: it takes 20000" in err
    assert err.startswith(f"{topic}: 2,500 records went out\n")
    assert len(consumed(command, topic)) == 2500


def test_other_delimiters_and_a_key_for_all(command, topic):
    assert (
        command("produce", topic, "-k", "all", "-D", "||", "-p", 0, stdin=b"one||two\nlines||" + b"x" * 70_000)[0] == 0
    )
    found = consumed(command, topic)
    assert [(row["key"], row["value"][:10]) for row in found] == [
        ("all", "one"),
        ("all", "two\nlines"),
        ("all", "x" * 10),
    ]
    assert len(found[2]["value"]) == 70_000


def test_files_of_rows(command, topic, tmp_path):
    table = pa.table(
        {"key": [b"a", None], "value": [b"\xff\x00", b"two"], "timestamp": pa.array([5, 6], pa.timestamp("ms", "UTC"))}
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "more.jsonl").write_text('{"key":"b","value":"three"}\n')
    files = [tmp_path / "rows.parquet", tmp_path / "more.jsonl"]
    assert command("produce", topic, *files, "-z", "zstd", "-p", 1)[::2] == (0, f"{topic}: 3 records\n")
    found = consumed(command, topic)
    assert [(row["key"], row["value"]) for row in found] == [("a", {"base64": "/wA="}), (None, "two"), ("b", "three")]
    assert [row["timestamp"] for row in found[:2]] == [5, 6]


def test_where_to_start_and_to_stop(command, topic, server):
    fill(server, topic)

    def values(*arguments):
        return [row["value"] for row in consumed(command, topic, *arguments)]

    assert values() == ["0-0", "0-1", "0-2", "0-3", "1-0", "1-1", "1-2"]
    assert values("-p", 1, "-o", 1) == ["1-1", "1-2"]
    assert values("-o", "-2") == ["0-2", "0-3", "1-1", "1-2"]
    assert values("-o", "end") == []
    assert values("-o", "s@1020") == values("--from-time", "1970-01-01T00:00:01.020+00:00") == ["0-2", "0-3", "1-2"]
    assert values("--end-time", 1010) == ["0-0", "1-0"]
    assert values("--key", "k2") == ["0-2", "1-2"]
    assert values("-p", 0, "-n", 2) == ["0-0", "0-1"]
    assert values("-n", 0) == []
    code, out, _ = command("consume", topic, "-e", "-p", 0, "-f", "%t/%p/%o/%k=%s;")
    assert (code, out) == (0, "".join(f"{topic}/0/{n}/k{n}=0-{n};" for n in range(4)))
    code, out, _ = command("consume", topic, "-e", "-p", 0, "-n", 1)
    assert out.splitlines()[0].split()[:2] == ["partition", "offset"]
    assert out.splitlines()[1].split()[:2] == [f"{topic}-0", "0"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "jsonl", "csv"])
def test_records_to_a_file(command, topic, server, tmp_path, suffix):
    fill(server, topic)
    path = tmp_path / f"records.{suffix}"
    code, out, err = command("consume", topic, "-p", 1, "-e", "-o", 1, "--output", path)
    assert (code, out, err) == (0, "", f"{path}: 2 records\n")
    found = read_file(path)
    assert found.column_names[:3] == ["topic", "partition", "offset"]
    values = [value if isinstance(value, str) else value.decode() for value in found["value"].to_pylist()]
    assert (values, found["offset"].to_pylist()) == (["1-1", "1-2"], [1, 2])
    assert set(found["topic"].to_pylist()) == {topic}


def read_file(path):
    """The table of a file, by Arrow's readers."""
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix == ".arrow":
        return pa.ipc.open_file(path).read_all()
    return pa.json.read_json(path) if path.suffix == ".jsonl" else pa.csv.read_csv(path)


def test_which_records_go_to_a_file(command, topic, server, tmp_path):
    fill(server, topic)

    def values(*arguments):
        path = tmp_path / "records.parquet"
        assert command("consume", topic, *arguments, "--output", path, "--force")[0] == 0
        return sorted(value.decode() for value in pq.read_table(path)["value"].to_pylist())

    assert values("-e") == ["0-0", "0-1", "0-2", "0-3", "1-0", "1-1", "1-2"]
    assert values("-e", "--end-time", 1010) == ["0-0", "1-0"]
    assert values("-e", "--key", "k2") == ["0-2", "1-2"]
    assert values("-e", "--key", "absent", "--end-time", 1010) == []
    assert values("-p", 0, "-n", 2) == ["0-0", "0-1"]
    assert values("-n", 0) == []


def test_a_group_commits_when_its_file_is_complete(command, topic, server, admin, tmp_path):
    fill(server, topic)
    group, path = f"group-{topic}", tmp_path / "records.parquet"
    missing = tmp_path / "nowhere" / "records.parquet"
    assert command("consume", topic, "-G", group, "-e", "--output", missing)[0] == 1
    assert admin.list_group_offsets(group) == {}
    assert command("consume", topic, "-G", group, "-n", 2, "--output", path)[::2] == (0, f"{path}: 2 records\n")
    assert sum(offset.offset for offset in admin.list_group_offsets(group).values()) == 2
    assert command("consume", topic, "-G", group, "-e", "--output", path)[0] == 2  # it exists
    assert command("consume", topic, "-G", group, "-e", "--output", path, "--force")[0] == 0
    assert pq.read_metadata(path).num_rows == 5
    assert {key.partition: offset.offset for key, offset in admin.list_group_offsets(group).items()} == {0: 4, 1: 3}


def test_transactions(command, topic, server):
    with Producer(server, transactional_id="cli") as producer:
        producer.init_transactions()
        for value, end in ((b"committed", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(topic, value, partition=0).result(SOON)
            end()
    committed = consumed(command, topic, "--isolation-level", "read_committed")
    assert [row["value"] for row in committed] == ["committed"]
    assert [row["value"] for row in consumed(command, topic)] == ["committed", "aborted"]


def test_a_group_goes_on_after_what_was_printed(command, topic, server, admin):
    fill(server, topic)
    group = f"group-{topic}"
    first = consumed(command, topic, "-G", group, "-n", 2)
    assert len(first) == 2
    assert sum(offset.offset for offset in admin.list_group_offsets(group).values()) == 2
    rest = consumed(command, topic, "-G", group)
    assert sorted(row["value"] for row in first + rest) == ["0-0", "0-1", "0-2", "0-3", "1-0", "1-1", "1-2"]
    assert consumed(command, topic, "-G", group) == []
    assert {key.partition: offset.offset for key, offset in admin.list_group_offsets(group).items()} == {0: 4, 1: 3}


def test_a_pattern_of_topics(command, topic, server):
    fill(server, topic)
    found = consumed(command, f"^{topic[:-1]}.", "-G", "of-a-pattern", "-X", "session.timeout.ms=10000")
    assert len(found) == 7
    assert len(consumed(command, f"^{topic[:-2]}", topic, "-G", "of-its-beginning")) == 7
    latest = consumed(command, topic, "-G", "from-the-end", "-X", "auto.offset.reset=latest")
    assert latest == consumed(command, topic, "-G", "also-from-the-end", "-o", "end") == []


def test_an_offset_after_the_end(command, topic, server):
    fill(server, topic)
    code, out, err = command("consume", topic, "-o", 4, "-e", "-f", r"%s\n")
    assert (code, out) == (0, "")
    assert err == f"{topic}-1: offset 4 is after the end, starting at 3\n"


@pytest.mark.parametrize("options", ["", "-G group-of-none", "--json", "-f %s"], ids=["table", "group", "json", "form"])
def test_standard_output_that_is_closed(topic, server, admin, options):
    fill(server, topic)
    line = f"{sys.executable} -m kafkacodec.cli consume {topic} -b {server} -e {options} >&-"
    finished = subprocess.run(["sh", "-c", line], capture_output=True)
    assert (finished.returncode, finished.stderr) == (1, b"kafkacodec: error: standard output is closed\n")
    assert {committed.offset for committed in admin.list_group_offsets("group-of-none").values()} <= {0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_command_leaves_neither_a_member_nor_a_file(topic, server, admin, tmp_path, number):
    fill(server, topic)
    group, file = f"ended-{topic}", tmp_path / "x.jsonl"
    member = [*SCRIPT, "consume", topic, "-b", server, "-G", group, "--json"]
    writer = [*SCRIPT, "consume", topic, "-b", server, "-n", "1000", "--output", str(file)]
    with (
        subprocess.Popen(member, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first,
        subprocess.Popen(writer, stderr=subprocess.PIPE) as second,
    ):
        for _ in range(7):
            assert first.stdout.readline()
        while not list(tmp_path.iterdir()):
            time.sleep(0.02)
        for process in (first, second):
            process.send_signal(number)
        for process in (first, second):
            _, err = process.communicate(timeout=60)
            assert (process.returncode, err.strip()) == (
                128 + number,
                f"kafkacodec: error: ended by {number.name}".encode(),
            )
    assert list(tmp_path.iterdir()) == []
    assert admin.describe_groups([group])[group].members == []
    committed = sum(offset.offset for offset in admin.list_group_offsets(group).values())
    assert committed in (6, 7)  # the last line may have been in print


def test_an_interrupt_while_the_broker_hangs(topic, server, broker):
    fill(server, topic)
    limits = [f"{name}.timeout.ms=600000" for name in ("default.api", "request")]
    arguments = ["consume", topic, "-b", server, "-G", "hangs", "--json", "-X", limits[0], "-X", limits[1]]
    with subprocess.Popen([*SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(7):
            assert process.stdout.readline()
        broker.signal(signal.SIGSTOP)
        try:
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            broker.signal(signal.SIGCONT)
    assert process.returncode == 130
    assert b"offsets of group 'hangs' were not committed" in err
    assert b"interrupted" not in err


def test_a_topic_that_is_deleted_is_not_created_again(topic, server, admin):
    fill(server, topic)
    arguments = ["consume", topic, "-b", server, "-f", r"%s\n", "-X", "metadata.max.age.ms=500"]
    with subprocess.Popen([*SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline()
        admin.delete_topics([topic])
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"error: topic {topic!r} does not exist" in err.decode()
    assert topic not in admin.list_topics()


def test_follow_until_interrupted(command, topic, server):
    arguments = ["consume", topic, "-b", server, "-f", r"%s\n", "-o", "end"]
    process = subprocess.Popen([*SCRIPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        os.set_blocking(process.stdout.fileno(), False)
        found = b""
        for n in range(200):
            assert command("produce", topic, stdin=b"%d\n" % n)[0] == 0
            found += process.stdout.read() or b""
            if found.count(b"\n") >= 2:
                break
            time.sleep(0.05)
        assert found.split()[0].isdigit()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert err.strip() == b""
    finally:
        process.kill()
        process.wait()


def test_topics_of_brokers(command, topic, server):
    fill(server, topic)
    code, out, _ = command("topics", "--topic", topic)
    assert (code, out.splitlines()[1].split()[:4]) == (0, [topic, "2", "1", "7"])
    code, out, _ = command("topics", "--topic", topic, "--partitions", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(p["partition"], p["start_offset"], p["end_offset"], p["leader"]) for p in found] == [
        (0, 0, 4, 1),
        (1, 0, 3, 1),
    ]
    assert all(part["size_in_bytes"] > 0 for part in found)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_of_brokers(command, topic, server, admin, protocol):
    fill(server, topic)
    group = f"billing-{protocol}"
    admin.alter_group_offsets(group, {(topic, 0): GroupOffset(1, -1, "note")})
    options = {"group_id": group, "client_id": "reader", "group_protocol": protocol, "enable_auto_commit": False}
    with Consumer(topic, bootstrap_servers=server, auto_offset_reset="earliest", **options) as consumer:
        assert next(iter(consumer)).topic == topic
        code, out, _ = command("groups", "--json")
        listed = {row["group"]: row for row in map(json.loads, out.splitlines())}[group]
        assert (code, listed["state"], listed["kind"]) == (0, "Stable", protocol)
        assert listed["members"][0]["owned"] == [{"topic": topic, "partitions": [0, 1]}]
        code, out, _ = command("lag", "-g", group, "--json")
        lines = [json.loads(line) for line in out.splitlines()]
        assert [(row["partition"], row["offset"], row["end_offset"], row["lag"]) for row in lines] == [
            (0, 1, 4, 3),
            (1, None, 3, None),
        ]
        assert {row["client_id"] for row in lines} == {"reader"}
        closing = time.monotonic()
    assert time.monotonic() - closing < 30
    code, out, _ = command("offsets", "-g", group, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert [(row["topic"], row["partition"], row["offset"], row["metadata"]) for row in found] == [
        (topic, 0, 1, "note")
    ]


def test_topics_are_completed(topic, server):
    prefix = topic[:-3]
    assert topic in completions(f"kafkacodec consume -b {server} {prefix}")
    assert topic in completions(f"kafkacodec topics -b {server} --topic {prefix}")
    assert completions(f"kafkacodec produce -b 127.0.0.1:1 {prefix}") == []
    assert completions(f"kafkacodec consume -X wrong=option -b {server} {prefix}") == []


def test_options_from_a_file(command, topic, server, tmp_path, monkeypatch):
    config = tmp_path / "client.properties"
    config.write_text(f"# for all clients\nbootstrap.servers = {server}\nacks=all\ngroup.id=unused\nlinger.ms=1\n")
    assert command("produce", topic, "-F", config, stdin=b"one", brokers=None)[0] == 0
    monkeypatch.setenv("KAFKACODEC_CONFIG", str(config))
    code, out, _ = command("consume", topic, "-e", "-f", "%s", brokers=None)
    assert (code, out) == (0, "one")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["consume", "nowhere", "-e"], 1, "nowhere: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION)"),
        (
            ["consume", "nowhere", "-e", "-G", "g"],
            1,
            "nowhere: unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION)",
        ),
        (["consume", "^nowhere", "-e", "-G", "g"], 1, "no topic matches ^nowhere"),
        (["consume", "^(", "-e", "-G", "g"], 2, "^(: missing )"),
        (["consume", "t", "-o", "e@5"], 2, "e@TIME is --end-time"),
        (["consume", "bad name"], 2, "illegal topic 'bad name'"),
        (["consume", "t", "-o", "middle"], 2, "'middle' is none of beginning"),
        (["consume", "t", "-o", "stored"], 2, "--offset stored needs --group"),
        (["consume", "t", "-G", "g", "-p", "1"], 2, "--partition"),
        (["consume", "t", "-X", "group.idd=1"], 2, "did you mean 'group.id'"),
        (["consume", "t", "-X", "group"], 2, "not NAME=VALUE"),
        (["consume", "t", "--output", "x.parquet"], 2, "--exit-at-end or --limit"),
        (["consume", "t", "-e", "--output", "x.what"], 2, "add --output-format"),
        (["consume", "t", "-e", "--output", "x.csv", "--columns", "key"], 2, "--columns"),
        (["consume", "t", "-e", "--output-format", "csv"], 2, "--output-format, --compression"),
        (["produce", "t", "-X", "acks=7"], 2, "acks must be"),
        (["produce", "t", "-H", "x"], 2, "not NAME=VALUE"),
        (["produce", "t", "-k", "a", "-K", ":"], 2, "exclude each other"),
        (["produce", "t", "--key-column", "k"], 2, "do not apply to lines"),
        (["topics", "."], 2, "exclude each other"),
    ],
)
def test_errors(command, arguments, code, text):
    found, out, err = command(*arguments)
    assert (found, out) == (code, "")
    assert text in err


def test_records_that_brokers_refuse(command, topic):
    code, _, err = command("produce", topic, "-X", "max.request.size=5000000", stdin=b"x" * 2_000_000)
    assert code == 1
    assert "MESSAGE_TOO_LARGE" in err or "too large" in err
    code, _, err = command("produce", topic, "-p", 7, stdin=b"x")
    assert code == 1


def test_nobody_there(command):
    code, _, err = command("topics", "-X", "default.api.timeout.ms=300", brokers="127.0.0.1:1")
    assert code == 1
    assert "connection refused" in err
