"""Reading from share groups: sessions with their epochs, acquired records, acknowledgements and their results."""

from __future__ import annotations

import uuid
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from kafkacodec import messages
from kafkacodec.client.core.backoff import Backoff
from kafkacodec.client.core.calls import Answer
from kafkacodec.client.core.cluster import Cluster
from kafkacodec.client.groups.membership import GroupMetadata
from kafkacodec.client.groups.share_reader import ShareReader
from kafkacodec.client.groups.share_records import Acknowledged
from kafkacodec.client.groups.share_session import AcknowledgeType, Acquired, Run, ShareSession, packed
from kafkacodec.errors import ConnectionFailed, LocalProtocolError, RemoteProtocolError, UnsupportedVersion, error
from kafkacodec.messages import APIS

VERSIONS = {key: api.valid_versions for key, api in APIS.items()}
ID = uuid.UUID(int=7)
T0, T1 = ("t", 0), ("t", 1)
GAP, ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
Fetch, Acknowledge = messages.ShareFetchResponse, messages.ShareAcknowledgeResponse


class Reading:
    """A reader of two partitions, each led by a broker of its own number, 1 or 2."""

    def __init__(self, **options):
        self.now = 0.0
        self.member = GroupMetadata("g", 4, "m")
        self.cluster = Cluster([("h", 1)], backoff=Backoff(jitter=0.0))
        self.describe(t=ID)
        self.reader = ShareReader(self.cluster, lambda: self.member, backoff=Backoff(jitter=0.0), **options)
        self.reader.assign([T0])

    def describe(self, **topics):
        """Metadata of topics with these ids."""
        self.cluster.want(topics)
        self.cluster.refresh()
        sends = self.cluster.poll(at := 500.0 * (1 + self.cluster.generation))
        kind = messages.MetadataResponse
        entries = []
        for name, topic_id in topics.items():
            partitions = [
                kind.MetadataResponsePartition(partition_index=n, leader_id=1 + n, leader_epoch=3) for n in (0, 1)
            ]
            entries.append(kind.MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions))
        brokers = [kind.MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2)]
        for send in sends:  # for what is new, and for what is known
            self.cluster.answered(send, Answer(kind(brokers=brokers, topics=entries), 12, 1), at)

    def asked(self):
        (self.send,) = self.reader.poll(self.now)
        request, version = self.send.request(VERSIONS)
        return type(request).decode(request.encode(version), version)

    def answer(self, number=0, code=0, **fields):
        """A response with one partition, or with an error alone."""
        fetching = type(self.send.request(VERSIONS)[0]) is messages.ShareFetchRequest
        kind = Fetch if fetching else Acknowledge
        topic = Fetch.ShareFetchableTopicResponse if fetching else Acknowledge.ShareAcknowledgeTopicResponse
        response = kind(error_code=code)
        if fetching:
            fields.setdefault("records", b"")
        if not code:
            response.responses = [topic(topic_id=ID, partitions=[kind.PartitionData(partition_index=number, **fields)])]
        response = kind.decode(response.encode(2), 2)
        self.reader.answered(self.send, Answer(response, 2, self.send.to), self.now)

    def acquired(self, *ranges):
        """Fetch, and get these."""
        self.reader.fetch()
        self.asked()
        entries = [Fetch.AcquiredRecords(first_offset=a, last_offset=b, delivery_count=n) for a, b, n in ranges]
        self.answer(records=b"bytes", acquired_records=entries)
        (fetched,) = self.reader.take()
        return fetched


def runs_of(request):
    (topic,) = request.topics
    assert topic.topic_id == ID
    return {
        p.partition_index: [
            (b.first_offset, b.last_offset, list(b.acknowledge_types)) for b in p.acknowledgement_batches
        ]
        for p in topic.partitions
    }


@given(st.dictionaries(st.integers(0, 30), st.sampled_from(AcknowledgeType)))
def test_runs_say_the_same_in_as_few_entries_as_possible(types):
    runs = packed(types)
    assert {offset: run.type for run in runs for offset in range(run.first, run.last + 1)} == types
    for one, two in pairwise(runs):
        assert one.last < two.first
        assert one.last + 1 < two.first or one.type != two.type


