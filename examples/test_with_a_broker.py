"""Tests of a program with a Kafka broker, which kafkacodec has as a fixture of pytest.

pytest test_with_a_broker.py
"""

import json

import kafkacodec as kc


def announce(servers: str, topic: str, users: list[str]) -> None:
    """The program that is tested."""
    with kc.client.Producer(servers, acks="all") as producer:
        for user in users:
            producer.send(topic, json.dumps({"user": user}), key=user)


def test_every_user_is_announced(kafka_broker, kafka_topic):
    announce(kafka_broker.bootstrap_servers, kafka_topic, ["ann", "bob"])
    records = kafka_broker.records(kafka_topic)
    assert records["key"].tolist() == [b"ann", b"bob"]
    assert json.loads(records["value"][0]) == {"user": "ann"}


def test_nothing_is_sent_for_nobody(kafka_broker, kafka_topic):
    announce(kafka_broker.bootstrap_servers, kafka_topic, [])
    assert len(kafka_broker.records(kafka_topic)) == 0
