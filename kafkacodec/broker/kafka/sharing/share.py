"""ShareFetch and ShareAcknowledge (KIP-932, KIP-1206, KIP-1222)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.sharing.fetches import ShareFetching, ShareTake
from kafkacodec.broker.kafka.sharing.sessions import FINAL, INITIAL, Owner, SharePlace, ShareSession
from kafkacodec.broker.state.sharing.calls import LONGEST_ID
from kafkacodec.broker.state.sharing.deliveries import RENEW, Acknowledged
from kafkacodec.datatypes import NamedTuple
from kafkacodec.net.service import NOTHING, Effect, Fate, Reply, together

if TYPE_CHECKING:
    from kafkacodec.broker.kafka.node import Node
    from kafkacodec.broker.kafka.request import Request

__all__ = ["share_acknowledge", "share_fetch"]

_RENEWS: Final = 2
_STRICT: Final = 1


class _Result(NamedTuple):
    """The outcome of acknowledgements for a partition."""

    code: int
    text: str | None = None
    fails: bool = False  # the whole request


_Results = dict[SharePlace, _Result]


def share_fetch(node: Node, request: Request) -> Any:
    """Deliver records, and apply acknowledgements of earlier ones.

    - v1: a limit of records. v2: an exact limit (KIP-1206), renewed locks (KIP-1222).
    """
    message = request.message
    response = messages.ShareFetchResponse
    code = _refusal(node, message)
    renews = request.version >= _RENEWS and message.is_renew_ack
    wants = message.max_wait_ms or message.min_bytes or message.max_bytes or message.max_records
    says = any(part.acknowledgement_batches for topic in message.topics for part in topic.partitions)
    if not code and ((renews and wants) or (message.share_session_epoch == INITIAL and says)):
        code = errors.INVALID_REQUEST
    session: Any = code or node.shares.sessions.begin(
        _owner(request), message.share_session_epoch, request.session, fetches=True
    )
    if isinstance(session, int):
        return response(error_code=session)
    if message.share_session_epoch == FINAL:
        return _last_fetch(node, request, session)
    _update(session, message)
    both = _Both(node, request, session)
    results: _Results = {}
    said = _say(node, request, session.owner, results, both.acknowledged)
    if any(result.fails for result in results.values()):
        return said
    return together([said, _fetch(node, request, session, both)])


def _last_fetch(node: Node, request: Request, session: ShareSession) -> Effect:
    """End a session: what the member still has of its partitions is released after the acknowledgements."""
    held = list(session.places)
    session.places.clear()

    def acknowledged(results: _Results) -> Effect:
        if any(result.fails for result in results.values()):
            return _failed(node, request, messages.ShareFetchResponse)
        answer = _answer(node, session, [], results)
        released = node.shares.partitions.release(session.owner, held, request.now)
        return together([released, node.reply(request.to, answer)])

    return _say(node, request, session.owner, {}, acknowledged)


def _may_read(node: Node, request: Request, place: SharePlace) -> bool:
    """Whether the client may read a topic, or the id is unknown."""
    name = node.name_of(place.topic_id)
    return request.may is None or name is None or request.may("read", "topic", name)


def share_acknowledge(node: Node, request: Request) -> Any:
    """Apply a member's acknowledgements. v2: renewed locks (KIP-1222)."""
    message = request.message
    response = messages.ShareAcknowledgeResponse
    session: Any = _refusal(node, message) or node.shares.sessions.begin(
        _owner(request), message.share_session_epoch, request.session, fetches=False
    )
    if isinstance(session, int):
        return response(error_code=session)

    def acknowledged(results: _Results) -> Effect:
        if any(result.fails for result in results.values()):
            return _failed(node, request, response)
        answer = response(acquisition_lock_timeout_ms=node.shares.partitions.settings(session.owner.group).lock_ms)
        rows: dict[uuid.UUID, Any] = {}
        for place, result in results.items():
            row = response.PartitionData(
                partition_index=place.number, error_code=result.code, error_message=result.text
            )
            made = response.ShareAcknowledgeTopicResponse(topic_id=place.topic_id)
            rows.setdefault(place.topic_id, made).partitions.append(row)
        answer.responses = list(rows.values())
        effect = node.reply(request.to, answer)
        if message.share_session_epoch == FINAL:
            released = node.shares.partitions.release(session.owner, session.places, request.now)
            return together([released, effect])
        return effect

    return _say(node, request, session.owner, {}, acknowledged, every=True)


def _failed(node: Node, request: Request, response: Any) -> Effect:
    effect: Effect = node.reply(request.to, response(error_code=errors.UNKNOWN_SERVER_ERROR))
    return effect