def test_a_session_begins_with_all_partitions_and_goes_on_with_changes():
    it = Reading()
    fetched = it.acquired((0, 9, 1))
    assert (fetched.partition, bytes(fetched.records), fetched.acquired) == (T0, b"bytes", (Acquired(0, 9, 1),))
    first = it.send.request(VERSIONS)[0]
    assert (first.group_id, first.member_id, first.share_session_epoch, first.max_records) == ("g", "m", 0, 500)
    assert runs_of(first) == {0: []}
    it.reader.delivered(fetched, range(10))
    it.reader.fetch()
    second = it.asked()
    assert second.share_session_epoch == 1
    assert runs_of(second) == {0: [(0, 9, [1])]}  # implicitly accepted
    it.answer()
    assert it.reader.take_results() == [Acknowledged(T0, (Run(0, 9, ACCEPT),), None)]
    it.reader.fetch()
    third = it.asked()
    assert (third.share_session_epoch, third.topics, third.forgotten_topics_data) == (2, [], [])


def test_before_4_1_the_limit_is_in_bytes():
    it = Reading()
    it.reader.fetch()
    it.asked()
    request, version = it.send.request({78: range(0, 1)})
    read = type(request).decode(request.encode(version), version)
    assert read.topics[0].partitions[0].partition_max_bytes == 1_048_576


def test_records_are_accepted_released_and_rejected():
    it = Reading(implicit=False)
    fetched = it.acquired((3, 6, 1), (8, 9, 2))
    # The batches have more than was acquired, and 5 was compacted away.
    assert it.reader.delivered(fetched, [1, 2, 3, 4, 6, 7, 8, 9, 10]) == {3: 1, 4: 1, 6: 1, 8: 2, 9: 2}
    for offset, kind in ((3, ACCEPT), (4, ACCEPT), (6, REJECT), (8, RELEASE)):
        it.reader.acknowledge(T0, offset, kind)
    for offset in (3, 5, 7, 100):
        with pytest.raises(LocalProtocolError, match=f"offset {offset} of t-0"):
            it.reader.acknowledge(T0, offset, ACCEPT)
    with pytest.raises(LocalProtocolError, match=r"1 records of t-0 .* from offset 9"):
        it.reader.fetch()
    it.reader.flush()
    request = it.asked()
    assert isinstance(request, messages.ShareAcknowledgeRequest)
    assert (request.share_session_epoch, request.member_id) == (1, "m")
    assert runs_of(request) == {0: [(3, 3, [1]), (4, 4, [1]), (5, 5, [0]), (6, 6, [3]), (8, 8, [2])]}
    it.answer()
    (result,) = it.reader.take_results()
    assert result.error is None
    assert it.reader.poll(0) == []


def test_a_renewed_record_is_still_to_be_acknowledged():
    it = Reading(implicit=False)
    it.reader.delivered(it.acquired((0, 2, 1)), [0, 1, 2])
    for offset in range(3):
        it.reader.acknowledge(T0, offset, RENEW)
    it.reader.acknowledge(T0, 1, ACCEPT)
    it.reader.flush()
    request = it.asked()
    assert request.is_renew_ack
    assert runs_of(request) == {0: [(0, 0, [4]), (1, 1, [1]), (2, 2, [4])]}
    with pytest.raises(UnsupportedVersion, match=r"Kafka 4\.2"):
        it.send.request({79: range(2)})
    it.answer(error_code=121)
    (result,) = it.reader.take_results()
    assert (result.error.code, it.reader.errors) == (121, {})
    assert it.reader.flushed
    for offset in (0, 2):
        it.reader.acknowledge(T0, offset, REJECT)
    it.reader.flush()
    request = it.asked()
    assert not request.is_renew_ack
    assert runs_of(request) == {0: [(0, 0, [3]), (2, 2, [3])]}


def test_an_error_of_an_acknowledgement():
    it = Reading()
    it.reader.delivered(it.acquired((0, 1, 1)), [0, 1])
    it.reader.fetch()
    it.asked()
    it.answer(acknowledge_error_code=121)
    (result,) = it.reader.take_results()
    assert (result.partition, result.runs, result.error.code) == (T0, (Run(0, 1, ACCEPT),), 121)


def test_an_acknowledgement_without_an_answer_has_not_succeeded():
    it = Reading()
    it.reader.delivered(it.acquired((0, 1, 1)), [0, 1])
    it.reader.fetch()
    it.asked()
    it.answer(number=5)
    (result,) = it.reader.take_results()
    assert result.error.code == -1


