"""The states of a transactional producer, from responses and a clock; no I/O."""

from __future__ import annotations

import pytest

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer, Coordinator, prepared
from kafkacodec.client.core.coordinators import Coordinators
from kafkacodec.client.producing.settings import ProducerSettings
from kafkacodec.client.producing.transaction_requests import Offsets
from kafkacodec.client.producing.transactions import State, Transactions
from kafkacodec.errors import (
    BrokerError,
    ConnectionFailed,
    LocalProtocolError,
    RemoteProtocolError,
    UnsupportedVersion,
    error,
)

ALL_VERSIONS = {key: api.valid_versions for key, api in messages.APIS.items()}
OWN, GROUP = Coordinator("transaction", "tx"), Coordinator("group", "g")


class Driven:
    """A machine whose requests a test answers one by one."""

    def __init__(self, version=1, versions=ALL_VERSIONS):
        settings = ProducerSettings(bootstrap_servers="a", transactional_id="tx")
        self.now, self.versions = 0.0, versions
        self.coordinators = Coordinators(Backoff())
        backoff = Backoff(100, 100, jitter=0.0)
        self.machine = Transactions(settings, self.coordinators, backoff, progress=lambda: None, shut=lambda: None)
        self.machine.initialize()
        feature = messages.ApiVersionsResponse.FinalizedFeatureKey(
            name="transaction.version", max_version_level=version
        )
        assert self.asked()[:2] == ("ApiVersionsRequest", OWN)
        self.answer(messages.ApiVersionsResponse(finalized_features=[feature]))

    def asked(self, pending=False):
        """The name, place and message of the next request; None if there is none."""
        sends = self.machine.poll(self.now, pending)
        if not sends:
            return None
        (self.send,) = sends
        request, self.version = prepared(self.send.request, self.versions)
        return type(request).__name__, self.send.to, request

    def answer(self, message):
        self.machine.answered(self.send, Answer(message, 0, 1), self.now)

    def initialize(self, epoch=0):
        name, place, request = self.asked()
        assert (name, place) == ("InitProducerIdRequest", OWN)
        self.answer(messages.InitProducerIdResponse(producer_id=9, producer_epoch=epoch))
        return request

    def add(self, code=0):
        """Let it add partition 0 of "t"."""
        assert not self.machine.allows("t", 0)
        name, place, request = self.asked(pending=True)
        assert (name, place) == ("AddPartitionsToTxnRequest", OWN)
        assert request.to_dict()["v3_and_below_topics"] == [{"name": "t", "partitions": [0]}]
        assert self.version == 3
        kind = messages.AddPartitionsToTxnResponse
        part = kind.AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
        topic = kind.AddPartitionsToTxnTopicResult(name="t", results_by_partition=[part])
        self.answer(kind(results_by_topic_v3_and_below=[topic]))


def test_a_transaction_of_version_1():
    driven = Driven()
    machine = driven.machine
    assert driven.initialize().producer_id == -1
    machine.begin()
    assert driven.asked(pending=True) is None
    driven.add()
    assert machine.allows("t", 0)
    machine.end(commit=True)
    assert driven.asked(pending=True) is None  # batches first
    name, place, request = driven.asked()
    assert (name, place, request.committed, driven.version) == ("EndTxnRequest", OWN, True, 4)
    assert (request.producer_id, request.producer_epoch) == (9, 0)
    driven.answer(messages.EndTxnResponse())
    assert (machine.state, machine.current) == (State.READY, (9, 0))
    machine.begin()
    assert not machine.allows("t", 0)  # each transaction adds its own


def test_a_transaction_of_version_2_gets_the_next_epoch_from_its_end():
    driven = Driven(version=2)
    driven.initialize()
    driven.machine.begin()
    assert driven.machine.allows("t", 0)
    assert driven.machine.highest_version >= 12
    driven.machine.end(commit=False)
    name, _, request = driven.asked()
    assert (name, request.committed, driven.version >= 5) == ("EndTxnRequest", False, True)
    driven.answer(messages.EndTxnResponse(producer_id=9, producer_epoch=1))
    assert (driven.machine.state, driven.machine.current) == (State.READY, (9, 1))


def test_nothing_is_asked_for_an_empty_transaction():
    driven = Driven()
    driven.initialize()
    driven.machine.begin()
    driven.machine.end(commit=True)
    assert driven.asked() is None
    assert driven.machine.state is State.READY


def test_concurrent_transactions_are_waited_for_a_short_time_and_a_lost_coordinator_is_looked_up():
    driven = Driven()
    driven.initialize()
    driven.machine.begin()
    driven.add(code=51)
    driven.now = 19
    assert driven.asked(pending=True) is None
    assert driven.machine.next_deadline() == 20
    driven.now = 20
    driven.coordinators.node_of(OWN)
    (lookup,) = driven.coordinators.poll(driven.now)
    found = messages.FindCoordinatorResponse.Coordinator(key="tx", node_id=3, host="h", port=9)
    response = messages.FindCoordinatorResponse(coordinators=[found])
    driven.coordinators.answered(lookup, Answer(response, 4, 1), driven.now)
    assert driven.coordinators.node_of(OWN) == 3
    driven.add(code=16)
    assert driven.coordinators.node_of(OWN) is None
    driven.now = 119
    assert driven.asked(pending=True) is None
    driven.now = 120
    driven.add()
    assert driven.machine.allows("t", 0)


