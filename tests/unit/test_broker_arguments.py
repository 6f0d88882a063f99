"""Arguments of the calls of an embedded broker: what is wrong is said at once, and nothing is done."""

from __future__ import annotations

import pytest

import kafkacodec as kc
from kafkacodec.errors import ItemErrors

PAIR = (b"key", b"value")


@pytest.fixture(scope="module")
def broker():
    with kc.broker.serve(topics={"orders": 1}) as served:
        yield served


WRONG = [
    (lambda b: b.create_topic("t", "3"), TypeError, "partitions must be an integer, not str"),
    (lambda b: b.create_topic("t", True), TypeError, "partitions must be an integer, not bool"),
    (lambda b: b.create_topic("t", 1.5), TypeError, "partitions must be an integer, not float"),
    (lambda b: b.create_topic("t", 2**31), ValueError, "partitions must be from -2147483648 to 2147483647"),
    (lambda b: b.create_topic(5), TypeError, "the name of a topic must be text, not int"),
    (lambda b: b.create_topic("t", 1, "compact"), TypeError, "config must be a dict, not str"),
    (lambda b: b.create_topic("t", 1, {5: "x"}), TypeError, "a name in config must be text, not int"),
    (
        lambda b: b.create_topic("t", 1, {"cleanup.policy": ["compact", "delete"]}),
        TypeError,
        "cleanup.policy must be text, a number or a bool, not list; write several as 'compact,delete'",
    ),
    (lambda b: b.create_topic("t", 1, {"retention.ms": None}), kc.BrokerError, "Null value not supported"),
    (lambda b: b.write("t", []), ValueError, "table has no records"),
    (lambda b: b.write(5, [PAIR]), TypeError, "topic must be text, not int"),
    (lambda b: b.write("orders", [PAIR], partition="0"), TypeError, "partition must be an integer, not str"),
    (lambda b: b.write("orders", [PAIR], partition=-1), ValueError, "partition must be from 0"),
    (lambda b: b.write("orders", [PAIR], partition=1), KeyError, "has no partition 1"),
]


@pytest.mark.parametrize(("call", "kind", "said"), WRONG)
def test_wrong_arguments(broker, call, kind, said):
    with pytest.raises(kind, match=said):
        call(broker)
    with kc.client.Admin(broker.bootstrap_servers) as admin:
        assert list(admin.list_topics()) == ["orders"]


async def test_wrong_arguments_in_an_event_loop():
    async with kc.broker.aio.serve() as served:
        for call, kind, said in WRONG:
            if kind is not KeyError:
                with pytest.raises(kind, match=said):
                    await call(served)


def test_numbers_and_truth_values_of_configurations():
    with kc.broker.serve() as served, kc.client.Admin(served.bootstrap_servers) as admin:
        given = {"retention.ms": 5, "preallocate": True, "min.cleanable.dirty.ratio": 0.25, "cleanup.policy": "compact"}
        texts = {"retention.ms": "5", "preallocate": "true", "min.cleanable.dirty.ratio": "0.25"}
        served.create_topic("a", 1, given)
        made = admin.create_topics(kc.client.NewTopic("b", configs=given))
        admin.create_topics("c")
        admin.incremental_alter_configs({("topic", "c"): given})
        admin.incremental_alter_configs({("topic", "c"): {"cleanup.policy": kc.client.Append("delete")}})
        assert texts.items() <= made["b"].configs.items()
        for name in "abc":
            (found,) = admin.describe_configs([("topic", name)]).values()
            assert {key: found[key].value for key in texts} == texts
        assert found["cleanup.policy"].value == "compact,delete"


def test_one_name_is_not_taken_for_its_letters():
    with kc.broker.serve(topics=["t"]) as served, kc.client.Admin(served.bootstrap_servers) as admin:
        (found,) = admin.describe_configs([("topic", "t")], names="retention.ms").values()
        assert list(found) == ["retention.ms"]
        assert {resource.type for resource in admin.list_config_resources("broker")} == {"broker"}