@pytest.mark.parametrize("code", [122, 123, None])
def test_a_lost_session_fails_what_was_not_acknowledged(code):
    it = Reading(implicit=False)
    it.reader.delivered(it.acquired((0, 3, 1)), range(4))
    it.reader.acknowledge(T0, 0, ACCEPT)
    it.reader.flush()
    it.asked()
    it.reader.acknowledge(T0, 1, ACCEPT)  # for the next request
    if code is None:
        it.reader.failed(it.send, ConnectionFailed("gone", sent=True), 0)
    else:
        it.answer(code=code)
    results = it.reader.take_results()
    assert sorted((run.first, run.last) for each in results for run in each.runs) == [(0, 0), (1, 1), (2, 3)]
    assert all(each.error is not None for each in results)
    with pytest.raises(LocalProtocolError):
        it.reader.acknowledge(T0, 2, ACCEPT)
    it.reader.fetch()
    assert it.reader.poll(99) == []
    assert it.reader.next_deadline() == 100
    it.now = 100
    assert it.asked().share_session_epoch == 0


def test_answers_that_are_nonsense_are_shown():
    it = Reading()
    nonsense = RemoteProtocolError("broker h:1: unexpected correlation id 7")
    it.reader.fetch()
    for wanted in ({}, {}, {T0: nonsense}):
        it.asked()
        it.reader.failed(it.send, nonsense, it.now)
        it.now += 1000
        assert it.reader.errors == wanted
    it.asked()
    it.answer(acquired_records=[Fetch.AcquiredRecords(first_offset=0, last_offset=0, delivery_count=1)])
    assert it.reader.errors == {}


def test_records_of_a_session_that_was_lost_meanwhile_are_not_delivered():
    it = Reading()
    fetched = it.acquired((0, 3, 1))
    it.reader.fetch()
    it.asked()
    it.answer(code=122)
    assert it.reader.delivered(fetched, range(4)) == {}


def test_each_leader_has_its_session_and_a_partition_that_went_is_forgotten():
    it = Reading()
    it.reader.assign([T0, T1])
    it.reader.fetch()
    sends = it.reader.poll(0)
    assert [send.to for send in sends] == [1, 2]
    it.send = sends[0]
    it.answer(0)
    it.send = sends[1]
    it.answer(1)
    it.reader.assign([T1])
    it.reader.fetch()
    (send,) = it.reader.poll(0)
    assert send.to == 2
    it.reader.assign([T0, T1])
    assert it.cluster.leader_changed("t", 1, 1, 4)
    it.send = send
    it.answer(1)
    it.reader.fetch()
    (send,) = it.reader.poll(0)
    request, _ = send.request(VERSIONS)
    assert (send.to, runs_of(request)) == (1, {1: []})


def test_a_leader_that_moved_is_taken_over_and_an_error_that_stays_is_shown():
    it = Reading()
    it.reader.fetch()
    it.asked()
    leader = Fetch.LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
    it.answer(error_code=6, current_leader=leader)
    assert it.cluster.leader(*T0) == 2
    assert it.reader.errors == {}
    it.reader.fetch()
    sends = it.reader.poll(0)
    (it.send,) = [send for send in sends if send.to == 2]
    it.answer(error_code=29, error_message="no")
    assert type(it.reader.errors[T0]) is error(29)


def test_closing_releases_what_is_left_and_ends_the_sessions():
    it = Reading(implicit=False)
    it.reader.delivered(it.acquired((0, 3, 1)), range(4))
    it.reader.acknowledge(T0, 0, ACCEPT)
    it.reader.close()
    before = it.reader.closed
    request = it.asked()
    assert request.share_session_epoch == -1
    assert runs_of(request) == {0: [(0, 0, [1]), (1, 3, [2])]}
    it.answer()
    assert (before, it.reader.closed) == (False, True)
    assert it.reader.poll(0) == []
    with pytest.raises(LocalProtocolError):
        it.reader.fetch()


def test_without_membership_nothing_is_asked_and_sessions_are_over():
    it = Reading()
    it.reader.delivered(it.acquired((0, 3, 1)), range(4))
    it.member = None
    it.reader.fetch()
    assert it.reader.poll(0) == []
    results = it.reader.take_results()
    assert [(each.runs, each.error.code) for each in results] == [((Run(0, 3, ACCEPT),), 122)]
    it.member = GroupMetadata("g", 5, "m")
    assert it.asked().share_session_epoch == 0