def _refusal(node: Node, message: Any) -> int:
    if not node.shares.enabled:
        return errors.UNSUPPORTED_VERSION
    named = message.group_id is not None and 0 < len(message.member_id or "") <= LONGEST_ID
    return errors.NONE if named else errors.INVALID_REQUEST


def _owner(request: Request) -> Owner:
    return Owner(request.message.group_id or "", request.message.member_id, request.broker)


def _update(session: ShareSession, message: Any) -> None:
    """Apply the additions and removals of a request to its session."""
    for topic in message.topics:
        for part in topic.partitions:
            session.places.setdefault(SharePlace(topic.topic_id, part.partition_index), True)
    for topic in message.forgotten_topics_data:
        for number in topic.partitions:
            session.places.pop(SharePlace(topic.topic_id, number), None)


# Acknowledgements


def _say(
    node: Node, request: Request, owner: Owner, results: _Results, then: Callable[[_Results], Effect], *,
    every: bool = False,
) -> Effect:  # fmt: skip
    """Apply the acknowledgements of a request, note the outcomes in `results`, and continue when all are written.

    Each partition has a result if any has acknowledgements; with `every`, those that cannot be acknowledged have one in
    any case.
    """
    message = request.message
    renews = request.version >= _RENEWS and message.is_renew_ack
    said: dict[SharePlace, list[Any]] = {}
    some = any(part.acknowledgement_batches for topic in message.topics for part in topic.partitions)
    for topic in message.topics:
        for part in topic.partitions:
            place, rows = SharePlace(topic.topic_id, part.partition_index), part.acknowledgement_batches
            if some or (every and _error_of(node, request, owner, place)):
                said.setdefault(place, []).extend(rows)

    def done(place: SharePlace, result: _Result) -> Effect:
        results[place] = result
        return then({each: results[each] for each in said}) if len(results) == len(said) else NOTHING

    if not said:
        return then(results)
    return together([_say_of(node, request, owner, place, rows, renews, done) for place, rows in said.items()])


def _error_of(node: Node, request: Request, owner: Owner, place: SharePlace) -> int:
    """The error of a partition that is not there, not for this sender, or elsewhere."""
    name = node.name_of(place.topic_id)
    if name is None:
        return errors.UNKNOWN_TOPIC_ID
    if not _may_read(node, request, place):
        return errors.TOPIC_AUTHORIZATION_FAILED
    if node.topics.partition(name, place.number) is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    if not node.brokers.leads(owner.broker, name, place.number):
        return errors.NOT_LEADER_OR_FOLLOWER
    return errors.NONE


def _say_of(
    node: Node, request: Request, owner: Owner, place: SharePlace, rows: list[Any], renews: bool,
    done: Callable[[SharePlace, _Result], Effect],
) -> Effect:  # fmt: skip
    if code := _error_of(node, request, owner, place):
        return done(place, _Result(code))
    if not _is_valid(rows, renews):
        return done(place, _Result(errors.INVALID_REQUEST))
    shared = node.shares.partitions.find(owner.group, place)
    if not rows:
        return done(place, _Result(errors.NONE))
    if shared is None:
        return done(place, _Result(errors.UNKNOWN_TOPIC_OR_PARTITION, "the group does not read this partition"))
    said = [Acknowledged(row.first_offset, row.last_offset, row.acknowledge_types) for row in rows]
    if any(shared.has_lost(one) for one in said):
        return done(place, _Result(errors.UNKNOWN_SERVER_ERROR, fails=True))

    def written(code: int) -> Effect:
        return done(place, _Result(code, f"refused: {errors.error(code).__name__}" if code else None))

    effect: Effect = node.shares.partitions.acknowledge(owner, place, said, written, request.now)
    return effect


def _is_valid(rows: list[Any], renews: bool) -> bool:
    """Whether ranges follow one another, and each has one known type, or one for every record."""
    most = RENEW if renews else RENEW - 1
    before = -1
    for row in rows:
        size = row.last_offset - row.first_offset + 1
        if row.first_offset < before or size < 1 or len(row.acknowledge_types) not in (1, size):
            return False
        if not all(0 <= kind <= most for kind in row.acknowledge_types):
            return False
        before = row.last_offset
    return True


# Fetches