def test_an_end_without_an_answer_is_asked_for_again():
    driven = Driven()
    driven.initialize()
    driven.machine.begin()
    driven.add()
    driven.machine.end(commit=True)
    driven.asked()
    driven.machine.failed(driven.send, ConnectionFailed("gone", sent=True), 0)
    driven.now = 100
    assert driven.asked()[0] == "EndTxnRequest"
    assert driven.machine.state is State.COMMITTING


@pytest.mark.parametrize("code", [14, 15, 16, 51])
def test_what_a_coordinator_refuses_for_now_is_asked_for_again(code):
    driven = Driven()
    machine = driven.machine
    driven.initialize()
    machine.begin()
    driven.add()
    done = machine.add_offsets(Offsets.of({("t", 0): 5}, "g"))
    kind = messages.TxnOffsetCommitResponse
    part = kind.TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
    refusals = [
        messages.AddOffsetsToTxnResponse(error_code=code),
        kind(topics=[kind.TxnOffsetCommitResponseTopic(name="t", partitions=[part])]),
        messages.EndTxnResponse(error_code=code),
    ]
    for refusal in refusals:
        if refusal is refusals[-1]:
            assert done()
            machine.end(commit=True)
        for answer in (refusal, refusal, type(refusal)()):
            assert driven.asked()[0] == type(refusal).__name__.replace("Response", "Request")
            driven.answer(answer)
            driven.now += 1000
    assert machine.state is State.READY


@pytest.mark.parametrize("code", [47, 90])
def test_a_fenced_producer_can_do_nothing(code):
    driven = Driven()
    driven.initialize()
    driven.machine.begin()
    driven.add(code=code)
    for call in (driven.machine.begin, lambda: driven.machine.end(commit=False)):
        with pytest.raises(BrokerError, match="another producer with the transactional id 'tx' is newer"):
            call()
    assert driven.asked() is None


def test_a_lost_batch_allows_only_to_abort_and_the_epoch_is_renewed_after_it():
    driven = Driven()
    machine = driven.machine
    driven.initialize()
    machine.begin()
    driven.add()
    machine.given_up(error(10)("too large"), sent=True)
    assert machine.state is State.FAILED
    assert machine.ended
    assert not machine.allows("t", 0)
    with pytest.raises(LocalProtocolError, match="abort it: too large"):
        machine.end(commit=True)
    machine.end(commit=False)
    assert driven.asked()[2].committed is False
    driven.answer(messages.EndTxnResponse())
    assert driven.initialize(epoch=3).producer_epoch == 0
    assert (machine.state, machine.current) == (State.READY, (9, 3))
    old = Driven(versions={**ALL_VERSIONS, 22: range(3)})
    old.initialize()
    old.machine.begin()
    old.add()
    old.machine.given_up(error(10)("too large"), sent=True)
    old.machine.end(commit=False)
    old.asked()
    old.answer(messages.EndTxnResponse())
    with pytest.raises(UnsupportedVersion, match=r"Kafka 2\.5"):
        old.asked()


def test_offsets_of_a_group():
    driven = Driven()
    machine = driven.machine
    driven.initialize()
    machine.begin()
    done = machine.add_offsets(Offsets.of({("t", 0): 5, ("t", 1): 6}, "g"))
    name, place, request = driven.asked()
    assert (name, place, request.group_id) == ("AddOffsetsToTxnRequest", OWN, "g")
    driven.answer(messages.AddOffsetsToTxnResponse())
    assert not done()
    name, place, request = driven.asked()
    assert (name, place, driven.version) == ("TxnOffsetCommitRequest", GROUP, 4)
    assert [(p.partition_index, p.committed_offset) for p in request.topics[0].partitions] == [(0, 5), (1, 6)]
    driven.answer(messages.TxnOffsetCommitResponse())
    assert done()
    machine.add_offsets(Offsets.of({("t", 0): 7}, "g"))
    driven.asked()
    driven.answer(messages.AddOffsetsToTxnResponse(error_code=30))
    assert machine.state is State.FAILED
    assert machine.reason.code == 30


