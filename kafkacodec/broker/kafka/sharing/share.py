"""ShareFetch and ShareAcknowledge (KIP-932, KIP-1206, KIP-1222)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from kafkacodec import errors, messages
from kafkacodec.broker.kafka.sharing.fetches import ShareFetching, ShareTake
from kafkacodec.broker.kafka.sharing.sessions import FINAL, INITIAL, Owner, SharePlace, ShareSession
from kafkacodec.broker.state.sharing.calls import LONGEST_ID
from kafkacodec.broker.state.sharing.partition import RENEW, Acknowledged
from kafkacodec.datatypes import NamedTuple
from kafkacodec.net.service import NOTHING, Effect, Reply, together

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
    _update(session, message)

    def acknowledged(results: _Results) -> Effect:
        if any(result.fails for result in results.values()):
            return _failed(node, request, response)
        if message.share_session_epoch == FINAL:
            session.places.clear()  # everything requested has an answer
            places = [
                SharePlace(topic.topic_id, part.partition_index)
                for topic in message.topics
                for part in topic.partitions
            ]
            answer = _answer(node, session, [(place, _row(place)) for place in places], results)
            return together(
                [node.shares.partitions.release(session.owner, request.now), node.reply(request.to, answer)]
            )
        return _fetch(node, request, session, results)

    return _say(node, request, session.owner, acknowledged)


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
            return together([node.shares.partitions.release(session.owner, request.now), effect])
        return effect

    return _say(node, request, session.owner, acknowledged, every=True)


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
    node: Node, request: Request, owner: Owner, then: Callable[[_Results], Effect], *, every: bool = False
) -> Effect:
    """Apply the acknowledgements of a request, and continue when all are written.

    With `every`, each partition has a result if any has acknowledgements, and those that cannot be acknowledged have
    one in any case; otherwise only those with some.
    """
    message = request.message
    renews = request.version >= _RENEWS and message.is_renew_ack
    said: dict[SharePlace, list[Any]] = {}
    some = any(part.acknowledgement_batches for topic in message.topics for part in topic.partitions)
    for topic in message.topics:
        for part in topic.partitions:
            place, rows = SharePlace(topic.topic_id, part.partition_index), part.acknowledgement_batches
            if rows or (every and (some or _error_of(node, request, owner, place))):
                said.setdefault(place, []).extend(rows)
    results: _Results = {}

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


def _fetch(node: Node, request: Request, session: ShareSession, results: _Results) -> Effect:
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
    fetching = ShareFetching(node, take, places, fresh, denied)

    def opened() -> Effect:
        parked = _Parked(node, request, session, fetching, results)
        if message.max_wait_ms <= 0 or parked.enough():
            return Effect((), [parked.answer(request.now)])
        node.waiting.park(parked, parked.logs)
        return NOTHING

    effect: Effect = node.shares.partitions.open(session.owner.group, known, opened, request.now)
    return effect


class _Parked:
    """A fetch that waits for records."""

    def __init__(
        self, node: Node, request: Request, session: ShareSession, fetching: ShareFetching, results: _Results
    ) -> None:
        self._node, self._to, self._session_of_fetch = node, request.to, session
        self._fetching, self._results = fetching, results
        self.session = request.session
        self.deadline = request.received + max(0, request.message.max_wait_ms)

    @property
    def logs(self) -> list[Hashable]:
        """Return the logs that it waits for."""
        return self._fetching.logs

    def enough(self) -> bool:
        """Whether there are as many bytes as it waits for."""
        return self._fetching.enough(self._node.shares.now)

    def answer(self, now: float) -> Reply:
        """The answer, with what there is."""
        rows = self._fetching.take(self._node.shares.now)
        return Reply(self._to, _answer(self._node, self._session_of_fetch, rows, self._results))


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
