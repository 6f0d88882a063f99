"""What clients of the embedded broker may do: the answers of Apache Kafka 4.4.0 to users with one right each."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

import kafkacodec as kc
from kafkacodec import client
from kafkacodec.broker.kafka.apis import TABLE
from kafkacodec.broker.kafka.security.rights import RIGHTS
from kafkacodec.errors import TopicAuthorizationFailedError
from kafkacodec.messages import keys
from tests import acl_scripts
from tests.patience import SOON

GOLDEN = json.loads(acl_scripts.GOLDEN.read_text())
FREE = {
    keys.API_VERSIONS, keys.SASL_HANDSHAKE, keys.SASL_AUTHENTICATE, keys.GET_TELEMETRY_SUBSCRIPTIONS,
    keys.PUSH_TELEMETRY, keys.CREATE_DELEGATION_TOKEN, keys.RENEW_DELEGATION_TOKEN, keys.EXPIRE_DELEGATION_TOKEN,
    keys.DESCRIBE_DELEGATION_TOKEN,
}  # fmt: skip


@pytest.fixture(scope="module")
def found():
    name, password = acl_scripts.ADMIN
    config = {
        "super.users": f"User:{name}",
        "transaction.state.log.num.partitions": 1,
        "offsets.topic.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "log.retention.hours": 876_000,
    }
    with kc.broker.serve(
        listen="kafka+sasl://127.0.0.1:0", users={name: password}, config=config, authorizer=True
    ) as broker:
        acl_scripts.prepare(broker.bootstrap_servers)
        return acl_scripts.answers(broker.bootstrap_servers)


def by_user(pairs):
    return {user: answer for answer, users in pairs for user in users}


@pytest.mark.parametrize("name", acl_scripts.requests())
def test_answers_of_kafka(found, name):
    ours, theirs = by_user(found[name]), by_user(GOLDEN[name])
    assert {user: ours[user] for user in theirs if ours[user] != theirs[user]} == {
        user: theirs[user] for user in theirs if ours[user] != theirs[user]
    }


def test_every_api_has_rights_or_is_free():
    assert set(TABLE) - set(RIGHTS) == FREE


def test_clients_without_rights_are_told_so_and_see_nothing():
    config = {"super.users": "User:admin"}
    users = {"admin": "a", "alice": "b"}
    with kc.broker.serve(
        listen=["kafka+sasl://127.0.0.1:0", "kafka://127.0.0.1:0"], users=users, config=config, authorizer=True,
        topics=["orders"],
    ) as broker:  # fmt: skip

        def options(user):
            return {
                "bootstrap_servers": broker.bootstrap_servers, "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN", "sasl_plain_username": user, "sasl_plain_password": users[user],
            }  # fmt: skip

        anonymous = broker.listeners[1].partition("://")[2]
        with client.Admin(anonymous) as admin:
            assert admin.list_topics() == {}
        with client.Producer(**options("alice")) as producer, pytest.raises(TopicAuthorizationFailedError):
            producer.send("orders", b"one").result(SOON)
        with client.Admin(**options("admin")) as admin:
            admin.create_acls(client.Acl("topic", "orders", "User:alice", "write"))
            assert [acl.principal for acl in admin.describe_acls()] == ["User:alice"]
        with client.Producer(**options("alice")) as producer:
            assert producer.send("orders", b"one").result(SOON).offset == 0
        with client.Consumer("orders", auto_offset_reset="earliest", **options("alice")) as consumer:
            with pytest.raises(TopicAuthorizationFailedError):
                next(iter(consumer))
            with client.Admin(**options("admin")) as admin:
                admin.create_acls(client.Acl("topic", "orders", "User:*", "read"))
            value = None
            while value is None:
                with suppress(TopicAuthorizationFailedError):  # what was fetched before
                    value = next(iter(consumer)).value
            assert value == b"one"


@pytest.mark.parametrize("group", [{}, {"group_id": "billing"}])
def test_a_consumer_of_topics_that_may_not_be_read_is_told_and_goes_on_once_they_may(group):
    with kc.broker.serve(
        listen=["kafka+sasl://127.0.0.1:0", "kafka://127.0.0.1:0"], users={"admin": "a"}, authorizer=True,
        config={"super.users": "User:admin"}, topics=["orders", "returns"],
    ) as broker:  # fmt: skip
        admin = client.Admin(
            broker.bootstrap_servers, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
            sasl_plain_username="admin", sasl_plain_password="a",
        )  # fmt: skip
        anonymous = broker.listeners[1].partition("://")[2]
        with admin:
            admin.create_acls(client.Acl("group", "*", "User:ANONYMOUS", "read"))
            consumer = client.Consumer(
                "orders", "returns", bootstrap_servers=anonymous, auto_offset_reset="earliest", **group
            )
            with consumer:
                for _ in range(2):
                    with pytest.raises(TopicAuthorizationFailedError, match=r"^topic 'orders', and 1 other"):
                        next(iter(consumer))
                admin.create_acls(client.Acl("topic", "returns", "User:ANONYMOUS", "all"))
                with client.Producer(anonymous) as producer:
                    producer.send("returns", b"one").result(SOON)
                value, told = None, set()
                while value is None:
                    try:
                        value = next(iter(consumer)).value
                    except TopicAuthorizationFailedError as refused:
                        told.add(str(refused))
                assert value == b"one"
                assert "topic 'orders': TOPIC_AUTHORIZATION_FAILED" in told
                for _ in range(3):  # also while nothing comes of the other topic
                    with pytest.raises(TopicAuthorizationFailedError, match=r"^topic 'orders': TOPIC_AUTH"):
                        consumer.getmany(timeout=60)


def test_entries_stay_after_a_restart(tmp_path):
    def server(**options):
        return kc.broker.serve(tmp_path / "data", authorizer=True, **options)

    with server(config={"super.users": "User:ANONYMOUS"}) as broker, client.Admin(broker.bootstrap_servers) as admin:
        admin.create_topics({"orders": 1, "others": 1})
        admin.create_acls(client.Acl("topic", "ord", "User:ANONYMOUS", "describe", pattern_type="prefixed"))
    with server() as broker, client.Admin(broker.bootstrap_servers) as admin:
        assert set(admin.list_topics()) == {"orders"}
    config = {"allow.everyone.if.no.acl.found": True}
    with server(config=config) as broker, client.Admin(broker.bootstrap_servers) as admin:
        assert set(admin.list_topics()) == {"orders", "others"}


def test_another_authorizer_is_refused():
    with pytest.raises(ValueError, match=r"this broker has only .*StandardAuthorizer"):
        kc.broker.serve(config={"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"})
