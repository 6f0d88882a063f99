"""A producer against a model cluster that drops connections, applies requests late, moves leaders and refuses batches:
nothing is lost, nothing is there twice, and the order of each partition stays."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.model_producer import ModelCluster, values_by_partition, values_in
from tests.state_machines import machine_settings

PARTITIONS = st.integers(0, 2)
NODES = st.integers(1, 2)
# Errors after which the same batch may be sent again, and that the log did not take.
RETRIABLE = st.sampled_from([2, 3, 5, 6, 7, 19, 56, 100])


class IdempotentProducer(RuleBasedStateMachine):
    idempotent = True

    def __init__(self) -> None:
        super().__init__()
        self.model = ModelCluster(batch_size=200, enable_idempotence=self.idempotent)
        self.sent: list = []
        self.unordered: set = set()

    @rule(partition=PARTITIONS, count=st.integers(1, 12))
    def send(self, partition, count):
        for _ in range(count):
            value = b"%d" % len(self.sent) * 5
            self.sent.append((self.model.produce(value, partition), partition, value))

    @rule(ms=st.sampled_from([0, 1, 5, 200]))
    def poll(self, ms):
        self.model.poll(ms)

    @rule(node=NODES)
    def answer(self, node):
        self.model.answer(node)
        self.model.poll(0)

    @rule(node=NODES, applied=st.integers(0, 5), late=st.booleans())
    def drop(self, node, applied, late):
        self.model.drop(node, applied, late)

    @rule(node=NODES)
    def apply_late(self, node):
        self.model.apply_late(node)

    @rule(partition=PARTITIONS, leader=NODES)
    def move(self, partition, leader):
        self.model.move(partition, leader)

    @rule(partition=PARTITIONS, code=RETRIABLE)
    def refuse(self, partition, code):
        self.model.forced[partition].append(code)

    @rule(partition=PARTITIONS, known=st.booleans())
    def forget(self, partition, known):
        """A broker loses what it knows of producers, by retention or an unclean restart. Old ones refuse to go on.

        New ones (KIP-360) take any sequence then, so a later batch may come before one that is sent again.
        """
        if not self.model.in_flight(partition):
            self.model.logs[partition].producers.clear()
            self.model.logs[partition].refuses_unknown = known
            if not known:
                self.unordered.add(partition)

    @rule(partition=PARTITIONS)
    def too_large(self, partition):
        self.model.forced[partition].append(10)

    def teardown(self):
        self.model.finish()
        self.check()

    def check(self):
        wanted = values_by_partition([s for s in self.sent if s[0].error is None])
        written = [values_in(log) for log in self.model.logs]
        for partition, values in enumerate(written):
            if partition in self.unordered:
                assert sorted(values) == sorted(wanted[partition])
            else:
                assert values == wanted[partition]
        for delivery, partition, value in self.sent:
            if delivery.error is None:
                found = delivery.result(0)
                assert (found.topic, found.partition) == ("t", partition)
                assert written[partition][found.offset] == value
            else:
                assert getattr(delivery.error, "code", None) == 10


class PlainProducer(IdempotentProducer):
    """Without ids, a batch may be there twice, but none is lost, and the order of the first occurrences stays."""

    idempotent = False

    def check(self):
        wanted = values_by_partition([s for s in self.sent if s[0].error is None])
        for partition, log in enumerate(self.model.logs):
            if not any(s[0].error for s in self.sent):
                assert list(dict.fromkeys(values_in(log))) == wanted[partition]


TestIdempotentProducer = IdempotentProducer.TestCase
TestIdempotentProducer.settings = machine_settings
TestPlainProducer = PlainProducer.TestCase
TestPlainProducer.settings = machine_settings