@pytest.mark.parametrize("closing", [True, False])
def test_an_answer_to_a_member_that_was_removed_meanwhile_is_not_taken(closing):
    it = Reading()
    it.reader.fetch()
    it.asked()
    it.member = None
    if closing:
        it.reader.close()
    assert it.reader.poll(0) == []
    it.reader.failed(it.send, ConnectionFailed("gone", sent=True), 0)
    assert it.reader.closed == closing
    assert it.reader.next_deadline() is None


def test_what_was_not_taken_of_a_session_is_lost_with_it():
    it = Reading()
    it.reader.fetch()
    it.asked()
    it.answer(records=b"", acquired_records=[Fetch.AcquiredRecords(first_offset=0, last_offset=3, delivery_count=1)])
    it.member = None
    it.reader.poll(0)
    it.member = GroupMetadata("g", 5, "m")
    it.reader.fetch()
    it.asked()
    it.answer()  # there is a session again
    (fetched,) = it.reader.take()
    assert it.reader.delivered(fetched, range(4)) == {}


def test_a_hostile_range_takes_no_memory_or_time():
    it = Reading()
    fetched = it.acquired((0, 2**62, 1))
    assert it.reader.delivered(fetched, [5]) == {5: 1}
    it.reader.fetch()
    assert runs_of(it.asked()) == {0: [(0, 4, [0]), (5, 5, [1]), (6, 2**62, [0])]}


def test_epochs_begin_again_after_the_last_one():
    session = ShareSession(epoch=2**31 - 1)
    session.succeeded()
    assert session.epoch == 1


def test_a_broker_that_leads_nothing_any_more_is_not_waited_for():
    it = Reading()
    it.reader.fetch()
    it.asked()
    it.reader.failed(it.send, ConnectionFailed("gone", sent=True), 0)
    assert it.cluster.leader_changed(*T0, 2, 4)
    it.now = 1000
    it.reader.poll(it.now)
    assert not it.reader.fetching
    it.reader.fetch()
    assert it.asked().share_session_epoch == 0
    assert it.send.to == 2


NEWER = uuid.UUID(int=8)


def test_a_topic_that_is_wanted_no_more_is_acknowledged_and_forgotten():
    it = Reading(implicit=False)
    it.reader.delivered(it.acquired((0, 1, 1)), [0, 1])
    it.describe(u=NEWER)
    it.cluster.unwant(["t"])
    it.reader.assign([("u", 0)])
    it.reader.acknowledge(T0, 0, ACCEPT)
    it.reader.flush()
    assert runs_of(it.asked()) == {0: [(0, 0, [1])]}
    it.answer()
    assert it.reader.take_results() == [Acknowledged(T0, (Run(0, 0, ACCEPT),), None)]
    it.reader.acknowledge(T0, 1, ACCEPT)
    it.reader.fetch()
    request = it.asked()
    assert [(topic.topic_id, [p.partition_index for p in topic.partitions]) for topic in request.topics] == [
        (ID, [0]),
        (NEWER, [0]),
    ]
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(ID, [0])]
    it.answer()
    assert it.reader.take_results() == [Acknowledged(T0, (Run(1, 1, ACCEPT),), None)]


def test_a_topic_that_was_made_again_replaces_the_former_one():
    it = Reading()
    it.reader.delivered(it.acquired((0, 1, 1)), [0, 1])
    it.describe(t=NEWER)
    it.reader.fetch()
    request = it.asked()
    assert [(topic.topic_id, [p.partition_index for p in topic.partitions]) for topic in request.topics] == [
        (ID, [0]),
        (NEWER, [0]),
    ]
    assert [(topic.topic_id, topic.partitions) for topic in request.forgotten_topics_data] == [(ID, [0])]
    it.answer(acknowledge_error_code=100)
    (result,) = it.reader.take_results()
    assert (result.partition, result.error.code) == (T0, 100)


def test_a_partition_that_is_refused_is_not_asked_for_in_a_tight_circle():
    it = Reading()
    for wait in (100, 200):
        it.reader.fetch()
        it.asked()
        it.answer(error_code=5)
        it.reader.fetch()
        assert it.reader.poll(it.now) == []
        it.now += wait
        assert it.reader.next_deadline() == it.now