SINGLE = [
    (lambda a: a.describe_topics("no"), "the topic could not be described: no: "),
    (lambda a: a.describe_groups("no"), "the group could not be described: no: "),
    (lambda a: a.create_partitions({"no": 3}), "the topic got no partitions: no: "),
    (lambda a: a.delete_records({("t", 0): 9}), "the partition kept its records: t-0: "),
    (lambda a: a.delete_topics("no"), "the topic was not deleted: no: "),
]


@pytest.mark.parametrize(("call", "said"), SINGLE)
def test_errors_about_one_item_are_in_the_singular(call, said):
    with (
        kc.broker.serve(topics=["t"]) as served,
        kc.client.Admin(served.bootstrap_servers) as admin,
        pytest.raises(kc.errors.ItemErrors) as caught,
    ):
        call(admin)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("headers", [["ab"], [b"ab"], ("ab", b"value"), ["ab", "cd"]])
def test_a_text_of_two_letters_is_no_header(broker, headers):
    with (
        kc.client.Producer(broker.bootstrap_servers) as producer,
        pytest.raises(kc.errors.EncodeError, match="a header is not a pair of name and value"),
    ):
        producer.send("orders", b"value", headers=headers)
    with pytest.raises(kc.errors.EncodeError, match="a header is not a pair of key and value"):
        kc.encode([kc.Record(0, 0, 0, b"key", b"value", headers)])


def test_a_pattern_among_topics_is_explained(broker):
    with pytest.raises(ValueError, match=r"illegal topic '\^ord.*'.*; a consumer's subscribe\(pattern=\.\.\.\) takes"):
        kc.client.Consumer("^ord.*", bootstrap_servers=broker.bootstrap_servers)


def test_a_similar_name_follows_what_a_broker_says(broker):
    wrong = ("topic", "ordrs")
    with kc.client.Admin(broker.bootstrap_servers) as admin, pytest.raises(ItemErrors) as raised:
        admin.incremental_alter_configs({wrong: {"retention.ms": "5"}})
    assert "The topic 'ordrs' does not exist; did you mean 'orders'?" in str(raised.value.errors[wrong])


REPLICAS = ("line://127.0.0.1:9094", "line://127.0.0.1:9095")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"config": {"zk.connect": "h:2181"}}, "config zk.connect has no effect without a kafka07:// listener"),
        (
            {"config": {"rewrite.servers": "1@h:1"}},
            "rewrite.servers has no effect without a rewrite:// listener",
        ),
        ({"replicas": ["h:1", "h:2"]}, "replicas: 'h:1' is not line://HOST:PORT$"),
        ({"replicas": [REPLICAS[0]] * 2}, "replicas has line://127.0.0.1:9094 twice"),
        ({"replicas": REPLICAS, "listen": "kafka://127.0.0.1:0"}, "with them, listen takes only line:// URLs"),
        (
            {"listen": "rewrite://127.0.0.1:0", "config": {"rewrite.servers": "1@h:1,2@h:1"}},
            "two servers have the a",
        ),
    ],
)
def test_what_cannot_work_together_is_refused(tmp_path, options, says):
    with pytest.raises(ValueError, match=says):
        kc.broker.serve(tmp_path, **{"listen": "line://127.0.0.1:0", "node_id": 1} | options)
    assert not list(tmp_path.iterdir())


def test_settings_of_several_protocols_need_none_of_them():
    kc.broker.serve(config={"log.roll.hours": 5, "log.retention.hours": 5}).stop()


def test_a_replica_that_listens_elsewhere_says_so(tmp_path, caplog):
    kc.broker.serve(tmp_path, listen="line://127.0.0.1:0", node_id=1, replicas=REPLICAS).stop()
    assert (
        "others look for this broker at place 1 of replicas, 127.0.0.1:9095, but it listens at line://" in caplog.text
    )