class _Both:
    """The two parts of a fetch's answer: what it reads, and the outcomes of its acknowledgements.

    As in Apache Kafka, it reads while these are written, so that what they release comes with a later answer, or with
    this one if it has to wait.
    """

    def __init__(self, node: Node, request: Request, session: ShareSession) -> None:
        self._node, self._request, self._session = node, request, session
        self._rows: list[tuple[SharePlace, Any]] | None = None
        self._results: _Results | None = None

    @property
    def is_said(self) -> bool:
        """Whether the outcomes are known."""
        return self._results is not None

    def acknowledged(self, results: _Results) -> Effect:
        """Take the outcomes."""
        if any(result.fails for result in results.values()):
            return _failed(self._node, self._request, messages.ShareFetchResponse)
        self._results = results
        if self._rows is None:
            return NOTHING
        effect: Effect = self._node.reply(self._request.to, self._together(self._rows, results))
        return effect

    def answer(self, rows: Any) -> None:
        """Take what was read, as the address of a reply."""
        if isinstance(rows, Fate):
            self._request.to.answer(rows)
        elif self._results is None:
            self._rows = rows
        else:
            self._request.to.answer(self._together(rows, self._results))

    def _together(self, rows: list[tuple[SharePlace, Any]], results: _Results) -> Any:
        answer = _answer(self._node, self._session, rows, results)
        places = self._session.places
        if self._request.message.share_session_epoch == INITIAL:  # what it has not reached comes only with news
            for place in places.keys() - dict(rows).keys():
                places[place] = False
        else:
            for place, row in rows:  # others come first the next time
                if row.records and place in places:
                    places[place] = places.pop(place)
        return answer


def _fetch(node: Node, request: Request, session: ShareSession, both: _Both) -> Effect:
    message = request.message
    places = list(session.places)
    if places:  # others come first each time
        turn = max(0, message.share_session_epoch) % len(places)
        places = places[turn:] + places[:turn]
    take = ShareTake(
        session.owner, message.min_bytes, message.max_bytes, message.max_records, message.batch_size,
        request.version >= _RENEWS and message.share_acquire_mode == _STRICT,
    )  # fmt: skip
    denied = {place for place in places if not _may_read(node, request, place)}
    known = [place for place in places if place not in denied and node.shares.partitions.log(place) is not None]
    fresh = {place for place in known if node.shares.partitions.find(session.owner.group, place) is None}
    waits = message.max_wait_ms > 0 and bool(places)
    if not waits:  # nor for partitions to be opened
        places = [place for place in places if place not in fresh]
    fetching = ShareFetching(node, take, places, fresh if waits else set(), denied)

    def opened() -> Effect:
        parked = _Parked(node, request, fetching, both)
        if fetching.enough() or not waits:
            return Effect((), [parked.answer(request.now)])
        node.waiting.park(parked, parked.logs)
        return NOTHING

    if waits:
        effect: Effect = node.shares.partitions.open(session.owner.group, known, opened, request.now)
        return effect
    opening = node.shares.partitions.open(session.owner.group, known, lambda: NOTHING, request.now)
    return together([opened(), opening])


class _Parked:
    """A fetch that waits for records."""

    def __init__(self, node: Node, request: Request, fetching: ShareFetching, both: _Both) -> None:
        self._node, self._fetching, self._both = node, fetching, both
        self.session = request.session
        self.deadline = request.received + max(0, request.message.max_wait_ms)

    @property
    def logs(self) -> list[Hashable]:
        """Return the logs that it waits for."""
        return self._fetching.logs

    def enough(self) -> bool:
        """Whether there are as many bytes as it waits for; not before its acknowledgements have released theirs."""
        return self._both.is_said and self._fetching.enough()

    def answer(self, now: float) -> Reply:
        """What there is, as a part of the answer."""
        return Reply(self._both, self._fetching.take(self._node.shares.now))


def _row(place: SharePlace) -> Any:
    return messages.ShareFetchResponse.PartitionData(partition_index=place.number, records=b"")


def _answer(node: Node, session: ShareSession, rows: list[tuple[SharePlace, Any]], results: _Results) -> Any:
    """Return the answer with its news: records, errors, partitions without an answer so far, outcomes."""
    response = messages.ShareFetchResponse
    settings = node.shares.partitions.settings(session.owner.group)
    answer = response(acquisition_lock_timeout_ms=settings.lock_ms)
    made: dict[uuid.UUID, Any] = {}
    found = dict(rows)
    for place in [*found, *(place for place in results if place not in found)]:
        row = found.get(place) or _row(place)
        news = session.places.get(place, place in found) or row.records or row.error_code or place in results
        if place in session.places:
            session.places[place] = bool(row.error_code)
        if news:
            result = results.get(place, _Result(errors.NONE))
            row.acknowledge_error_code, row.acknowledge_error_message = result.code, result.text
            topic = response.ShareFetchableTopicResponse(topic_id=place.topic_id)
            made.setdefault(place.topic_id, topic).partitions.append(row)
    answer.responses = list(made.values())
    return answer