@pytest.mark.parametrize(
    ("code", "count", "named"), [(3, 1, "t-7"), (3, 5, "t-7, t-8, t-9, and 2 more"), (12, 1, "t-7")]
)
def test_partitions_whose_offsets_are_refused_are_named(code, count, named):
    driven = Driven(version=2)
    driven.initialize()
    driven.machine.begin()
    driven.machine.add_offsets(Offsets.of({("t", 0): 5}, "g"))
    driven.asked()
    kind = messages.TxnOffsetCommitResponse
    row = kind.TxnOffsetCommitResponsePartition
    rows = [row(partition_index=0), *(row(partition_index=7 + n, error_code=code) for n in range(count))]
    driven.answer(kind(topics=[kind.TxnOffsetCommitResponseTopic(name="t", partitions=rows)]))
    reason = driven.machine.passing if error(code).retriable else driven.machine.reason or driven.machine.failure
    assert str(reason).endswith(f": {named}" if error(code).retriable else f"transactional id 'tx', {named}")


@pytest.mark.parametrize(
    ("offsets", "group"),
    [
        ({("t", 0): -1}, "g"),
        ({("t", 0): "5"}, "g"),
        ({("t", 0): 5}, None),
        ({("t", 0): 5}, 7),
        ([("t", 0)], "g"),
        ({"t": 5}, "g"),
    ],
)
def test_wrong_offsets(offsets, group):
    with pytest.raises((TypeError, ValueError)):
        Offsets.of(offsets, group)


def test_an_abort_that_the_coordinator_never_heard_of():
    """It refuses to end a transaction of which no partition was accepted, if the one before was committed."""
    driven = Driven()
    driven.initialize()
    driven.machine.begin()
    driven.add(code=51)
    driven.machine.end(commit=False)
    driven.now = 20
    assert driven.asked()[0] == "EndTxnRequest"
    driven.answer(messages.EndTxnResponse(error_code=48))
    assert driven.machine.state is State.READY
    driven.machine.begin()
    driven.add()
    driven.machine.end(commit=False)
    assert driven.asked()[0] == "EndTxnRequest"
    driven.answer(messages.EndTxnResponse(error_code=48))  # it did accept that one
    assert isinstance(driven.machine.failure, error(48))


def test_an_abort_while_offsets_are_being_added():
    driven = Driven()
    driven.initialize()
    driven.machine.begin()
    driven.machine.add_offsets(Offsets.of({("t", 0): 5}, "g"))
    assert driven.asked()[0] == "AddOffsetsToTxnRequest"
    driven.machine.end(commit=False)
    driven.answer(messages.AddOffsetsToTxnResponse())
    assert driven.asked()[0] == "EndTxnRequest"
    driven.answer(messages.EndTxnResponse())
    assert driven.machine.state is State.READY


def test_a_repeated_end_tells_how_the_same_transaction_ended():
    driven = Driven()
    machine = driven.machine
    driven.initialize()
    machine.begin()
    driven.add()
    ending = machine.end(commit=True)
    driven.asked()
    assert machine.end(commit=True) is ending
    assert not ending.ended
    driven.answer(messages.EndTxnResponse())
    assert machine.end(commit=True) is ending  # its caller gave up waiting before
    assert (ending.ended, ending.committed) == (True, True)
    with pytest.raises(LocalProtocolError, match="it is between transactions"):
        machine.end(commit=False)
    ending.told = True
    with pytest.raises(LocalProtocolError, match="it is between transactions"):
        machine.end(commit=True)
    machine.begin()
    assert machine.end(commit=True) is not ending


def test_a_commit_can_be_aborted_until_the_coordinator_is_asked():
    driven = Driven()
    machine = driven.machine
    driven.initialize()
    machine.begin()
    driven.add()
    ending = machine.end(commit=True)
    assert driven.asked(pending=True) is None  # batches first
    assert machine.end(commit=False) is ending
    assert driven.asked()[2].committed is False
    driven.answer(messages.EndTxnResponse())
    assert (ending.ended, ending.committed) == (True, False)
    machine.begin()
    driven.add()
    machine.end(commit=True)
    driven.asked()
    assert not machine.abortable
    with pytest.raises(LocalProtocolError, match="it is committing"):
        machine.end(commit=False)


def test_batches_of_a_prepared_transaction_still_belong_to_it():
    driven = Driven(version=2)
    machine = driven.machine
    driven.initialize()
    machine.begin()
    machine.prepare()
    assert machine.allows("t", 0)
    machine.given_up(error(87)("refused"), sent=True)
    with pytest.raises(LocalProtocolError, match="the transaction has failed, abort it"):
        machine.prepared()


def test_answers_that_are_nonsense_are_told_and_the_request_is_repeated():
    driven = Driven()
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    driven.initialize()
    driven.machine.begin()
    driven.add()
    driven.machine.end(commit=True)
    for wanted in (None, None, nonsense):
        assert driven.asked()[0] == "EndTxnRequest"
        driven.machine.failed(driven.send, nonsense, driven.now)
        assert driven.machine.broken is wanted
        driven.now += 100
    assert driven.asked()[0] == "EndTxnRequest"
    driven.answer(messages.EndTxnResponse())
    assert driven.machine.transaction.committed
    assert (driven.machine.state, driven.machine.broken) == (State.READY, None)
